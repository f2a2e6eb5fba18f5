# SPDX-License-Identifier: GPL-2.0-only
"""`ream program`: what is right, wrong or no step is told in the words of the program."""

import json
from pathlib import Path

import pytest

from ream.paths import EXPERIMENTS

pytestmark = [pytest.mark.native, pytest.mark.xdist_group("computer")]

OK, USAGE, OPEN, WRONG = 0, 2, 4, 5

PROGRAM = """\
memory 512M 256M                  # two nodes
swap 192M synchronous
p0 mmap a 1024 anon private rw thp=always
p0 write a
p0 fork p1
p1 munmap a[0:100]
reclaim 300
p0 read a
p1 exit
p0 mprotect a r
"""

ANOTHER_COUNT = EXPERIMENTS / "fork" / "wrong" / "48-references-of-a-batch-in-bytes.patch"
"""With it fork() takes more references to a folio than it maps pages of it."""
NO_RESCHEDULING = EXPERIMENTS / "migrate" / "wrong" / "16-copy-without-resched.patch"
"""With it a folio is copied without cond_resched(), which no rule forbids."""


def test_a_program_in_which_nothing_is_wrong_is_told_in_a_line(ream, tmp_path: Path) -> None:
    file = tmp_path / "a.program"
    file.write_text(PROGRAM)
    said = ream("program", str(file))
    assert said.code == OK, said.err
    assert said.out.startswith("10 steps, nothing is wrong; digest of memory at the end ")
    again = json.loads(ream("program", str(file), "--json").out)
    assert (again["alarms"], again["returned"]["8"]) == ([], 1024)
    assert again["digest"] in said.out


def test_what_a_wrong_patch_does_is_shown_by_few_steps(ream) -> None:
    words = ("--random", "6", "--steps", "120", "--shrink", "20")
    said = ream("program", *words, "--series", str(ANOTHER_COUNT))
    assert said.code == WRONG, said.out + said.err
    *steps, alarm = (line for line in said.out.splitlines() if "frames" not in line)
    assert "_refcount" in said.out, alarm
    assert len([step for step in steps if not step.startswith("WRONG")]) <= 15


def test_a_trace_names_what_each_step_enters_in_its_order(ream) -> None:
    text = "p0 mmap a 4 anon private rw\np0 write a\np0 fork p1\np0 mprotect a r\n"
    its = json.loads(ream("program", "-", "--trace", "--json", fed=text).out)["trace"]
    _, write, fork, protect = (one["functions"] for one in its)
    assert [one["line"] for one in its] == [1, 2, 3, 4]
    entered = ("handle_mm_fault", "do_anonymous_page", "folio_add_new_anon_rmap")
    assert sorted(map(write.index, entered)) == list(map(write.index, entered))
    assert "copy_page_range" in fork
    assert "copy_page_range" not in protect
    assert protect.index("mprotect_fixup") < protect.index("change_protection")
    said = ream("program", "-", "--trace", fed=text).out.splitlines()
    assert said[0] == "p0 mmap a 4 anon private rw"
    assert "nothing is wrong" in said[-1]


def test_a_difference_from_the_base_is_the_last_line_and_has_a_status(ream) -> None:
    words = ("program", "-", "--against-base", "--series", str(NO_RESCHEDULING))
    moved = "memory 512M 256M\np0 mmap a 512 anon private rw thp=always\np0 write a\n"
    said = ream(*words, fed=f"{moved}p0 move_pages a node=1\n")
    assert said.code == OPEN, said.out + said.err
    first, last = said.out.splitlines()
    assert "nothing is wrong" in first
    step = "`p0 move_pages a node=1`"
    assert last == (
        f"it differs with the series: after {step}, reschedules is other than without it"
    )
    said = ream(*words, fed=moved)
    assert said.code == OK, said.out + said.err
    assert said.out.endswith("\nthe base does the same in each step\n")


def test_without_a_series_there_is_no_base_to_compare_with(ream) -> None:
    said = ream("program", "-", "--against-base", fed=PROGRAM)
    assert said.code == USAGE
    assert "give --series" in said.err


def test_a_line_that_is_no_step_is_named(ream) -> None:
    said = ream("program", "-", fed="p0 mmap a 512 anon private rw\np0 wrote a\n")
    assert said.code == USAGE
    assert "standard input:2" in said.err


@pytest.mark.live
def test_the_running_kernel_does_the_same(ream) -> None:
    text = "p0 mmap a 64 anon private rw\np0 write a[0:9]\np0 fork p1\np1 munmap a[3:40]\n"
    said = ream("program", "-", "--live", fed=text)
    assert said.code == OK, said.out + said.err
    assert said.out.endswith("\nthe running kernel: 0 differences\n")
    again = json.loads(ream("program", "-", "--live", "--json", fed=text).out)
    assert again["differences"] == {"the running kernel": []}


@pytest.mark.vm
def test_a_guest_of_the_same_kernel_does_the_same(ream) -> None:
    text = "swap 64M\np0 mmap a 64 anon private rw\np0 write a[0:9]\np0 madvise a pageout\n"
    said = ream("program", "-", "--guest", fed=text)
    assert said.code == OK, said.out + said.err
    assert said.out.endswith("\na guest: 0 differences\n")


def test_a_program_can_be_had_in_c(ream) -> None:
    said = ream("program", "-", "--c", fed="p0 mmap a 4 anon private rw\np0 write a\n")
    assert said.code == OK
    assert "int main(" in said.out
