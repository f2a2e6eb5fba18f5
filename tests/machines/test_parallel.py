# SPDX-License-Identifier: GPL-2.0-only
"""A plan over two hosts by GNU parallel and ssh: what fails is done again, and nothing else."""

import json
import os
import subprocess
import time
from collections.abc import Callable, Mapping
from itertools import product
from pathlib import Path
from typing import Any

import pytest

# Two plans at once would disturb each other's measurements on so few CPUs.
pytestmark = pytest.mark.xdist_group("machines")

TINY = ("zone-device", "--row", "small-256MB", "--launches", "2", "--rounds", "1", "--seed", "5")
UP_S = 120.0

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def carry_out(network, tmp_path: Path, need) -> Run:
    """Run a plan's script as its user would, with the test's keys and a home of its own."""
    need("parallel")
    home = tmp_path / "operator"
    home.mkdir()

    def run(directory: Path, *words: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            ("sh", str(directory / "run.sh"), *words),
            env={**os.environ, "HOME": str(home), "PARALLEL_SSH": network.ssh},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )

    return run


def cells_of(directory: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (directory / "cells.jsonl").read_text().splitlines()]


def merged(ream, directory: Path) -> Mapping[str, Any]:
    plan = ("--plan", str(directory / "cells.jsonl"))
    said = ream("merge", str(directory / "records"), *plan, "--json")
    assert said.code == 0, said.err
    return json.loads(said.out)


@pytest.mark.vm
def test_only_the_cell_that_failed_is_done_again(ream, network, carry_out: Run, tmp_path) -> None:
    directory = tmp_path / "a plan"
    words = ("--emit", "parallel", "--hosts", "alpha,beta", "--ream", network.ream)
    assert ream("plan", *TINY, "--repeat", "3", *words, "-o", str(directory)).code == 0
    cells = cells_of(directory)
    for number, (host, cell) in enumerate(product(network.hosts, cells)):
        host.make(cell["id"], number, "small-256MB")
    wrong = cells[1]["id"]
    for host in network.hosts:  # on either, since a cell that fails is tried on the other
        host.fail_once(wrong)

    first = carry_out(directory)
    assert first.returncode == 1, first.stderr
    assert "some cells are not done" in first.stderr
    merge = merged(ream, directory)
    assert [one["cell"] for one in merge["missing"]] == [wrong]
    assert merge["again"] == f"sh '{directory}/run.sh' {wrong}"
    before = [len(host.calls()) for host in network.hosts]
    assert sum(before) == len(cells) + 1

    again = carry_out(directory)
    assert again.returncode == 0, again.stderr
    new = [call for host, n in zip(network.hosts, before, strict=True) for call in host.calls()[n:]]
    assert [wrong in call for call in new] == [True]
    merge = merged(ream, directory)
    assert (merge["missing"], merge["damaged"], merge["again"]) == ([], [], None)
    assert len(merge["machines"]) == 2
    assert sum(machine["records"] for machine in merge["machines"]) == len(cells)
    assert [row["row"] for row in merge["rows"]] == ["small-256MB"]


@pytest.mark.vm
def test_a_host_that_dies_is_caught_up_with_alone(ream, network, carry_out: Run, tmp_path) -> None:
    directory = tmp_path / "plan"
    words = ("--emit", "parallel", "--hosts", "alpha,beta", "--each-host", "--ream", network.ream)
    asked = (*TINY, "--launches", "4")  # enough of them to die in the middle
    assert ream("plan", *asked, *words, "-o", str(directory)).code == 0
    alpha, beta = network.hosts
    with subprocess.Popen(
        ("sh", str(directory / "run.sh")),
        env={**os.environ, "HOME": str(tmp_path), "PARALLEL_SSH": network.ssh},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as script:
        _wait_for(lambda: any('"launch": 1' in text for text in _begun(beta.home)))
        beta.die()
        _, said = script.communicate(timeout=300)
    assert script.returncode == 1, said
    assert not list(directory.rglob(".*.partial"))  # it stays where it can be gone on with
    merge = merged(ream, directory)
    assert len(merge["machines"]) == 1
    assert [(one["done"], one["wanted"]) for one in merge["missing"]] == [(1, 2)]
    done = (directory / "joblog.alpha").read_bytes()
    calls = alpha.calls()

    beta.start()
    again = carry_out(directory)
    assert again.returncode == 0, again.stderr
    assert alpha.calls() == calls
    assert (directory / "joblog.alpha").read_bytes() == done
    merge = merged(ream, directory)
    assert merge["missing"] == []
    assert [machine["records"] for machine in merge["machines"]] == [1, 1]
    # What beta had measured before it died is in its record; only the rest was measured again.
    assert sorted(len(one["settings"]["resumed"]) for one in _receipts(directory)) == [0, 1]
    for row in merge["rows"]:
        for variant in ("before-again", "published", "ream"):
            assert row["variants"][variant]["nr_machines"] == 2
            assert row["variants"][variant]["over"] == "machines"
            assert set(row["variants"][variant]["machines"]) == {"A", "B"}


def _begun(home: Path) -> list[str]:
    return [path.read_text() for path in home.rglob(".*.partial/samples.jsonl")]


def _receipts(directory: Path) -> list[dict[str, Any]]:
    return [json.loads(path.read_text()) for path in directory.rglob("records/*/*/receipt.json")]


def _wait_for(there: Callable[[], object]) -> None:
    ends_at = time.monotonic() + UP_S
    while not there():
        assert time.monotonic() < ends_at
        time.sleep(0.02)
