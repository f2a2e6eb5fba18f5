# SPDX-License-Identifier: GPL-2.0-only
"""Counts on the pages of docs/questions are those of the computer that is hosted now."""

import json

import pytest

import questions
from ream.experiment import BEFORE

pytestmark = [pytest.mark.native, pytest.mark.xdist_group("computer")]

ROWS = {
    "6.12": ("reclaim-clean", "truncate", "pread"),
    "7.3": ("fork-thp",),
}
"""What these execute depends on libmm, besides on the kernel: the first three on its files and its
disk, and fork() on whether what it stands in for gives the memory of a process back."""


@pytest.mark.parametrize("base", ROWS)
def test_rows_count_as_on_the_pages(ream, base: str) -> None:
    words = [word for row in ROWS[base] for word in ("--row", row)]
    said = ream("run", "mm", "--base", base, "--count", "--json", *words)
    assert said.code == 0, said.err
    for row in json.loads(said.out)["rows"]:
        found = row["counted"]["variants"][BEFORE]["instructions"]
        kept = questions.counts()[row["row"]][base]["all"]["instructions"]
        assert found == kept, f"count {row['row']} again, and the rows of its pages"
