# SPDX-License-Identifier: GPL-2.0-only
"""Moves between nodes on the running kernel: what it cannot, it says; what it says, we read."""

import json
import subprocess
from pathlib import Path

import pytest

from experiments.migrate.live import (
    MoveSample,
    measure_moves,
    memory_nodes,
    read_moves,
    why_not_move,
)
from experiments.migrate.programs import MOVE_FOLIOS
from ream.errors import BadUsage, CannotRunHere
from ream.stage.live import Visits, visit_order
from ream.stage.workload import build_workload, run_workload

pytestmark = pytest.mark.xdist_group("settings")

BUFFER = 32 << 20
ONE_NODE = len(memory_nodes()) < 2


def machine(root: Path, has_memory: str | None, free_kib: int = 1 << 20) -> Path:
    """A machine's files, with these nodes."""
    (root / "proc").mkdir()
    (root / "proc/meminfo").write_text("MemAvailable:    2097152 kB\n")
    nodes = root / "sys/devices/system/node"
    nodes.mkdir(parents=True)
    if has_memory is not None:
        (nodes / "has_memory").write_text(f"{has_memory}\n")
        for number in memory_nodes(root):
            (nodes / f"node{number}").mkdir()
            text = f"Node {number} MemTotal: 9 kB\nNode {number} MemFree: {free_kib} kB\n"
            (nodes / f"node{number}/meminfo").write_text(text)
    return root


@pytest.mark.parametrize(
    ("listed", "nodes"), [("0", (0,)), ("0-1", (0, 1)), ("0,2-3", (0, 2, 3)), ("", ())]
)
def test_nodes_with_memory_are_read_from_sysfs(
    tmp_path: Path, listed: str, nodes: tuple[int, ...]
) -> None:
    assert memory_nodes(machine(tmp_path, listed)) == nodes


@pytest.mark.parametrize(
    ("listed", "reason"),
    [
        (None, "this kernel has no NUMA nodes; move_pages(2) needs two"),
        ("0", "this machine has one NUMA node (node 0); move_pages(2) needs two"),
        ("1", "this machine has one NUMA node (node 1); move_pages(2) needs two"),
    ],
)
def test_a_machine_without_two_nodes_says_so(
    tmp_path: Path, listed: str | None, reason: str
) -> None:
    assert why_not_move(4, BUFFER, machine(tmp_path, listed)) == reason


def test_two_nodes_with_room_are_enough(tmp_path: Path) -> None:
    root = machine(tmp_path, "0,2")
    assert why_not_move(4, BUFFER, root) is None
    assert "do not fit into the 2048 MiB" in str(why_not_move(4, 2 << 30, root))
    (root / "sys/devices/system/node/node2/meminfo").write_text("Node 2 MemFree: 1024 kB\n")
    assert why_not_move(4, BUFFER, root) == (
        "32 MiB do not fit into the 1 MiB that are free in node 2"
    )


@pytest.mark.skipif(not ONE_NODE, reason="this machine has two nodes")
def test_here_it_cannot_be_measured(tmp_path: Path) -> None:
    samples = measure_moves(
        [4], buffer_bytes=BUFFER, rounds=1, visits=Visits(1, 1, tmp_path, print)
    )
    with pytest.raises(CannotRunHere, match="one NUMA node|no NUMA nodes"):
        next(samples)
    with pytest.raises(CannotRunHere, match="one NUMA node|no NUMA nodes"):
        run_workload((str(build_workload(MOVE_FOLIOS, tmp_path)), "--folio-kib", "4"), tmp_path, 60)


@pytest.mark.parametrize(("kib", "nr_bytes"), [(8, BUFFER), (4, 4096), (4, 0)])
def test_what_cannot_be_asked_for_is_refused(tmp_path: Path, kib: int, nr_bytes: int) -> None:
    samples = measure_moves(
        [kib], buffer_bytes=nr_bytes, rounds=1, visits=Visits(1, 1, tmp_path, print)
    )
    with pytest.raises(BadUsage):
        next(samples)


@pytest.mark.skipif(ONE_NODE, reason="move_pages(2) needs two nodes")
def test_folios_are_moved_and_verified(tmp_path: Path) -> None:
    samples = list(
        measure_moves([4], buffer_bytes=BUFFER, rounds=2, visits=Visits(2, 1, tmp_path, print))
    )
    assert [(it.launch, it.round) for it in samples] == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert all(it.verified and it.nr_bytes == BUFFER for it in samples)


def test_the_first_move_of_a_process_is_no_sample() -> None:
    fields = {"op": "move_pages", "folio_kib": 64, "nr_bytes": BUFFER, "verified": True}
    lines = [{**fields, "round": number, "time_ns": 10 + number} for number in (0, 1)]
    said = "\n".join(json.dumps(line) for line in ({"hello": {}}, *lines, {"end": {"ok": True}}))
    assert list(read_moves(said, launch=2, round_number=3)) == [
        MoveSample(64, 2, 3, 11, BUFFER, True)
    ]


def test_every_size_comes_once_in_every_round() -> None:
    planned = list(visit_order((4, 64), rounds=2, launches=2, seed=9))
    assert sorted(planned) == [(a, b, kib) for a in (0, 1) for b in (0, 1) for kib in (4, 64)]


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ((), "--folio-kib K: missing"),
        (("--folio-kib", "5"), "4, 16, 32"),
        (("--folio-kib", "4", "--bytes", "4096"), "not a multiple of 2 MiB"),
        (("--folio-kib", "4", "--to", "0"), "the same node"),
        (("--folio-kib", "4", "--to", "64"), "nodes are below 64"),
        (("--folio-kib", "4", "--path", "spoon"), "--path spoon"),
        (("--folio-kib", "4", "--path", "demotion", "--rounds", "1"), "has no rounds but 0"),
        (("--folio-kib", "4", "--rounds"), "lacks its value"),
        (("--quux", "4"), "not an option"),
    ],
)
def test_wrong_words_are_refused_with_exit_2(
    options: tuple[str, ...], complaint: str, tmp_path: Path
) -> None:
    program = build_workload(MOVE_FOLIOS, tmp_path)
    said = subprocess.run(
        (str(program), *options), capture_output=True, text=True, timeout=60, check=False
    )
    assert said.returncode == 2
    assert complaint in said.stderr
    assert said.stderr.count("\n") == 1
