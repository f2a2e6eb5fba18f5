# SPDX-License-Identifier: GPL-2.0-only
"""Functions of a whole kernel, counted in a guest: `ream run --stage vm --count`."""

import json
from typing import Any

import pytest

pytestmark = [pytest.mark.vm, pytest.mark.xdist_group("guests")]


def counted(ream, *words: str) -> list[Any]:
    ran = ream("run", *words, "--count", "--json")
    assert ran.code == 0, ran.err
    return [row["counted"] for row in json.loads(ran.out)["rows"]]


def test_a_system_call_is_counted_once_for_each_call(ream) -> None:
    small, large = counted(ream, "null", "--stage", "vm", "--only", "before")
    for its in (small, large):
        # The two copies of `before` are two boots of one kernel.
        assert its["repeats"]
        assert not its["inclusive"]
    few, many = (its["functions"]["before"]["__x64_sys_getppid"] for its in (small, large))
    for quantity, number in few.items():
        assert number % 1000 == 0, (quantity, number)
        assert many[quantity] == 4 * number


def test_a_guest_and_a_process_count_alike(ream) -> None:
    """What each descriptor of a device costs, in the whole kernel and hosted."""
    words = ("zone-device", "--only", "before,published,ream")
    device = ("--row", "fsdax-bind", "--set", "device_bytes=1GiB")
    (guest,) = counted(ream, *words, "--stage", "vm", *device)
    (hosted,) = counted(ream, *words, "--stage", "native", "--row", "small-256MB")
    for variant in ("before", "published", "ream"):
        each = [its["variants"][variant]["instructions"] / its["number"] for its in (guest, hosted)]
        assert each[0] == pytest.approx(each[1], rel=0.05), variant
