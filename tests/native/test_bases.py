# SPDX-License-Identifier: GPL-2.0-only
"""Other bases: kernels of two trees in one program, each with its own oracle, and ports of ours."""

import json
from collections.abc import Iterable

import pytest
from _pytest.mark import ParameterSet

ROWS = {
    "zone-device": ("small-256MB",),
    "fork": ("fork-4k", "exit-64k"),
    "deferred-init": ("1g-2-threads",),
    "migrate": ("64k-serial",),
}
OTHER = "7.3"


def one_of(names: Iterable[str], quick: str = "") -> list[ParameterSet]:
    """One at most is compiled in the quick suite; the others take minutes each."""
    return [pytest.param(one, marks=() if one == quick else pytest.mark.vm) for one in names]


@pytest.mark.parametrize("experiment", one_of(ROWS))
def test_what_an_upgrade_does_is_measured_in_one_program(ream, tmp_path, experiment: str) -> None:
    rows = [word for row in ROWS[experiment] for word in ("--row", row)]
    variants = ("--variant", "6.12", "--variant", OTHER)
    counts = ("--launches", "2", "--rounds", "1", "--output", str(tmp_path))
    ran = ream("run", experiment, "--stage", "native", *variants, *rows, *counts, "--json")
    assert ran.code == 0, ran.err
    summary = json.loads(ran.out)
    for row in summary["rows"]:
        assert set(row["variants"]) == {"before", "before-again", OTHER}
        assert all(one["verified"] for one in row["variants"].values())
    (record,) = tmp_path.iterdir()
    kernel = json.loads((record / "receipt.json").read_text())["kernel"]
    assert kernel["version"].startswith("6.12.")
    assert kernel["trees"][OTHER]["version"].startswith(f"{OTHER}.")
    samples = [json.loads(line) for line in (record / "samples.jsonl").read_text().splitlines()]
    for launch in (0, 1):
        # In each round both are there, in the order that was drawn.
        assert {OTHER, "before"} <= {
            one["subject"] for one in samples if one["launch"] == launch and one["round"] == 0
        }


PORTS = {
    "zone-device": "small-256MB",
    "deferred-init": "1g-2-threads",
    "fork": "munmap-free-4k",
}


@pytest.mark.vm
@pytest.mark.parametrize("experiment", one_of(PORTS, "zone-device"))
def test_ports_of_ours_run_verified_on_their_base(ream, tmp_path, experiment: str) -> None:
    """Every kernel passes the edges and mixtures of its oracle first, or the run ends with 5."""
    counts = ("--launches", "1", "--rounds", "1", "--output", str(tmp_path))
    ran = ream("run", experiment, "--base", OTHER, "--row", PORTS[experiment], *counts, "--json")
    assert ran.code == 0, ran.err
    assert "left out" not in ran.err
    (row,) = json.loads(ran.out)["rows"]
    assert {"before", "before-again", "published", "ream"} == set(row["variants"])
    assert all(one["verified"] for one in row["variants"].values())
    (record,) = tmp_path.iterdir()
    variants = json.loads((record / "receipt.json").read_text())["kernel"]["variants"]
    applied = [series["name"] for series in variants["ream"]]
    assert applied
    assert all(name.startswith(f"{OTHER}-") for name in applied)
