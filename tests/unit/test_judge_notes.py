# SPDX-License-Identifier: GPL-2.0-only
"""Notes of a judgement: what is so of several rows is said once."""

from collections.abc import Sequence

from ream.judge.notes import WIDE, Notes
from ream.measure.stable import Stable, Wide
from ream.session.until import how_it_ends

ROWS = [Wide(f"fork-{n}k", "before-again", 10.0 + n) for n in range(8)]


def warning(rows: Sequence[Wide], minutes: float) -> str:
    ended = how_it_ends(rows, Stable(2.0, 64, minutes), 3, most=64, minutes=minutes)
    return f"{ended}; a quieter machine, or a longer run, narrows it"


def test_rows_that_are_not_stable_are_named_in_one_note() -> None:
    notes = Notes()
    notes.add_warning("fork", warning(ROWS[:2], 0.2))
    notes.add_warning("mm", warning([Wide("mmap", "patched", None)], 0.1))
    (line,) = notes.lines()
    assert line == f"fork-0k (10.0 %), fork-1k (11.0 %), mmap (no interval): {WIDE}"


def test_rows_that_are_not_named_are_counted() -> None:
    notes = Notes()
    notes.add_warning("fork", warning(ROWS, 0.2))
    assert notes.lines()[0].endswith(f"fork-5k (15.0 %), 2 more: {WIDE}")


def test_a_row_that_is_timed_again_has_its_last_width() -> None:
    notes = Notes()
    notes.add_warning("fork", warning(ROWS[:2], 0.2))
    notes.forget_wide(["fork-0k"])
    assert notes.lines() == (f"fork-1k (11.0 %): {WIDE}",)
    notes.forget_wide(["fork-1k"])
    assert notes.lines() == ()


def test_what_is_so_of_two_experiments_is_said_once_and_the_rest_apart() -> None:
    notes = Notes()
    for who in ("fork", "mm", "fork"):
        notes.add_warning(who, "swap is in use")
    notes.add_warning("mm", "the load was 3")
    assert notes.lines() == ("fork, mm: swap is in use", "mm: the load was 3")


def test_of_notes_that_differ_in_numbers_one_has_all_of_them() -> None:
    notes = Notes()
    for who, share in (("fork", "61.5 %"), ("mm", "59 %"), ("mremap", "59 %")):
        notes.add_warning(who, f"other programs used {share} of the time (more than 5 %)")
    said = "fork, mm, mremap: other programs used 61.5/59 % of the time (more than 5 %)"
    assert notes.lines() == (said,)
