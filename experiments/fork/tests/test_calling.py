# SPDX-License-Identifier: GPL-2.0-only
"""Rows of fork that are a call, and the oracle of address spaces."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from experiments.fork import calling
from experiments.fork.address_spaces import LAYOUTS, Vma, from_smaps, layout, read_layout
from experiments.fork.hosted import HOSTED
from experiments.fork.oracle.address_space import (
    child_counters,
    child_vmas,
    committed,
    file_vmas,
    parent_counters,
    parent_vmas,
    placed,
)
from experiments.fork.rows import ForkRow
from ream.experiment import named
from ream.stage.native import Build

NATIVE = named("fork").at("native").rows
PRIVATE = ("rd", "wr", "mr", "mw", "me", "ac")
NAMES = sorted(one.stem for one in LAYOUTS.glob("*.txt"))
WORDS = 8

SMAPS = """\
1000-3000 r--p 00002000 08:01 77                         /usr/bin/program
Size:                  8 kB
Anonymous:             0 kB
VmFlags: rd mr mw me sd
5000-9000 rw-p 00000000 00:00 0                          [heap]
Size:                 16 kB
Anonymous:            12 kB
VmFlags: rd wr mr mw me ac sd
a000-b000 r-xp 00000000 00:00 0                          [vdso]
Anonymous:             0 kB
VmFlags: rd ex mr mw me de sd
"""


def row(**given: str) -> ForkRow:
    return ForkRow(
        **{
            "name": "row",
            "folio_bytes": "4k",
            "operation": "dup-mm",
            "layout": "bash",
            "rounds": 1,
            **given,
        }
    )


def test_every_row_is_one_program_s() -> None:
    programs = (HOSTED, *HOSTED.beside)
    assert calling.CALLING in programs
    assert all(sum(its.runs(one) for its in programs) == 1 for one in NATIVE)
    assert {one.layout for one in NATIVE if one.layout} == set(NAMES)


def test_smaps_says_sizes_and_flags_and_no_names() -> None:
    text, heap = from_smaps(SMAPS)
    assert text == Vma(1, 2, 0, 1, 2, ("rd", "mr", "mw", "me"))
    assert heap == Vma(2, 4, 3, 0, 0, PRIVATE)
    assert read_layout(f"# said\n{text}\n{heap}\n") == (text, heap)


@pytest.mark.parametrize("name", NAMES)
def test_a_recorded_process_is_possible(name: str) -> None:
    its = placed(layout(name))
    assert all(before.end <= after.start for before, after in pairwise(its))
    assert its[-1].end < 1 << 47
    assert all(0 <= one.vma.nr_anon <= one.vma.nr_pages for one in its)


def test_a_layout_that_was_not_recorded_is_refused() -> None:
    with pytest.raises(ValueError, match="there is no layout redis"):
        row(layout="redis")


@pytest.mark.parametrize("given", [{"operation": "fork"}, {"folio_bytes": "64k"}])
def test_a_layout_is_for_calls_of_small_pages(given: dict[str, str]) -> None:
    with pytest.raises(ValueError, match=r"a layout is for|pages of 4 KiB"):
        row(**given)


def test_a_child_has_what_its_parent_does_not_keep_to_itself() -> None:
    its = placed(
        [
            Vma(1, 4, 4, 0, 0, PRIVATE),
            Vma(0, 2, 2, 0, 0, (*PRIVATE[:5], "dc", "ac")),
            Vma(0, 3, 3, 0, 0, (*PRIVATE, "wf")),
            Vma(0, 5, 0, 1, 7, ("rd", "ex", "mr", "mw", "me")),
            Vma(0, 1, 1, 0, 0, (*PRIVATE[:5], "lo", "ac")),
        ]
    )
    child, parent = child_vmas(its).reshape(-1, WORDS), parent_vmas(its, forked=True)
    starts = [one.start for one in its]
    assert child[:, 0].tolist() == [starts[at] for at in (0, 2, 3, 4)]
    assert child[:, 5].tolist() == [2, 0, 0, 2]
    assert parent.reshape(-1, WORDS)[:, 7].tolist() == [2, 1, 1, 0, 2]
    assert child[3, 2] & np.uint64(1 << 13) == 0
    assert committed(its) == [10, 18]
    assert file_vmas(its) == [1, 2]
    assert parent_counters(its) == [5, 15, 10, 5, 0, 0, 0, 10, 0, 0, 1]
    assert child_counters(its) == [4, 13, 8, 5, 0, 0, 0, 5, 0, 0, 1]


def test_the_runner_is_told_what_the_row_says(tmp_path: Path) -> None:
    asked = row(operation="dup-mm-faults", pre_state="cold")
    build = Build({}, {"sizeof.vm_area_struct": 192})
    with calling.plan_of([asked], None, build, tmp_path) as (plan, files):
        said = dict(word.split("=") for word in plan.read_text().split())
    assert len(files) == 4
    assert (said["operation"], said["pre_state"]) == ("faults", "cold")
    assert said["vma_bytes"] == "192"
    assert int(said["nr_anon"]) == asked.nr_pages
    assert int(said["nr_pages"]) * 4096 % calling.NODE_STEP == 0


@pytest.mark.parametrize("seed", range(50))
def test_a_mixture_can_be_made(seed: int) -> None:
    vmas = calling._mixed(seed)
    assert vmas == calling._mixed(seed)
    assert all(one.nr_anon <= one.nr_pages for one in vmas)
