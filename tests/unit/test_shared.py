# SPDX-License-Identifier: GPL-2.0-only
"""Notes of many rows stand once in a table, with the rows that they apply to."""

import pytest

from ream.report.contract import RowResult
from ream.report.shared import left, shared

FLOOR = "the noise floor reaches {} % here: a smaller effect cannot be seen"


def row(name: str, *notes: str) -> RowResult:
    return RowResult(
        row=name, params={}, unit="ns", better="lower", floor=None, limit=None, variants={},
        published_table=None, notes=notes,
    )  # fmt: skip


def test_a_note_of_three_rows_stands_once_with_the_range_of_its_number() -> None:
    rows = [row(f"fork-{size}", FLOOR.format(size)) for size in (9, 10, 64)]
    rows += [row("munmap-4k", "another")]
    (found,) = shared(rows)
    assert found.words(4) == f"{FLOOR.format('9 to 64')} (in fork-{{9, 10, 64}})"
    assert found.words(3).endswith("(in all rows)")
    assert [left(one, "note", [found]) for one in rows] == [[], [], [], ["another"]]


@pytest.mark.parametrize(
    "notes",
    [
        [FLOOR.format(9)] * 2,
        [f"base takes {low} [{high} .. 2.0] of the time" for low, high in ((1, 3), (1, 4), (2, 5))],
        ["one", "another", "a third"],
    ],
    ids=["of two rows", "with several numbers", "that differ"],
)
def test_other_notes_stay_with_their_rows(notes: list[str]) -> None:
    assert shared([row(f"row-{number}", note) for number, note in enumerate(notes)]) == ()


def test_a_command_in_a_note_names_no_single_row() -> None:
    said = "undecided: ours; with about {n} launches, `--row {row} --launches {n}`, it would be"
    rows = [row(f"a-{n}k-cold", said.format(n=n, row=f"a-{n}k-cold")) for n in (4, 8, 16)]
    assert shared(rows)[0].words(9) == (
        "undecided: ours; with about 4 to 16 launches, `--row ROW --launches N`, it would be"
        " (in a-{4k, 8k, 16k}-cold)"
    )
