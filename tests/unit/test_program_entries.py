# SPDX-License-Identifier: GPL-2.0-only
"""Entries of page tables, in words."""

import pytest

from ream.program.entries import decoded, words


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        (0, "empty"),
        (0x8000000201234067, "present, writable, user, accessed, dirty, no-exec, frame 0x201234"),
        (0x0400000201234025, "present, user, accessed, saved-dirty, frame 0x201234"),
        (0x201234525, "present, user, accessed, global, uffd-wp, frame 0x201234"),
        (0x201234124, "user, accessed, protnone, frame 0x201234"),
        (0x2000E7, "present, writable, user, accessed, dirty, huge, frame 0x200"),
        (0x7FFFFFFFFFFFC0A, "not present, soft-dirty, exclusive, swap entry of type 0, offset 0x1"),
        (0xFFFFFFFFFFFFFC04, "not present, uffd-wp, swap entry of type 31, offset 0x1"),
    ],
)
def test_each_bit_has_the_kernels_name(entry: int, said: str) -> None:
    assert words(entry) == said


def test_an_alarm_keeps_its_words_and_explains_its_entries() -> None:
    text = "CPU 0 still translates 0x1000 by 0x201067, the entry is 0: a flush is missing"
    assert decoded(text) == (
        "CPU 0 still translates 0x1000 by 0x201067 (present, writable, user, accessed, dirty,"
        " frame 0x201), the entry is 0: a flush is missing"
    )
    stale = "0x1000 is writable in a VMA that is not: 0x201003"
    assert decoded(stale) == f"{stale} (present, writable, frame 0x201)"
    assert decoded("NR_FILE_PAGES of node 0 is 1") == "NR_FILE_PAGES of node 0 is 1"


def test_a_frame_that_is_exclusive_and_mapped_twice_says_what_that_means() -> None:
    assert decoded("frame 0x227d58 is exclusive to a process, and 2 entries map it") == (
        "frame 0x227d58 is exclusive to a process (PageAnonExclusive), and 2 entries map it,"
        " so one process can see what another writes"
    )


def test_what_a_process_reads_is_said_once_if_both_ends_of_the_page_are_the_same() -> None:
    text = "process 0 reads {} and {} in page 0x7, where 0x0 was written"
    same = "process 0 reads 0x5 in page 0x7, where 0x0 is right"
    assert decoded(text.format("0x5", "0x5")) == same
    torn = "process 0 reads 0x5 at the beginning and 0x0 at the end in page 0x7, where 0x0 is right"
    assert decoded(text.format("0x5", "0x0")) == torn


PAGEMAP = (
    "/proc/PID/pagemap says 0x8180000000000201{} of 0x1000, where 0x8080000000000000{} is right"
)
LOCKED = "0x1000 is locked, and its pages are none that can be: 0x402000"
PROTECTION = "0x1000 gives its new entries 0x7{}, where its flags allow 0x5{}"
SCANNED = "PAGEMAP_SCAN says 0xa{} of 0x1000, where 0{} is right"


@pytest.mark.parametrize(
    ("alarm", "names"),
    [
        (PAGEMAP, ("soft-dirty, mapped exclusively, present", "soft-dirty, present")),
        (SCANNED, ("WRITTEN, PRESENT", "none")),
        (f"{LOCKED}{{}}", ("VM_LOCKED, VM_HUGETLB",)),
        (PROTECTION, ("present, writable, user, frame 0x0", "present, user, frame 0x0")),
    ],
    ids=["pagemap", "scanned", "locked", "protection"],
)
def test_flags_of_alarms_have_names(alarm: str, names: tuple[str, ...]) -> None:
    said = alarm.format(*(f" ({one})" for one in names))
    assert decoded(alarm.format(*("" for _ in names))) == said
