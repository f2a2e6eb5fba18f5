# SPDX-License-Identifier: GPL-2.0-only
"""What is fetched ahead is needed: descriptors of pages that the next entries map."""

import json

import pytest

pytestmark = pytest.mark.xdist_group("count")

PAGES = ("fork-4k", "fork-64k", "fork-32k-cold")
"""Rows in which each page's descriptor is asked for: by address, by entry, or within a batch that
is a long one."""

NONE = ("fork-16k", "fork-32k", "munmap-16k", "munmap-32k", "munmap-64k")
"""Rows of batches that lie in order: a Zen 3 that is asked for some of them takes longer."""


def test_what_is_fetched_ahead_is_a_page_that_comes(ream) -> None:
    rows = [word for name in PAGES + NONE for word in ("--row", name)]
    counted = ream("run", "fork", "--count", "--only", "before,ream", "--json", *rows)
    assert counted.code == 0, counted.err
    ahead = {
        row["row"]: row["counted"]["variants"]["ream"].get("prefetches", 0)
        / row["counted"]["number"]
        for row in json.loads(counted.out)["rows"]
    }
    # Before the first batch of a page table nobody knows that there are batches.
    assert all(0.9 < ahead[name] <= 1.02 for name in PAGES), ahead
    assert all(ahead[name] < 0.1 for name in NONE), ahead
