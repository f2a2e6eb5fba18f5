# SPDX-License-Identifier: GPL-2.0-only
"""What fork() and munmap() take besides the page tables, on the kernel that this machine runs."""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ream.counted import counted
from ream.errors import CannotRunHere
from ream.measure.whole import LeftOut, left_out
from ream.stage.live import FOLIO_KIB, Step, Visits, kernel_release, visited, why_not

from .live import read_samples
from .programs import FORK_FOLIOS
from .rows import ForkRow

ROUNDS = 9
OPS: Mapping[str, tuple[str, ...]] = {"fork": ("fork",), "munmap": ("munmap", "munmap-shared")}
"""Operations of the workload for each operation of a row."""


@dataclass(frozen=True)
class _Wanted:
    """What is to be measured for some rows."""

    operation: str
    folio_kib: int
    mapping_bytes: int


def left_out_of(
    rows: Iterable[ForkRow], *, seed: int, work: Path, step: Step
) -> dict[str, LeftOut | str]:
    """By name of each row that times a part of a call: what is left out, or why it is unknown.

    fork: what a fork() of the same program takes without the mapping. munmap: what munmap() takes
    more where it gives up the pages than where another process maps them still.
    Raises VerificationFailed if memory is not what it must be, ReamError if the workload fails.
    """
    found: dict[str, LeftOut | str] = {}
    wanted: dict[_Wanted, list[str]] = defaultdict(list)
    rows = tuple(rows)
    sizes = {row.name: row.folio_bytes >> 10 for row in rows}
    for row in rows:
        if row.part_of is None:
            continue
        kib, reason = _size_for(row)
        if reason is None:
            wanted[_Wanted(row.operation, kib, row.mapping_bytes)].append(row.name)
        else:
            found[row.name] = f"what {row.part_of} takes besides could not be measured: {reason}"
    for mapping_bytes in sorted({one.mapping_bytes for one in wanted}):
        its = [one for one in wanted if one.mapping_bytes == mapping_bytes]
        step(f"timing whole {' and '.join(sorted({one.operation for one in its}))} calls")
        try:
            lost: dict[int, str] = {}
            visits = Visits(1, seed, work, step, lost=lost)
            said = list(_visits(its, mapping_bytes, visits))
        except CannotRunHere as cause:
            reason = f"the whole call could not be measured: {cause}"
            found |= {name: reason for one in its for name in wanted[one]}
            continue
        for one in its:
            measured = one if one.folio_kib not in lost else _instead(one, said)
            if measured is None:
                reason = f"the whole call could not be measured: {lost[one.folio_kib]}"
                found |= dict.fromkeys(wanted[one], reason)
                continue
            left = _left_out(measured, [text for kib, text in said if kib == measured.folio_kib])
            # Of other folios only what is left out is the same, and not the whole of it.
            unlike = replace(left, whole_ns=None)
            found |= {
                name: left if sizes[name] == measured.folio_kib else unlike for name in wanted[one]
            }
    return found


def _instead(lost: _Wanted, said: Sequence[tuple[int, str]]) -> _Wanted | None:
    """What is measured for a size that memory could not be mapped in; as in _size_for()."""
    sizes = sorted({kib for kib, _ in said})
    return replace(lost, folio_kib=sizes[0]) if sizes and lost.operation == "fork" else None


def _size_for(row: ForkRow) -> tuple[int, str | None]:
    """Folios that it is measured with, and why it cannot be.

    What fork() takes without the mapping does not depend on them.
    """
    kib = row.folio_bytes >> 10
    reason = why_not(kib, row.mapping_bytes)
    smallest = FOLIO_KIB[0]
    if reason and row.operation == "fork" and not why_not(smallest, row.mapping_bytes):
        return smallest, None
    return kib, reason


def _visits(its: Sequence[_Wanted], nr_bytes: int, visits: Visits) -> Iterator[tuple[int, str]]:
    """Size of folios, and what the workload said of a round of it."""
    ops = dict.fromkeys(op for one in its for op in OPS[one.operation])
    options = ["--bytes", str(nr_bytes), "--rounds", "1", "--ops", ",".join(ops)]
    sizes = sorted({one.folio_kib for one in its})
    for _, _, said in visited(
        FORK_FOLIOS,
        options,
        sizes,
        visits=visits,
        nr_bytes=nr_bytes,
        rounds=ROUNDS,
    ):
        yield json.loads(said.splitlines()[0])["hello"]["folio_kib"], said


def _left_out(one: _Wanted, rounds: Sequence[str]) -> LeftOut:
    kernel = (
        f"Linux {kernel_release()}, {one.folio_kib} KiB folios, {counted(len(rounds), 'round')}"
    )
    taken = [
        {each.op: each.time_ns for each in read_samples(said, launch=0, round_number=number)}
        for number, said in enumerate(rounds)
    ]
    whole = [times[one.operation] for times in taken]
    if one.operation == "fork":
        bare = [json.loads(said.splitlines()[0])["hello"]["bare_fork_ns"] for said in rounds]
        return left_out(whole, bare, f"fork() without the mapping, {kernel}")
    more = [times["munmap"] - times["munmap-shared"] for times in taken]
    return left_out(whole, more, f"munmap() less that of pages still shared, {kernel}")
