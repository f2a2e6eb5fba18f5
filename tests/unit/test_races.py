# SPDX-License-Identifier: GPL-2.0-only
"""Races that KCSAN reports in a series' code fail its tests; races in other code do not."""

import subprocess
from pathlib import Path

import pytest

from races import races_of
from ream.kernel.image import Image

OTHERS = """\
[   12.000001] BUG: KCSAN: data-race in smp_call_function_many_cond / switch_mm_irqs_off
[   12.000002] read to 0xffff888003d8c9d0 of 8 bytes by task 93 on cpu 0:
"""
OURS = """\
[   14.000001] BUG: KCSAN: data-race in do_nanosleep / zap_pte_range.isra.0
"""


@pytest.fixture
def image(tmp_path: Path) -> Image:
    (tmp_path / "mm").mkdir()
    source = tmp_path / "memory.c"
    source.write_text("void zap_pte_range(void) {}\n")
    command = ("gcc", "-c", "-o", str(tmp_path / "mm" / "memory.o"), str(source))
    subprocess.run(command, check=True)
    return Image(tmp_path, tmp_path / "bzImage", tmp_path / ".config", {})


@pytest.mark.parametrize(
    ("said", "found"),
    [
        ("", set()),
        (OTHERS, set()),
        (OTHERS + OURS, {("do_nanosleep", "zap_pte_range.isra.0")}),
    ],
    ids=["none", "others", "ours"],
)
def test_a_race_counts_if_one_side_is_in_what_the_series_changes(
    image: Image, tmp_path: Path, said: str, found: set[tuple[str, str]]
) -> None:
    log = tmp_path / "console.log"
    log.write_text(said)
    assert races_of(log, image, ["mm/memory.o", "mm/missing.o"]) == found


def test_objects_that_a_kernel_has_not_at_all_are_told(image: Image, tmp_path: Path) -> None:
    log = tmp_path / "console.log"
    log.write_text(OTHERS)
    with pytest.raises(AssertionError, match="none of these"):
        races_of(log, image, ["mm/missing.o"])
