# SPDX-License-Identifier: GPL-2.0-only
"""fork in the live stage: fork() and munmap() of anonymous memory in folios of each size."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from ream.errors import BadUsage, CannotRunHere
from ream.experiment import STRUCT_PAGE_BYTES
from ream.measure.taken import Taken
from ream.published import Table, lookup
from ream.record.machine import Machine, read_machine
from ream.session.live import Live
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

from .programs import FORK_FOLIOS
from .rows import ForkRow

DISPLACED_L3 = 2
"""Times the last-level cache that is written before each operation, so that it begins cold."""

OPS = ("fork", "refork", "munmap")
"""Timed unless others are asked for; workloads/fork_folios.c tells what they are."""


@dataclass(frozen=True)
class FolioSample:
    """One operation over one verified mapping."""

    folio_kib: int
    launch: int
    round: int
    op: str
    time_ns: int
    nr_ptes: int
    verified: bool


def measure_folios(
    folio_kib: Sequence[int],
    *,
    visits: Visits,
    mapping_bytes: int,
    rounds: int,
    ops: Sequence[str] = OPS,
    displace_bytes: int = 0,
    scattered: bool = False,
    check_contents: bool = False,
) -> Iterator[FolioSample]:
    """Time operations over anonymous memory in folios of each size; every sample is verified.

    mapping_bytes: a multiple of 2 MiB. visits.work: a folder where programs may run.
    displace_bytes: other memory written before every operation, to empty the caches.
    scattered: folios are first touched in random order instead of by address.
    Every visit is a process of its own, and only during one are settings changed: none is while
    the caller has a sample. Call it from the main thread, for that handles signals.

    Raises BadUsage for a size or a mapping that cannot be; CannotRunHere if `why_not`, if
    another run changes settings, or if memory is too fragmented for such folios;
    VerificationFailed if memory is not what it must be after an operation; ReamError if the
    workload fails otherwise or takes too long. It never outlives this iterator.
    """
    if mapping_bytes <= 0 or mapping_bytes % (2 << 20):
        raise BadUsage(f"a mapping of {mapping_bytes} bytes: it has to be a multiple of 2 MiB")
    for kib in known_sizes(folio_kib):
        if reason := why_not(kib, mapping_bytes):
            raise CannotRunHere(f"folios of {kib} KiB: {reason}")
    options = ["--bytes", str(mapping_bytes), "--rounds", "1", "--ops", ",".join(ops)]
    options += ["--displace-bytes", str(displace_bytes)]
    options += ["--map-order", "scattered" if scattered else "contiguous"]
    options += ["--check-contents"] if check_contents else []
    for launch, number, said in visited(
        FORK_FOLIOS, options, folio_kib, nr_bytes=mapping_bytes, rounds=rounds, visits=visits
    ):
        yield from read_samples(said, launch=launch, round_number=number)


def read_samples(said: str, *, launch: int, round_number: int) -> Iterator[FolioSample]:
    """The samples in what a workload of one round printed."""
    for its in operations(said):
        yield FolioSample(
            its["folio_kib"],
            launch,
            round_number,
            its["op"],
            its["time_ns"],
            its["nr_ptes"],
            its["verified"],
        )


def displaced_bytes(machine: Machine) -> int:
    """Other memory that is written before every operation."""
    return DISPLACED_L3 * (machine.cache_bytes(3) or machine.cache_bytes(2) or 0)


def why_not_row(row: ForkRow) -> str | None:
    return why_not(row.folio_bytes >> 10, row.mapping_bytes)


def taken(rows: Sequence[ForkRow], visits: Visits) -> Iterator[Taken]:
    """Every sample of rows; those of one size of mapping are one program's."""
    for alike in grouped(rows, lambda row: (row.mapping_bytes, row.rounds)):
        wanted = {(str(row.operation), row.folio_bytes >> 10): row for row in alike}
        for said in measure_folios(
            known_sizes(kib for _, kib in wanted),
            visits=visits,
            mapping_bytes=alike[0].mapping_bytes,
            rounds=alike[0].rounds,
            ops=tuple(dict.fromkeys(op for op, _ in wanted)),
            displace_bytes=displaced_bytes(read_machine()),
        ):
            if row := wanted.get((said.op, said.folio_kib)):
                yield Taken(sample_of(said, row.name, said.nr_ptes * STRUCT_PAGE_BYTES))


def remarks(
    rows: Iterable[ForkRow], taken: Iterable[Taken], tables: Sequence[Table]
) -> dict[str, tuple[str, ...]]:
    """Remarks by row: the comparison with base pages, here and in the published table.

    Without batches all sizes took the same time, so the 4 KiB row of a kernel that has them is
    what a kernel without them would need for every size.
    """
    times: dict[str, list[int]] = {}
    for one in taken:
        times.setdefault(one.sample.row, []).append(one.sample.time_ns)
    typical = {name: median(values) for name, values in times.items()}
    base = {row.operation: row for row in rows if row.order == 0 and row.name in typical}
    return {
        row.name: tuple(_remarks(row, base[row.operation], typical, tables))
        for row in rows
        if row.name in typical and row.operation in base and row.order
    }


def _remarks(
    row: ForkRow, base: ForkRow, typical: Mapping[str, float], tables: Sequence[Table]
) -> Iterator[str]:
    here = typical[row.name] / typical[base.name]
    text = f"{here:.2f} of the 4 KiB row"
    if row.published and base.published:
        table = lookup(tables, row.published[0].id)
        refs = (row.published[0], base.published[0])
        theirs, of_base = (table.row(ref.params).values.get("published") for ref in refs)
        if theirs and of_base:
            text += f"; in the published table, with batches, {theirs / of_base:.2f}"
    yield text


LIVE: Live[ForkRow] = Live(
    why_not=why_not_row,
    taken=taken,
    plan_lines=lambda rows: settings_lines(row.folio_bytes >> 10 for row in rows),
    programs=(FORK_FOLIOS,),
    remarks=remarks,
    options=lambda machine: {"displace_bytes": displaced_bytes(machine)},
)
