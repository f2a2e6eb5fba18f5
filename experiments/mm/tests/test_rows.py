# SPDX-License-Identifier: GPL-2.0-only
"""Rows of mm are programs, of which one step is measured."""

import pytest

from experiments.mm.rows import TEXTS, MmRow
from ream.errors import BadUsage
from ream.experiment import named
from ream.program.step import measured_line
from ream.program.text import parse

ROWS = named("mm").rows


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_row_is_a_program_of_which_one_step_is_measured(row: MmRow) -> None:
    assert measured_line(parse(row.text, row.name), row.name)
    assert str(row.pages) in row.title()


def test_every_program_is_that_of_a_row() -> None:
    assert {row.program for row in ROWS} == TEXTS.keys()


def test_a_line_for_each_page_stands_there_as_often() -> None:
    row = MmRow(name="three", program="fork-vmas", pages=3, rounds=1)
    assert row.text.count(" anon private rw\n") == 3
    assert "p0 mmap w2 1 anon private rw\n" in row.text


def test_a_program_of_which_no_step_is_measured_is_refused_by_line_with_the_way_out() -> None:
    program = parse("p0 mmap a 4 anon private rw\np0 write a\n", "a row")
    with pytest.raises(BadUsage, match="a row:2: no step up to here is measured: write `measure`"):
        measured_line(program, "a row")
