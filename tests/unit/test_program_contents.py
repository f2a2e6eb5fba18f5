# SPDX-License-Identifier: GPL-2.0-only
"""What each read of a program must find, worked out by hand from the rules of the calls."""

import pytest

from ream.program.contents import predict
from ream.program.scene import resolve
from ream.program.text import parse

AREA = "p0 mmap a 16 anon private rw\n"
FILE = "file f 64K shmem\n"


def read(text: str) -> list[tuple[int, int, int, int]]:
    """What the last read of a program expects: page, number, line and index of each range."""
    expected = predict(resolve(parse(text)))[-1].expected
    return [(one.page, one.nr, one.content.line, one.content.index) for one in expected]


def returned(text: str) -> int | None:
    """What the last step of a program is to return."""
    return predict(resolve(parse(text)))[-1].returned


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (AREA + "p0 read a", [(0, 16, 0, 0)]),
        (AREA + "p0 write a[2:6]\np0 read a", [(0, 2, 0, 0), (2, 4, 2, 0), (6, 10, 0, 0)]),
        (AREA + "p0 write a\np0 munmap a[4:6]\np0 read a", [(0, 4, 2, 0)]),
        (AREA + "p0 write a\np0 mprotect a r\np0 write a\np0 read a", [(0, 16, 2, 0)]),
        (AREA + "p0 write a\np0 mprotect a none\np0 read a", []),
        (AREA + "p0 write a\np0 madvise a[0:15] dontneed\np0 read a",
         [(0, 15, 0, 0), (15, 1, 2, 15)]),
        (AREA + "p0 write a\np0 madvise a free\np0 read a", []),
        ("p0 mmap a 4 anon shared rw\np0 write a\np0 fork p1\np0 madvise a remove\np1 read a", []),
        (AREA + "p0 write a\np0 madvise a free\np0 write a\np0 read a", [(0, 16, 4, 0)]),
        (FILE + "p0 mmap a 4 f shared rw\np0 write a\nseal f write\np0 read a", []),
        (AREA + "p0 write a\np0 mremap a b 20\np0 read b", [(1024, 16, 2, 0), (1040, 4, 0, 0)]),
        (AREA + "p0 write a\np0 mremap a[0:4] b 4 dontunmap\np0 read a",
         [(0, 4, 0, 0), (4, 12, 2, 4)]),
        (AREA + "p0 fork p1\np1 write a\np0 read a", [(0, 16, 0, 0)]),
        (AREA + "p0 write a\np0 fork p1\np0 munmap a\np1 read a", [(0, 16, 2, 0)]),
        ("p0 mmap a 16 anon shared rw\np0 fork p1\np1 write a\np0 read a", [(0, 16, 3, 0)]),
        (FILE + "p0 mmap a 16 f shared rw\np0 write a\np0 mmap b 4 f+4 private r\np0 read b",
         [(1024, 4, 3, 4)]),
        (FILE + "p0 mmap a 4 f private rw\npwrite f[1]\np0 read a", [(0, 1, 0, 0), (2, 2, 0, 0)]),
        (FILE + "p0 mmap a 4 f private rw\np0 write a\npwrite f\np0 read a", [(0, 4, 3, 0)]),
        (FILE + "pwrite f\np0 mmap a 4 f shared r\ntruncate f 2\np0 read a", [(0, 2, 2, 0)]),
        (FILE + "pwrite f\np0 mmap a 4 f shared r\nfallocate f[0] punch\np0 read a",
         [(0, 1, 0, 0), (1, 3, 2, 1)]),
        (AREA + "p0 uffd_register a missing\np0 read a", []),
        (AREA + "p0 uffd_register a missing\np0 uffd_copy a\np0 read a", [(0, 16, 3, 0)]),
        (AREA + "p0 mlock a\np0 write a\np0 madvise a dontneed\np0 read a", []),
    ],
)  # fmt: skip
def test_a_read_finds_what_the_rules_of_the_calls_leave(
    text: str, expected: list[tuple[int, int, int, int]]
) -> None:
    assert read(text) == expected


def test_pages_of_the_same_value_are_one_range() -> None:
    calls = resolve(parse(AREA + "p0 write a same=7\np0 read a"))
    (expected,) = predict(calls)[-1].expected
    assert (expected.nr, expected.content.value) == (16, 7)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (AREA + "p0 write a", 16),
        (AREA + "p0 munmap a[4:6]\np0 write a", 4),
        (AREA + "p0 munmap a[4:6]\np0 mprotect a r", -12),
        (AREA + "p0 munmap a[4:6]\np0 madvise a dontneed", -12),
        (AREA + "p0 mremap a a+8 16", -22),
        (AREA + "p0 mlock a[0:4]\np0 mremap a b 16", None),  # two VMAs, if mlock succeeds
        (AREA + "p0 mmap b 4 anon private rw after=a\np0 mremap a a 20 stay", None),
        (FILE + "p0 mmap a 32 f shared rw\np0 write a", 16),
        (FILE + "pwrite f[0:4]", 4),
    ],
)
def test_what_a_step_returns_is_predicted_where_contents_depend_on_it(
    text: str, expected: int | None
) -> None:
    assert returned(text) == expected
