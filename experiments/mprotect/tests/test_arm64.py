# SPDX-License-Identifier: GPL-2.0-only
"""The oracle of mprotect() on arm64, against cases worked by hand: blocks, flushes, dirty bits."""

import numpy as np
import pytest

from experiments.fork.oracle.cases import owned, placed, run
from experiments.fork.oracle.images import initial
from experiments.fork.tests.world import PLACE
from experiments.mprotect.oracle.change import Change, Changed, change_protection
from experiments.mprotect.oracle.requests import part, to_none, to_read, to_write
from experiments.mprotect.tests.world import ARM64, ARM64_NEWER, words
from ream.oracle import pte_arm64 as pte
from ream.oracle.mapping import Mapping
from ream.oracle.pte_arm64 import CONT

PAGES = range(16)
BLOCK = Mapping(run(0, PAGES), placed(owned(4)), folded=True)
KINDS = {
    "batches": {"batched": True, "at_once": True},
    "single": {"batched": False, "at_once": True},
    "apart": {"batched": True, "at_once": False},
}


def changed(change: Change, kind: str = "batches") -> Changed:
    before = initial(BLOCK, ARM64, PLACE).parent
    return change_protection(BLOCK, before, change, ARM64, **KINDS[kind])


@pytest.mark.parametrize(("kind", "nr"), [("batches", 16), ("single", 48), ("apart", 48)])
def test_a_whole_block_stays_one_and_is_converted_twice_if_changed_apart(
    kind: str, nr: int
) -> None:
    result = changed(to_read(BLOCK), kind)
    assert all(word & CONT and not pte.write(word) for word in words(result))
    assert all(pte.dirty(word) and pte.young(word) for word in words(result))
    assert (result.nr_pages, result.nr_flushes) == (16, nr)
    assert (result.flush_start, result.flush_end) == (BLOCK.address, BLOCK.address + 16 * 4096)


@pytest.mark.parametrize("kind", KINDS)
def test_a_block_of_which_some_is_changed_is_single_and_flushed_whole(kind: str) -> None:
    result = changed(part(to_read(BLOCK), 5, 1), kind)
    assert not any(word & CONT for word in words(result))
    assert [pte.write(word) for word in words(result)] == [at != 5 for at in PAGES]
    assert result.nr_flushes == 16 + 1


@pytest.mark.parametrize("kind", KINDS)
def test_what_nobody_may_access_is_no_block_and_becomes_one_again(kind: str) -> None:
    none = changed(to_none(BLOCK), kind)
    assert all(pte.no_access(word) and not word & CONT for word in words(none))
    again = change_protection(BLOCK, none.entries, to_write(BLOCK), ARM64, **KINDS[kind])
    assert np.array_equal(again.entries, initial(BLOCK, ARM64, PLACE).parent)


def test_an_entry_that_is_not_valid_is_flushed_where_the_build_does_not_ask() -> None:
    none = changed(to_none(BLOCK))
    asks, always = (
        change_protection(BLOCK, none.entries, to_write(BLOCK), facts, batched=True)
        for facts in (ARM64_NEWER, ARM64)
    )
    assert (asks.nr_flushes, always.nr_flushes) == (0, 16)


def test_so_many_pages_are_flushed_by_one_instruction_for_all() -> None:
    vma = Mapping(run(0, range(512)), placed(owned(9)), address=1 << 40)
    before = initial(vma, ARM64, PLACE).parent
    result = change_protection(vma, before, to_read(vma), ARM64, batched=True)
    assert (result.nr_flushes, result.flush_start, result.flush_end) == (1, 0, (1 << 64) - 1)
    most = change_protection(vma, before, part(to_read(vma), 0, 511), ARM64, batched=True)
    assert most.nr_flushes == 511


def test_what_the_processor_noted_of_writes_software_notes_when_they_end() -> None:
    noted = pte.VALID | pte.PAGE | pte.USER | pte.WRITE | pte.AF
    assert pte.dirty(noted)
    read_only = pte.modify(noted, pte.VALID | pte.PAGE | pte.USER | pte.RDONLY)
    assert read_only & pte.DIRTY
    assert pte.dirty(read_only)
    assert not pte.write(read_only)
    clean = pte.modify(pte.mkclean(noted), pte.VALID | pte.PAGE | pte.USER | pte.RDONLY)
    assert not pte.dirty(clean)
