# SPDX-License-Identifier: GPL-2.0-only
"""Text for people at any terminal: no line too long, no cell cut, and records as ever."""

import os
import re
from functools import cache
from pathlib import Path

import pytest

from ream.record.record import Record
from ream.report import letter, table
from ream.report.contract import Summary
from ream.report.short import LETTERS
from ream.width import NARROWEST, WIDEST, as_wide_as, table_line, terminal_columns, width
from shipped import EACH, RECORDS

COLUMNS = (
    NARROWEST,
    pytest.param(72, marks=pytest.mark.vm),
    80,
    pytest.param(99, marks=pytest.mark.vm),
)


@cache
def summary(name: str) -> Summary:
    return Summary.from_object(Record.load(str(RECORDS / name), RECORDS).run, source=name)


RATIO = re.compile(r"[\d.e+-]+ \[[^]]*\]")


def _cut(word: str) -> str:
    """A word that was before a share of the limit."""
    return word.removesuffix(",")


@cache
def whole_table(name: str) -> str:
    assert width() == WIDEST
    return table.render(summary(name))


@pytest.mark.parametrize("columns", COLUMNS)
@pytest.mark.parametrize("path", EACH)
def test_a_table_is_no_wider_than_its_terminal_and_has_the_same_ratios(
    path: Path, columns: int
) -> None:
    whole = whole_table(path.name)
    with as_wide_as(columns):
        narrow = table.render(summary(path.name))
    assert max(map(len, narrow.splitlines())) <= columns
    # A cell that was cut in the middle would be two words. Columns may be left out, no others.
    found = [RATIO.findall(" ".join(text.split())) for text in (narrow, whole)]
    assert sorted(found[0]) == sorted(found[1])
    assert {*narrow.split()} - {*whole.split()} <= {
        *("mixed", "verdicts:", *LETTERS, *LETTERS.values()),
        *(f"{word}," for name in LETTERS for word in name.split()),
        *map(_cut, whole.split()),
    }


@pytest.mark.parametrize("path", EACH)
def test_a_letter_is_as_wide_from_any_terminal(path: Path) -> None:
    with as_wide_as(NARROWEST):
        narrow = letter.render(summary(path.name))
    assert narrow == letter.render(summary(path.name))


def test_a_width_has_bounds_and_ends_with_its_block() -> None:
    assert width() == WIDEST
    for asked, given in {0: NARROWEST, 59: NARROWEST, 83: 83, 200: WIDEST}.items():
        with as_wide_as(asked):
            assert width() == given
    assert width() == WIDEST


def test_a_table_goes_on_below_itself_at_the_same_places_in_every_line() -> None:
    cells = [f"{number:>20}" for number in range(5)]
    with as_wide_as(NARROWEST):
        head = list(table_line(f"{'row':<10}", cells))
        line = list(table_line(f"{'':<10}", [f"{7:>20}", *cells[1:]]))
    assert [len(one) for one in head] == [50, 50, 30]
    assert [len(one) for one in line] == [50, 50, 30]
    assert head[1].split() == ["2", "3"]


def test_who_sets_no_width_and_has_no_terminal_gets_the_widest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "64")
    assert terminal_columns() == 64
    monkeypatch.delenv("COLUMNS")
    with Path(os.devnull).open() as nowhere:
        monkeypatch.setattr("sys.__stdout__", nowhere)
        assert terminal_columns() == WIDEST
