# SPDX-License-Identifier: GPL-2.0-only
"""What a runner says of memory that is wrong, in words."""

import re
from pathlib import Path

import pytest

from ream.paths import CHECKOUT
from ream.stage.differences import in_words

FACTS = {"PG_dirty": 4, "PG_anon_exclusive": 17, "PG_owner_2": 17, "sizeof.page": 64}
SAID = "{} is {}, the oracle says {}"


def told(what: str, it: str, right: str, *, decodes: bool = True) -> str:
    said = in_words(f"row: patched: {SAID.format(what, it, right)}", FACTS, decodes=decodes)
    assert said.startswith("row: patched: ")
    return said.removeprefix("row: patched: ")


@pytest.mark.parametrize(
    ("what", "it", "right", "said"),
    [
        (
            "the child's entry 0",
            "0x8000000200001047",
            "0x8400000200001005",
            (
                "the child's entry 0 is writable and dirty, and must not be; it is not"
                " saved-dirty, and must be: the process can write without a fault, also where"
                " it shares the page (0x8000000200001047, where 0x8400000200001005 is right)"
            ),
        ),
        (
            "entry 3",
            "0x201067",
            "0x202067",
            (
                "entry 3 is of frame 0x201, where 0x202 is right: the process sees another"
                " page's memory (0x201067, where 0x202067 is right)"
            ),
        ),
        (
            "entry, used meanwhile, 1",
            "0",
            "0x202067",
            (
                "entry, used meanwhile, 1 is empty, and must not be: the process has lost the"
                " page; present, writable, user, accessed, dirty, frame 0x202 is right (0,"
                " where 0x202067 is right)"
            ),
        ),
        (
            "the second address space's entry 1",
            "0x202005",
            "0",
            (
                "the second address space's entry 1 is left, and must be empty: the process"
                " can go on to use the page; present, user, frame 0x202 (0x202005, where 0 is"
                " right)"
            ),
        ),
        (
            "the parent's entry 2",
            "0x7fffffffffffc02",
            "0x7fffffffffffc0a",
            (
                "the parent's entry 2 is not exclusive, and must be: a page that is the"
                " process's alone is copied when it is written (0x7fffffffffffc02, where"
                " 0x7fffffffffffc0a is right)"
            ),
        ),
        (
            "folios freed: 0",
            "0",
            "0x3",
            "folios freed is 0, and 3 is right: memory is lost",
        ),
        (
            "the result: 0",
            "0xfffffffffffffff4",
            "0",
            "the result is -12, and 0 is right",
        ),
        (
            "the parent's counter 1",
            "0x3",
            "0x4",
            (
                "the parent's MM_ANONPAGES is 3, and 4 is right: /proc/PID/status shows a"
                " wrong size, and the kernel complains when the process exits"
            ),
        ),
        ("the counter of /proc/vmstat 0", "0", "0x1", "pgmigrate_success is 0, and 1 is right"),
        (
            "the nodes' statistic 3",
            "0",
            "0x1",
            "NR_ISOLATED_FILE of node 1 is 0, and 1 is right",
        ),
        (
            "large anonymous folios of order 4",
            "0",
            "0x1",
            "large anonymous folios of order 4 is 0, and 1 is right",
        ),
        (
            "the end of what is flushed, of entry 5",
            "0x1000",
            "0x6000",
            (
                "the end of what is flushed, of entry 5 is 0x1000, and 0x6000 is right: a CPU"
                " may go on to use translations that are gone"
            ),
        ),
        (
            "page->flags of descriptor 9",
            "0x20010",
            "0x10",
            (
                "page->flags of descriptor 9 is PG_anon_exclusive/PG_owner_2, and must not be"
                " (0x20010, where 0x10 is right)"
            ),
        ),
        (
            "page->_refcount of entry 5000",
            "0x1",
            "0",
            (
                "page->_refcount of entry 5000 is 1, and 0 is right: 1 reference too many, so"
                " the page is never freed"
            ),
        ),
        (
            "page->_mapcount/page_type of descriptor 0",
            "0xffffffff",
            "0x1",
            (
                "page->_mapcount/page_type of descriptor 0 is 0, and 2 is right: 2 mappings"
                " too few, so a page that is still mapped may count as unmapped"
            ),
        ),
        (
            "page->lru of descriptor 1",
            "0x10",
            "0x20",
            "page->lru of descriptor 1 is 0x10, and 0x20 is right",
        ),
        (
            "node 0: managed_pages",
            "0x7fc00",
            "0x80000",
            (
                "node 0: managed_pages is 523264, and 524288 is right: memory is never used by"
                " the page allocator"
            ),
        ),
    ],
)
def test_what_differs_is_named(what: str, it: str, right: str, said: str) -> None:
    assert told(what, it, right) == said


def test_a_word_that_nothing_has_written_is_wrong_in_many_bits() -> None:
    said = told("page->flags of entry 0", "0xa5a5a5a5a5a5a503", "0x20")
    raw = "(0xa5a5a5a5a5a5a503, where 0x20 is right)"
    assert said == f"page->flags of entry 0 is wrong in 31 bits {raw}"


