# SPDX-License-Identifier: GPL-2.0-only
"""What is fetched ahead is needed: descriptors of pages that the next entries map."""

import json
from collections.abc import Iterable

import pytest

pytestmark = [pytest.mark.vm, pytest.mark.xdist_group("count")]

PAGES = ("fork-4k", "fork-64k", "fork-32k-cold")
"""Rows in which each page's descriptor is asked for: by address, by entry, or within a batch that
is a long one."""

FREED = {"munmap-4k": "munmap-free-4k", "munmap-64k": "munmap-free-64k"}
"""Rows, and the same down to the page allocator."""

NONE = ("fork-16k", "fork-32k", "munmap-16k", "munmap-32k", "munmap-64k")
"""Rows of batches that lie in order: a Zen 3 that is asked for some of them takes longer."""


def prefetches(ream, names: Iterable[str]) -> dict[str, float]:
    """Prefetches per page that `ream` executes in each of these rows."""
    rows = [word for name in names for word in ("--row", name)]
    counted = ream("run", "fork", "--count", "--only", "before,ream", "--json", *rows)
    assert counted.code == 0, counted.err
    return {
        row["row"]: row["counted"]["variants"]["ream"].get("prefetches", 0)
        / row["counted"]["number"]
        for row in json.loads(counted.out)["rows"]
    }


def test_what_is_fetched_ahead_is_a_page_that_comes(ream) -> None:
    ahead = prefetches(ream, PAGES + NONE)
    # Before the first batch of a page table nobody knows that there are batches.
    assert all(0.9 < ahead[name] <= 1.02 for name in PAGES), ahead
    assert all(ahead[name] < 0.1 for name in NONE), ahead


def test_neighbours_in_the_lru_list_are_fetched_of_each_folio_that_is_freed(ream) -> None:
    ahead = prefetches(ream, (*FREED, *FREED.values()))
    # Both descriptors that removing a folio from its list writes to, and no other.
    of_freeing = {name: ahead[freed] - ahead[name] for name, freed in FREED.items()}
    assert of_freeing["munmap-4k"] == pytest.approx(2), ahead
    assert of_freeing["munmap-64k"] == pytest.approx(2 / 16), ahead
