# SPDX-License-Identifier: GPL-2.0-only
"""A patch that does not compile is named in one line with the compiler's error."""

from pathlib import Path

import pytest

from ream.errors import BadUsage, ReamError
from ream.kernel.series import Patch
from ream.kernel.uncompiled import DoesNotCompile, naming_the_patch

KBUILD = "(cd /a/tree && KBUILD_BUILD_USER=ream make -s -j2 mm/memory.o): exit 2: "
AT = "../mm/memory.c:2:5: error: 'x' undeclared (first use in this function)"
SAID = f"{KBUILD}{AT}\n    2 |  x = 1;\n      |  ^"
DIFF = b"--- a/mm/memory.c\n+++ b/mm/memory.c\n@@ -1 +1,2 @@\n int a;\n+%s\n"


def patches(*lines: bytes) -> tuple[Patch, ...]:
    return tuple(
        Patch(f"{number:04}-one.patch", "mm: one", DIFF % line)
        for number, line in enumerate(lines, 1)
    )


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "mm").mkdir()
    (tmp_path / "mm/memory.c").write_text("int a;\nx = 1;\n")
    return tmp_path


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ((b"other",), "0001-one.patch does not compile: "),
        ((b"other", b"x = 1;", b"third"), "0002-one.patch does not compile: "),
        ((b"other", b"third"), "0001-one.patch to 0002-one.patch do not compile: "),
    ],
)
def test_the_patch_is_named_with_the_error(tree: Path, lines: tuple[bytes, ...], said: str) -> None:
    with (
        pytest.raises(DoesNotCompile) as caught,
        naming_the_patch(patches(*lines), tree),
    ):
        raise ReamError(SAID)
    assert str(caught.value) == f"{said}{AT.removeprefix('../')}"
    assert caught.value.exit_code == BadUsage.exit_code


@pytest.mark.parametrize(
    "said",
    [
        SAID.replace("../mm/memory.c", "../ream/glue.c"),
        f"{KBUILD}make[2]: *** No rule to make target 'mm/gone.o'.  Stop.",
        "mm/memory.c: a file of mine: no error at all",
    ],
)
def test_what_no_patch_did_stays_what_it_is(tree: Path, said: str) -> None:
    with pytest.raises(ReamError) as caught, naming_the_patch(patches(b"a"), tree):
        raise ReamError(said)
    assert str(caught.value) == said
    assert not isinstance(caught.value, DoesNotCompile)


def test_a_kernel_without_patches_is_not_the_patches_fault(tree: Path) -> None:
    with pytest.raises(ReamError, match="exit 2"), naming_the_patch((), tree):
        raise ReamError(SAID)