def test_pages_that_are_mapped_are_told_from_a_huge_entry() -> None:
    said = told("folio->_nr_pages_mapped of descriptor 1", "0", "0x800002")
    assert said == (
        "folio->_nr_pages_mapped of descriptor 1 is 0 pages, and 2 pages and ENTIRELY_MAPPED is"
        " right (0x0, where 0x800002 is right)"
    )


def test_entries_that_differ_in_what_has_no_name_are_told_whole() -> None:
    said = told("entry 0", "0x4000000000201005", "0x201005")
    assert said.startswith("entry 0 is present, user, frame 0x201, where present, user, frame 0x20")
    swap = told("entry 0", "0x7fffffffffffc02", "0x7fffffffffff802")
    assert swap.startswith("entry 0 is not present, soft-dirty, swap entry of type 0, offset 0x1")


def test_entries_of_another_architecture_are_not_decoded() -> None:
    its = told("the child's entry 0", "0x47", "0x5", decodes=False)
    assert its == "the child's entry 0 is wrong (0x47, where 0x5 is right)"


def test_entries_and_flags_of_a_fork_as_a_call_are_decoded() -> None:
    said = "row: patched: entry 3 of the child: 0x201025, expected 0x201005"
    assert in_words(said, {}) == (
        "row: patched: entry 3 of the child is accessed, and must not be: reclaim takes the page"
        " for one that was used (0x201025, where 0x201005 is right)"
    )
    said = "row: patched: the child: flags of VMA 2: 0x2073, expected 0x73"
    assert in_words(said, {}) == (
        "row: patched: the child: flags of VMA 2 is VM_LOCKED, and must not be"
        " (0x2073, where 0x73 is right)"
    )


def test_other_lines_stay_as_they_are() -> None:
    before = "row: patched: frame 7 is not the copy of frame 8 that it must be"
    said = f"{before}\nrow: patched: {SAID.format('its byte 0', '0x1', '0x2')}"
    assert in_words(said, {}) == f"{before}\nrow: patched: its byte 0 is 0x1, and 0x2 is right"
    calls = "row: patched: 3 calls found the zone contiguous, the oracle says 4"
    assert in_words(calls, {}) == "row: patched: 3 calls found the zone contiguous, not 4"


@pytest.mark.parametrize(
    ("what", "it", "right", "said"),
    [
        (
            *("byte of a target's frame, which should hold page 3", "0x17", "0x1000"),
            (
                "byte of a target's frame, which should hold page 3, is wrong: what was written"
                " is lost (0x17)"
            ),
        ),
        (
            *("a broken link of the queue of folios to split 0", "0", "0"),
            "a broken link of the queue of folios to split",
        ),
        (
            *("a broken link of the caller's list, page 7", "0", "0"),
            "a broken link of the caller's list, page 7",
        ),
        (
            *("what is not to be on the caller's list, page 7", "0x2", "0x2"),
            "page 7 is on the caller's list, and must not be: its folio has a second owner",
        ),
        (
            *("the limit of a batch is not that of earlier rows: answers 2", "0x1", "0x2"),
            "the limit of a batch is not that of earlier rows",
        ),
        (
            *("calls of arch_tlbbatch_flush(), bound 0", "0x1", "0x2"),
            (
                "calls of arch_tlbbatch_flush() is 1, and at least 2 is right: a CPU may go on"
                " to use translations that are gone"
            ),
        ),
    ],
)
def test_of_what_is_no_number_words_are_said_alone(
    what: str, it: str, right: str, said: str
) -> None:
    assert told(what, it, right) == said


def test_a_word_of_a_descriptor_is_named_by_its_field() -> None:
    said = (
        "row: patched: of the targets: byte 52 of descriptor 3 differs\n"
        "row: patched: that word, of descriptor 3 is 0x2ffffffff, the oracle says 0x1ffffffff"
    )
    facts = {"page.flags": 0, "page._mapcount": 48, "page._refcount": 52}
    assert in_words(said, facts) == (
        "row: patched: page->_refcount of descriptor 3 of the targets is 2, and 1 is right:"
        " 1 reference too many, so the page is never freed"
    )
    assert in_words(said, {}) == (
        "row: patched: byte 52 of descriptor 3 of the targets is wrong"
        " (0x2ffffffff, where 0x1ffffffff is right)"
    )


def names_in(path: Path) -> set[str]:
    """The strings of a runner's source that begin what is said of a number."""
    text = path.read_text(encoding="utf-8")
    return {*re.findall(r'"([^"\\%\n]+:)"', text)}


def test_no_runner_says_what_stays_a_bare_number() -> None:
    """Each number that ends in a colon is printed with an index that says nothing."""
    sources = [*CHECKOUT.glob("experiments/*/native/*.c"), CHECKOUT / "native/host/paging.h"]
    names = set[str]().union(*map(names_in, sources))
    assert {"folios freed:", "entries outside the VMA:", "flushes:"} <= names
    for name in names:
        said = told(f"{name} 0", "0", "0x1")
        assert "oracle" not in said
        assert " 0 is " not in said
