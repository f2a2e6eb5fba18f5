# SPDX-License-Identifier: GPL-2.0-only
"""move_pages(2) of the kernel this machine runs, where it has two nodes with memory."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ream.errors import BadUsage, CannotRunHere
from ream.measure.taken import Taken
from ream.session.live import Live
from ream.size import format_size
from ream.stage.live import (
    Visits,
    grouped,
    known_sizes,
    operations,
    sample_of,
    settings_lines,
    visited,
    why_not,
)

from .programs import MOVE_FOLIOS
from .rows import MigrateRow

NODES = "/sys/devices/system/node"

BUFFERS = 2
"""Memory that a move takes, in buffers: where it is, and where it goes."""

WARM_UP = 0
"""The workload's round that is no sample: all that a process does for the first time is in it."""


@dataclass(frozen=True)
class MoveSample:
    """One move of a verified buffer."""

    folio_kib: int
    launch: int
    round: int
    time_ns: int
    nr_bytes: int
    verified: bool
    cpu_ns: int | None = None
    """CPU time of the caller, which copies itself."""


def memory_nodes(root: Path = Path("/")) -> tuple[int, ...]:
    """Nodes that have memory, in ascending order; none where the kernel knows no nodes."""
    try:
        listed = (root / NODES.lstrip("/") / "has_memory").read_text().strip()
    except OSError:
        return ()
    nodes: list[int] = []
    for part in filter(None, listed.split(",")):
        first, _, last = part.partition("-")
        nodes += range(int(first), int(last or first) + 1)
    return tuple(nodes)


def why_not_move(folio_kib: int, buffer_bytes: int, root: Path = Path("/")) -> str | None:
    """Why moves of folios of a size cannot be measured on this machine; None if they can."""
    nodes = memory_nodes(root)
    if not nodes:
        return "this kernel has no NUMA nodes; move_pages(2) needs two"
    if len(nodes) == 1:
        return f"this machine has one NUMA node (node {nodes[0]}); move_pages(2) needs two"
    if reason := why_not(folio_kib, buffer_bytes * BUFFERS, root):
        return reason
    for node in nodes[:2]:
        if (free := free_bytes(node, root)) < buffer_bytes:
            return (
                f"{format_size(buffer_bytes)} do not fit into the {free >> 20} MiB that are free"
                f" in node {node}"
            )
    return None


def free_bytes(node: int, root: Path = Path("/")) -> int:
    """Memory of a node that nobody uses or that only caches files; 0 if that is not known."""
    try:
        text = (root / NODES.lstrip("/") / f"node{node}/meminfo").read_text()
    except OSError:
        return 0
    fields = {words[2]: int(words[3]) for line in text.splitlines() if (words := line.split())}
    return (fields.get("MemFree:", 0) + fields.get("Inactive(file):", 0)) << 10


def measure_moves(
    folio_kib: Sequence[int],
    *,
    visits: Visits,
    buffer_bytes: int,
    rounds: int,
) -> Iterator[MoveSample]:
    """Time move_pages(2) of a buffer in folios of each size, between the first two nodes.

    Arguments, settings and errors as of `measure_folios`; CannotRunHere if `why_not_move`.
    """
    if buffer_bytes <= 0 or buffer_bytes % (2 << 20):
        raise BadUsage(f"a buffer of {buffer_bytes} bytes: it has to be a multiple of 2 MiB")
    for kib in known_sizes(folio_kib):
        if reason := why_not_move(kib, buffer_bytes):
            raise CannotRunHere(f"folios of {kib} KiB: {reason}")
    source, target = memory_nodes()[:2]
    options = ["--bytes", str(buffer_bytes), "--rounds", "1"]
    options += ["--from", str(source), "--to", str(target)]
    for launch, number, said in visited(
        MOVE_FOLIOS, options, folio_kib, nr_bytes=buffer_bytes, rounds=rounds, visits=visits
    ):
        yield from read_moves(said, launch=launch, round_number=number)


def read_moves(said: str, *, launch: int, round_number: int) -> Iterator[MoveSample]:
    """The samples in what a workload of one round printed."""
    for its in operations(said):
        if its["round"] != WARM_UP:
            yield MoveSample(
                its["folio_kib"],
                launch,
                round_number,
                its["time_ns"],
                its["nr_bytes"],
                its["verified"],
                its.get("cpu_ns"),
            )


def taken(rows: Sequence[MigrateRow], visits: Visits) -> Iterator[Taken]:
    """Every sample of rows; those of one size of buffer are one program's."""
    for alike in grouped(rows, lambda row: (row.buffer_bytes, row.rounds)):
        wanted = {row.folio_bytes >> 10: row for row in alike}
        for said in measure_moves(
            known_sizes(wanted),
            visits=visits,
            buffer_bytes=alike[0].buffer_bytes,
            rounds=alike[0].rounds,
        ):
            row = wanted[said.folio_kib]
            yield Taken(sample_of(said, row.name, said.nr_bytes, said.cpu_ns))


LIVE: Live[MigrateRow] = Live(
    why_not=lambda row: why_not_move(row.folio_bytes >> 10, row.buffer_bytes),
    taken=taken,
    plan_lines=lambda rows: settings_lines(row.folio_bytes >> 10 for row in rows),
    programs=(MOVE_FOLIOS,),
)
