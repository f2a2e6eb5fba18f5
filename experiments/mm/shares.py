# SPDX-License-Identifier: GPL-2.0-only
"""Writes the table of docs/bias.md: how well hosted times predict those of the running kernel.

PYTHONPATH=lab python experiments/mm/shares.py RECORD..., each of a run with --beside-live.
"""

import re
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from ream.experiment import is_copy
from ream.paths import CHECKOUT, RECORDS
from ream.record.machine import Machine
from ream.record.record import Record

PAGE = CHECKOUT / "docs" / "bias.md"
BEGIN, END = "<!-- shares.py writes what follows -->", "<!-- shares.py wrote this -->"
WITHIN = 1.25
"""A time predicts another that is within this factor."""

Cells = Mapping[str, Any]


def tables(records: list[Record]) -> str:
    """A table for each record, with how many of its ratios are within WITHIN."""
    return "\n".join(line for record in records for line in _of(record))


def _of(record: Record) -> Iterator[str]:
    rows = [row for row in record.run["rows"] if row["live"] and row["live"]["slope"]]
    names = [name for name in rows[0]["live"]["slope"]["hosted"] if not is_copy(name)]
    machine = Machine.model_validate(record.receipt["machine"])
    version = record.receipt["kernel"]["version"]
    yield f"{machine.cpu} (family {machine.family} model {machine.model}), the running kernel is"
    yield f"{release(machine.kernel)}, the hosted one {version}, record `{record.run['run']}`:\n"
    folios = list(dict.fromkeys(_folio(row["row"]) for row in rows))
    slopes = {(_operation(row["row"]), _folio(row["row"])): row["live"]["slope"] for row in rows}
    yield f"| | hosted kernel | {' | '.join(folios)} |"
    yield f"|---|---|{'---|' * len(folios)}"
    for operation in dict.fromkeys(operation for operation, _ in slopes):
        for name in names:
            cells = [_cell(slopes.get((operation, folio)), name) for folio in folios]
            yield f"| {operation} | `{name}` | {' | '.join(cells)} |"
    yield ""
    nears = []
    for name in names:
        over = [slope["over"][name] for slope in slopes.values()]
        near = sum(one is not None and 1 / WITHIN <= one["ratio"] <= WITHIN for one in over)
        nears.append(f"`{name}` {near} of {len(over)}")
    yield f"Within a factor of {WITHIN} are {', '.join(nears)}.\n"


def release(kernel: str | None) -> str:
    """The first two numbers of the running kernel's version: the rest names a host."""
    found = re.match(r"\d+\.\d+", kernel or "")
    return found[0] if found else "of unknown version"


def _operation(row: str) -> str:
    """`beside-fork-64K-8192` is fork, in folios of 64 KiB."""
    return row.split("-")[1]


def _folio(row: str) -> str:
    size = row.split("-")[2]
    return f"{size[:-1]} {size[-1]}iB"


def _ns(value: float) -> str:
    return f"{value:.1f}" if abs(value) >= 1 else f"{value:.2f}"


def _cell(slope: Cells | None, name: str) -> str:
    """Both times of a page, and their ratio with its interval."""
    if slope is None:
        return ""
    both, over = f"{_ns(slope['ns_per_page'])} / {_ns(slope['hosted'][name])}", slope["over"][name]
    if over is None:
        return f"{both}: noise"
    return f"{both}: {over['ratio']:.2f} ({over['low']:.2f} to {over['high']:.2f})"


def page(text: str, records: list[Record]) -> str:
    """The text of a page with the tables of records in place of those that it has."""
    before, rest = text.split(BEGIN)
    return f"{before}{BEGIN}\n{tables(records)}\n{END}{rest.split(END)[1]}"


def main() -> None:
    """Put the tables of the records named on the command line into the page."""
    records = [Record.load(name, RECORDS) for name in sys.argv[1:]]
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8"), records), encoding="utf-8")


if __name__ == "__main__":
    main()
