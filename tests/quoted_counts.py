# SPDX-License-Identifier: GPL-2.0-only
"""What an experiment's README quotes of a counted record, and what the record holds."""

import re
from collections.abc import Iterator
from pathlib import Path

from ream.record.record import Record
from ream.report.contract import Counted, Summary


def quoted_table(readme: Path, head: str) -> Iterator[list[str]]:
    """The cells of each line of the table whose first heading is given, the headings first."""
    text = readme.read_text()
    (table,) = re.findall(rf"^\| {head} \|.*\n(?:\|.*\n)+", text, re.MULTILINE)
    first, _, *lines = table.splitlines()
    for line in (first, *lines):
        yield [cell.strip().strip("`") for cell in line.strip("|").split("|")]


def counts_of(record: Path) -> dict[str, Counted]:
    """The counts of a record by row."""
    run = Record.load(str(record), record.parent).run
    rows = Summary.from_object(run, source=str(record)).rows
    return {row.row: row.counted for row in rows if row.counted is not None}
