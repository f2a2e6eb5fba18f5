# SPDX-License-Identifier: GPL-2.0-only
"""A hosted row from end to end, for `make check`: only where its objects are compiled already."""

import json

import pytest

from ream.kernel import build, variant
from ream.kernel.source import cached_tree
from ream.paths import cache_dir


def test_a_row_is_linked_run_verified_and_recorded(ream, monkeypatch: pytest.MonkeyPatch) -> None:
    if cached_tree(cache_dir(), None) is None:
        pytest.skip("no kernel source is in the cache")
    for module, name in ((variant, "_prepared"), (build, "stream")):
        monkeypatch.setattr(module, name, lambda *_, **_kw: pytest.skip("nothing is compiled yet"))
    ran = ream("run", "null", "--row", "bits-65536", "--launches", "1", "--rounds", "2", "--json")
    assert ran.code == 0, ran.err
    (row,) = json.loads(ran.out)["rows"]
    assert set(row["variants"]) == {"before", "before-again", "same"}
    assert all(one["verified"] and one["rounds"] == 2 for one in row["variants"].values())
