# SPDX-License-Identifier: GPL-2.0-only
"""Counts on the pages of docs/questions are those of the computer that is hosted now."""

import json

import pytest

import questions
from ream.experiment import BEFORE

pytestmark = [pytest.mark.native, pytest.mark.xdist_group("computer")]

ROWS = ("reclaim-clean", "truncate", "pread")
"""What these execute depends on the files and the disk of libmm, besides on the kernel."""


def test_rows_count_as_on_the_pages(ream) -> None:
    words = [word for row in ROWS for word in ("--row", row)]
    said = ream("run", "mm", "--count", "--json", *words)
    assert said.code == 0, said.err
    for row in json.loads(said.out)["rows"]:
        found = row["counted"]["variants"][BEFORE]["instructions"]
        kept = questions.counts()[row["row"]]["6.12"]["all"]["instructions"]
        assert found == kept, f"count {row['row']} again, and the rows of its pages"
