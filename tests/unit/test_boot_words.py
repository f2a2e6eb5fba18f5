# SPDX-License-Identifier: GPL-2.0-only
"""What files of options tell the boot of a hosted computer, which is no part of its kernel."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ream.errors import BadUsage, CannotRunHere
from ream.experiment import named
from ream.kernel.setup import Setup, named_config
from ream.paths import KERNEL_CONFIG, NATIVE
from ream.session.suited import suited_rows

SRSO = (
    "# Why.\nCONFIG_MITIGATION_SRSO=y\n# CONFIG_NO is not set # with NO\n# boot ream.returns=srso\n"
)


def test_what_boot_is_told_is_no_part_of_the_kernel_and_neither_are_comments() -> None:
    setup = Setup(SRSO, "srso.config")
    assert setup.boot == ("ream.returns=srso",)
    assert setup.asked == "CONFIG_MITIGATION_SRSO=y\n# CONFIG_NO is not set # with NO"
    assert Setup().boot == ()


def test_kinds_of_returns_are_one_kernel() -> None:
    kinds = [named_config(name, "native") for name in ("rethunk", "retbleed", "srso", "srso-alias")]
    assert len({one.asked for one in kinds}) == 1
    assert len({one.boot for one in kinds}) == len(kinds)


def test_nobody_else_is_asked_to_boot_otherwise(tmp_path: Path) -> None:
    """A program that hosts several kernels would patch them as ever, and a guest boots itself."""
    file = tmp_path / "srso.config"
    file.write_text(SRSO)
    with pytest.raises(BadUsage, match="lines `# boot` are for hosted computers"):
        named_config(str(file), "vm")
    setup = Setup("# boot ream.indirect=retpoline", "mine.config")
    request: Any = SimpleNamespace(
        experiment=named("fork"), setup=setup, variants=(), threads=None, count=None
    )
    with pytest.raises(CannotRunHere, match="mine.config: boot ream.indirect=retpoline: only comp"):
        suited_rows(request)


def test_every_word_for_boot_is_one_that_the_computer_knows() -> None:
    """A word that it does not know would change nothing."""
    source = (NATIVE / "libmm" / "kernel" / "patched.c").read_text(encoding="utf-8")
    words = [
        word
        for file in KERNEL_CONFIG.glob("native-*.config")
        for word in Setup(file.read_text(encoding="utf-8")).boot
    ]
    assert words
    for name, _, value in (word.partition("=") for word in words):
        assert f'"{name}="' in source
        assert f'"{value}"' in source
