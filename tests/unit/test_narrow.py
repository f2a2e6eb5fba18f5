# SPDX-License-Identifier: GPL-2.0-only
"""On a terminal of 80 columns columns are dropped, and no line of a table goes on in the next."""

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import pytest

from golden import REPORTED
from in_process import answer
from ream.experiment import BEFORE
from ream.record.record import Record
from ream.report import table
from ream.report.contract import Result, RowResult, Summary
from ream.report.short import in_short, main_variants
from ream.width import as_wide_as
from shipped import RECORDS

LONGER = {
    "fork": "20261128T232136Z-fork-native-011d",
    "mprotect-count": "20261128T122108Z-mprotect-native-0011",
    "mm": "20261130T022044Z-mm-native-b825",
}
GOES_ON = re.compile(r" {18,}(?:[-=?.\d]\S*|\[\S+|ns/page|GB/s|CPUs)(?: +(?![a-z]{3})\S+){0,9}")
"""Cells below the label of a line above, or the heading of such cells."""


@cache
def summary(name: str) -> Summary:
    run = {**REPORTED, **LONGER}[name]
    return Summary.from_object(Record.load(str(RECORDS / run), RECORDS).run, source=run)


def unlabelled(name: str, columns: int) -> list[str]:
    with as_wide_as(columns):
        lines = table.render(summary(name)).splitlines()
    assert max(map(len, lines)) <= columns
    return [line for line in lines if GOES_ON.fullmatch(line)]


@pytest.mark.parametrize("name", [*REPORTED, *LONGER])
def test_no_line_of_a_table_goes_on_at_80_columns(name: str) -> None:
    assert len(unlabelled(name, 80)) <= len(unlabelled(name, 100))


def test_a_verdict_on_a_published_line_stands_beside_it_at_80_columns() -> None:
    asked = ("replicate", "fork-pte-batch-v3", "--runs", str(RECORDS), "--record", "011d")
    lines = answer(asked, here=Path(), environment={"COLUMNS": "80"}, fed="").out.splitlines()
    (head,) = (line for line in lines if line.endswith("floor verdict"))
    sizes = [line for line in lines[lines.index(head) :] if re.match(r"[ *] \d+ ", line)]
    for line in sizes[:9]:
        assert line[head.index("verdict") :].split()[0] in (
            *("inconclusive", "undecided", "agrees", "as"),
        ), line
    assert max(map(len, lines)) <= 80


# --- A series of the user's ------------------------------------------------------------------


def with_series(name: str) -> Summary:
    """A run of fork with a series that is compared with the base, as `--series` makes it."""
    own = summary("fork")
    rows = tuple(one.model_copy(update=_given(one, name)) for one in own.rows)
    return own.model_copy(update={"rows": rows})


def _given(row: RowResult, name: str) -> Mapping[str, object]:
    its: Result = row.variants["base"].model_copy(update={"compared_with": "base"})
    return {"variants": {**row.variants, name: its}, "floors": {"base": row.floor}}


def test_a_series_of_the_user_is_first_and_in_short() -> None:
    its = with_series("mine")
    assert main_variants(its.rows) == ["mine"]
    text = table.render(its)
    block = text[text.index("\nfork-64k: ") :]
    assert block.index("  mine ") < block.index("  technique ")
    said = "\n".join(in_short(its))
    assert said.startswith(f"in short: effect against {BEFORE}, of given series against base")
    assert re.search(r"^  mine +=", said, re.MULTILINE)
    assert "ours" not in said


def test_a_row_that_no_grid_has_says_between_what_its_effect_is() -> None:
    its = with_series("mine")
    (row,) = (one for one in its.rows if one.row == "fork-64k")
    slower = {"effect": "slower", "ratio": 1.25, "low": 1.2, "high": 1.3, "of_limit": None}
    faster = {**slower, "effect": "faster", "ratio": 0.8, "low": 0.5}
    for words, said in ((slower, "1.25x slower [1.20 .. 1.30]"), (faster, "faster [0.77 .. 2.00]")):
        variants = {**row.variants, "mine": row.variants["mine"].model_copy(update=words)}
        alone = its.model_copy(update={"rows": (row.model_copy(update={"variants": variants}),)})
        assert said in "\n".join(in_short(alone))
