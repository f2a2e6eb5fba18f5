# SPDX-License-Identifier: GPL-2.0-only
"""What is fetched ahead is needed: descriptors of pages that the next entries map."""

import json

import pytest

pytestmark = pytest.mark.xdist_group("count")

ROWS = ("fork-4k", "fork-16k", "fork-32k", "fork-64k", "fork-32k-cold")


def test_a_short_batch_fetches_nothing_beyond_its_folio(ream) -> None:
    """One prefetch for each page, by address or by entry, and none on top of it within a batch.

    Folios of 64 KiB are batches that are longer than the prefetch looks ahead: each of their pages
    asks for another one, and half of these are those that a look at the entries asks for, too.
    """
    rows = [word for name in ROWS for word in ("--row", name)]
    counted = ream("run", "fork", "--count", "--only", "before,ream", "--json", *rows)
    assert counted.code == 0, counted.err
    ahead = {
        row["row"]: row["counted"]["variants"]["ream"]["prefetches"] / row["counted"]["number"]
        for row in json.loads(counted.out)["rows"]
    }
    short = {name: each for name, each in ahead.items() if name != "fork-64k"}
    assert all(0.9 < each <= 1.01 for each in short.values()), ahead
    assert 1.4 < ahead["fork-64k"] <= 1.51, ahead
