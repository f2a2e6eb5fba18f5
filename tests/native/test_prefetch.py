# SPDX-License-Identifier: GPL-2.0-only
"""What is fetched ahead is needed: descriptors of pages that the next entries map."""

import json

import pytest

pytestmark = pytest.mark.xdist_group("count")

ROWS = ("fork-4k", "fork-16k", "fork-32k", "fork-64k", "fork-32k-cold")


def test_a_short_batch_fetches_nothing_beyond_its_folio(ream) -> None:
    """One prefetch for each page: by address, by entry, or within a batch that is a long one."""
    rows = [word for name in ROWS for word in ("--row", name)]
    counted = ream("run", "fork", "--count", "--only", "before,ream", "--json", *rows)
    assert counted.code == 0, counted.err
    ahead = {
        row["row"]: row["counted"]["variants"]["ream"]["prefetches"] / row["counted"]["number"]
        for row in json.loads(counted.out)["rows"]
    }
    # Before the first batch of a page table nobody knows that it is a long one.
    assert all(0.9 < each <= 1.02 for each in ahead.values()), ahead


def test_where_long_batches_lie_in_order_none_is_fetched_for_unmapping(ream) -> None:
    """A Zen 3 that is asked for half of a folio of 64 KiB takes longer than one that is not."""
    rows = [word for name in ("munmap-32k", "munmap-64k") for word in ("--row", name)]
    counted = ream("run", "fork", "--count", "--only", "before,ream", "--json", *rows)
    assert counted.code == 0, counted.err
    short, long = (
        row["counted"]["variants"]["ream"].get("prefetches", 0) / row["counted"]["number"]
        for row in json.loads(counted.out)["rows"]
    )
    assert 0.9 < short <= 1.01
    assert long < 0.1
