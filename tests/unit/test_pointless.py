# SPDX-License-Identifier: GPL-2.0-only
"""A series that changes nothing of a whole kernel is told so, and not booted."""

import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from ream.errors import Inconclusive, NothingChanges, ReamError
from ream.kernel.build import BUILD
from ream.kernel.image import Image
from ream.kernel.series import Patch, Series
from ream.measure.plan import Launch, without
from ream.progress import Reporter
from ream.session.pointless import Untouched, left_out, same_kernels, trees_of
from ream.session.request import Request
from ream.variants import Variant

REPORTER = Reporter(quiet=True)
TREES = {"comment": "base", "other": "base"}


def image(place: Path, text: str) -> Image:
    build = place / BUILD
    build.mkdir(parents=True)
    (build / "code.c").write_text(text)
    subprocess.run(["gcc", "-O2", "-g", "-c", "code.c"], cwd=build, check=True)
    return Image(place, build / "bzImage", build / ".config", {})


@pytest.fixture
def found(tmp_path: Path) -> dict[str, Untouched]:
    code = "int of(int kind) { return kind + 1; }\n"
    images = {
        "base": image(tmp_path / "base", code),
        "comment": image(tmp_path / "comment", "/* more */\n" + code),
        "other": image(tmp_path / "other", code.replace("1", "2")),
    }
    return same_kernels(images, TREES, REPORTER)


WHY = "the same object code as base in all 1 objects of the kernel"


def test_a_comment_makes_the_same_kernel(found: dict[str, Untouched]) -> None:
    assert {name: one.why for name, one in found.items()} == {"comment": WHY}


def asked(*names: str, file: str = "mm/a.c") -> Request:
    """A run of series that change one file each, compared with base."""
    diff = f"--- a/{file}\n+++ b/{file}\n@@ -1 +1 @@\n-a\n+b\n".encode()
    series = Series("one", (Patch("1.patch", "mm: one", diff),))
    variants = (Variant("base", ()), *(Variant(name, (series,), "base") for name in names))
    return cast("Any", SimpleNamespace(variants=variants))


def test_it_is_left_out_where_another_series_is_measured(found: dict[str, Untouched]) -> None:
    assert left_out([found], asked(*TREES), REPORTER) == {"comment": WHY}
    launches = (Launch(0, 1, 0, ("comment", "base", "other")),)
    assert without(found, launches)[0].link_order == ("base", "other")


@pytest.mark.parametrize(
    ("old", "new", "kind", "said"),
    [
        ("int a;\n", "int a; /* b */\n", NothingChanges, "comment: nothing changes: every file"),
        ("int a;\n", "int b;\n", NothingChanges, "comment: nothing changes: every file"),
        (
            "#ifdef A\nint a;\n#endif\n",
            "#ifdef A\nint b;\n#endif\n",
            Inconclusive,
            "here, in mm/a.c",
        ),
    ],
)
def test_a_series_that_compiles_to_the_same_ends_with_0_and_one_that_is_not_hosted_with_4(
    tmp_path: Path, *, old: str, new: str, kind: type[ReamError], said: str
) -> None:
    for tree, text in (("old", old), ("new", new)):
        (tmp_path / tree / "mm").mkdir(parents=True)
        (tmp_path / tree / "mm/a.c").write_text(text)
    its = Untouched(WHY, frozenset({"mm/a.o"}), tmp_path / "old", tmp_path / "new")
    with pytest.raises(kind) as caught:
        left_out([{"comment": its}], asked("comment"), REPORTER)
    assert said in str(caught.value)
    assert "`ream run --measure-anyway`" in str(caught.value)
    assert caught.value.exit_code == (0 if kind is NothingChanges else 4)


def test_a_function_that_no_row_executes_leaves_it_open() -> None:
    its = Untouched("it changes f(), which no row here executes")
    with pytest.raises(Inconclusive, match="comment: not measured: it changes f"):
        left_out([{"comment": its}], asked("comment"), REPORTER)
    assert left_out([{}], asked("comment"), REPORTER) == {}


def test_what_a_series_is_compared_with_is_the_tree_it_stands_on() -> None:
    variants = [
        SimpleNamespace(name="before", compared_with=None),
        SimpleNamespace(name="mine", compared_with="base"),
    ]
    assert trees_of(cast("Any", SimpleNamespace(variants=variants))) == {"mine": "base"}
