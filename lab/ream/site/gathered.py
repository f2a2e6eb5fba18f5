# SPDX-License-Identifier: GPL-2.0-only
"""Gathers from all records of a directory what the pages of a site show."""

import re
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from ream.experiment import BEFORE, SHOWN, named, shown
from ream.folders import names
from ream.history.pooled import (
    ByCpu,
    OverRuns,
    Place,
    has_own_sources,
    of_record,
    pooled,
    removed_in,
)
from ream.published import NS, Table, load_tables
from ream.record.archive import paths_in
from ream.record.cpu_names import short_names
from ream.record.parts import cpu_type, machine_id, part
from ream.record.record import Record, is_record
from ream.replicate.outcome import JudgedRecord, Line, Replication, replicate_all
from ream.report.contract import Result, RowResult, Summary
from ream.report.html.sheet import colour_of
from ream.site.judgements import Judged, judged_in

ARCHIVE = "https://lore.kernel.org/r/"
_KERNEL = re.compile(r"\d+\.\d+")
"""The name of a variant that is another kernel, such as 7.3."""
_PREFIX = re.compile(r"-\d+of\d+$")
"""The end of the name of a variant that has the first patches of a series alone."""


MACHINE = ", machine "
"""Between a type of CPU and the number of one of the machines that have it."""

_Machines = dict[object, list[JudgedRecord]]


@dataclass(frozen=True)
class Run:
    """One record in the list of all, and where its page is."""

    name: str
    experiment: str
    stage: str
    cpu: str
    kernel: str
    variants: tuple[str, ...]
    counted: bool
    own_kernels: bool
    """Whether its kernels are those of the experiment, without other options and sources."""
    page: str | None = None
    """The page, relative to the site; None if it has none."""


@dataclass(frozen=True)
class Ratio:
    """A ratio to `before` with its 95 % interval; below 1 is faster.

    word: faster, slower or undecided. For a single run it is what the run itself concluded from
    floor, interval and all of its ratios; over runs it is on which side of 1 the interval is.
    """

    ratio: float
    low: float
    high: float
    runs: tuple[str, ...]
    word: str
    earlier: bool = False
    """Whether newer patches of this name were measured on another type of CPU."""


@dataclass(frozen=True)
class MeasuredRow:
    """A row and a variant, with what was found on each type of CPU."""

    row: str
    variant: str
    by_cpu: Mapping[str, Ratio]


@dataclass(frozen=True)
class Mean:
    """The geometric mean of a variant's ratios on a type of CPU."""

    ratio: float
    earlier: bool
    """Whether any of the ratios is of an earlier form of the patches."""

    @property
    def word(self) -> str:
        """The class of its colour: that of no difference, if it rounds to 1."""
        rounded = round(self.ratio, 2)
        return "faster" if rounded < 1 else "slower" if rounded > 1 else "equal"


@dataclass(frozen=True)
class Upgraded:
    """A row on a type of CPU, with the ratio of each later kernel to the first of them."""

    experiment: str
    row: str
    cpu: str
    by_kernel: Mapping[str, Ratio | None]
    """None for the first."""

    @property
    def ratios(self) -> Sequence[float]:
        """The ratio of each kernel in order, which is 1 for the first."""
        return [1.0 if one is None else one.ratio for one in self.by_kernel.values()]

    @property
    def word(self) -> str:
        """What the newest kernel changes."""
        last = [*self.by_kernel.values()][-1]
        return "undecided" if last is None else last.word


@dataclass(frozen=True)
class Claimed:
    """A line of a published table, and what was found on each machine."""

    what: str
    claimed: float | None
    by_machine: Mapping[str, Line]


@dataclass(frozen=True)
class PublishedTable:
    """A published table with its lines."""

    table: Table
    lines: Sequence[Claimed]
    words: Mapping[str, str]
    """The verdict on the whole table by machine."""

    @property
    def link(self) -> str | None:
        """The mail that it is from."""
        return self.table.message_id and f"{ARCHIVE}{self.table.message_id}"


@dataclass(frozen=True)
class Gathered:
    """All records of a directory, read once: each with its results."""

    runs: Path
    records: Sequence[tuple[Record, Summary]]
    judged: Sequence[Judged] = ()

    @classmethod
    def of(
        cls, runs: Path, said: Callable[[int, int], None], judgements: Path | None = None
    ) -> "Gathered":
        """Read every record; said: takes how many are read, and of how many.

        judgements: a folder of what `ream judge` wrote.

        Raises BadUsage for one that is damaged.
        """
        judged = judged_in(judgements) if judgements is not None else ()
        there = [one for one in paths_in(runs) if is_record(one)]
        found = []
        for number, path in enumerate(there, start=1):
            said(number, len(there))
            record = Record.load(str(path), runs)
            found.append((record, Summary.from_object(record.run, source=str(path))))
        return cls(runs, found, judged)

    @cached_property
    def listed(self) -> Sequence[Run]:
        """All records, newest first."""
        return [_run(record) for record, _ in reversed(self.records)]

    @cached_property
    def newest(self) -> Sequence[Run]:
        """The newest record of each experiment, stage, CPU type and kind of measurement."""
        first: dict[tuple[object, ...], Run] = {}
        for one in self.listed:
            key = one.experiment, one.stage, one.cpu, one.counted, one.own_kernels
            first.setdefault(key, one)
        return [*first.values()]

    @property
    def experiments(self) -> Sequence[str]:
        """The names of this checkout's experiments that have records; each has a page."""
        return sorted({one.experiment for one in self.listed} & {*names()})

    @cached_property
    def _pooled(self) -> Mapping[Place, ByCpu]:
        ratios = [one for record, _ in self.records for one in of_record(record)]
        return pooled([*ratios, *removed_in(self.runs)])

    @cached_property
    def _by_run(self) -> Mapping[str, Mapping[str, RowResult]]:
        return {its.run: {row.row: row for row in its.rows} for _, its in self.records}

    def rows(self, experiment: str) -> Iterator[MeasuredRow]:
        """Rows and variants of an experiment with their pooled ratios, in the order of its rows.

        Parts of series are left out: pages of single runs have them.
        """
        order = {row.name: number for number, row in enumerate(named(experiment).rows)}
        its = [(place, by) for place, by in self._pooled.items() if place[0] == experiment]
        its.sort(key=lambda one: order.get(one[0][1], len(order)))
        for (_, row, variant), by_cpu in its:
            if not _PREFIX.search(variant):
                found = {cpu: self._ratio(row, variant, one) for cpu, one in by_cpu.items()}
                yield MeasuredRow(row, shown(variant), found)

    def _ratio(self, row: str, variant: str, its: OverRuns) -> Ratio:
        one = its.estimate
        low, high = (one.ratio if end is None else end for end in (one.low, one.high))
        word = colour_of(low, high)
        if len(its.runs) == 1:
            kept = self._by_run.get(its.runs[0], {}).get(row)
            word = _word(kept.variants.get(variant) if kept else None)
        return Ratio(one.ratio, low, high, its.runs, word, its.earlier)

    @cached_property
    def upgrades(self) -> Sequence[Upgraded]:
        """Rows that were measured in several kernels, each of its newest run on a type of CPU."""
        found: dict[tuple[str, ...], Upgraded] = {}
        for record, summary in self.records:
            for one in _upgraded(record, summary):
                found[one.experiment, one.row, one.cpu, next(iter(one.by_kernel))] = one
        return sorted(found.values(), key=lambda one: one.experiment)

    @cached_property
    def published(self) -> Sequence[PublishedTable]:
        """Each published table, judged by the records of each machine: a verdict is of one."""
        tables = [one for one in load_tables() if one.experiment in names()]
        sources: dict[str, dict[object, list[JudgedRecord]]] = defaultdict(
            lambda: defaultdict(list)
        )
        ids = {_kind(one): id_ for one, _ in self.records if (id_ := machine_id(one))}
        for record, _ in self.records:
            if _has_own_kernels(record):  # an old record has no id, and is taken for its kind's
                machine = _kind(record), machine_id(record) or ids.get(_kind(record))
                sources[_cpu(record)][machine].append(JudgedRecord.of(record))
        known = [named(name) for name in names()]
        judged: dict[str, dict[str, Replication]] = {}
        for cpu, machines in sorted(sources.items()):
            for number, its in enumerate(machines.values(), start=1):
                name = cpu if len(machines) == 1 else f"{cpu}{MACHINE}{number}"
                of_it = replicate_all(tables, its, known, its[-1].machine, absent={}, failed={})
                judged[name] = {one.table.id: one for one in of_it}
        return [
            _published(table, {name: its[table.id] for name, its in judged.items()})
            for table in tables
        ]

    @cached_property
    def machines(self) -> Sequence[str]:
        """The machines that published tables are judged by, and which measured any of their lines.

        Machines of one CPU type have numbers.
        """
        return list(
            dict.fromkeys(
                name
                for one in self.published
                for line in one.lines
                for name, its in line.by_machine.items()
                if its.tried
            )
        )

    @cached_property
    def cpus(self) -> Sequence[str]:
        """The types of CPU of all records."""
        return sorted({one.cpu for one in self.listed})

    @cached_property
    def _short(self) -> Mapping[str, str]:
        return short_names(self.cpus)

    def short(self, name: str) -> str:
        """The short name of a type of CPU, or of one of several machines that have it."""
        cpu, comma, machine = name.partition(MACHINE)
        return f"{self._short.get(cpu, cpu)}{comma}{machine}"

    def shorts(self, its: Sequence[str]) -> list[str]:
        """The short names of several of them."""
        return [*map(self.short, its)]


def means(rows: Sequence[MeasuredRow]) -> tuple[int, Mapping[str, Mapping[str, Mean]]]:
    """The mean of technique and of ours by type of CPU, over rows that all of these types have.

    The first number says how many rows these are.
    """
    own = [one for one in rows if one.variant in SHOWN.values()]
    cpus = {cpu for one in own for cpu in one.by_cpu}
    common = [one for one in own if one.by_cpu.keys() == cpus]
    found: dict[str, dict[str, Mean]] = defaultdict(dict)
    for variant in dict.fromkeys(one.variant for one in common):
        for cpu in cpus:
            its = [one.by_cpu[cpu] for one in common if one.variant == variant]
            mean = statistics.geometric_mean(one.ratio for one in its)
            found[cpu][variant] = Mean(mean, any(one.earlier for one in its))
    return len({one.row for one in common}), found


def _cpu(record: Record) -> str:
    return cpu_type(part(record.receipt, "machine"))


def _kind(record: Record) -> tuple[str, object]:
    """The type and the number of a machine's CPUs."""
    return _cpu(record), part(record.receipt, "machine").get("nr_cpus")


def _run(record: Record) -> Run:
    kernel = part(record.receipt, "kernel")
    return Run(
        name=record.path.name,  # the id in the record may be any text, and names no file
        experiment=str(record.run.get("experiment")),
        stage=str(record.run.get("stage")),
        cpu=_cpu(record),
        kernel=str(kernel.get("version") or "?"),
        variants=tuple(map(shown, part(kernel, "variants"))),
        counted=bool(record.receipt.get("count")),
        own_kernels=_has_own_kernels(record),
    )


def _has_own_kernels(record: Record) -> bool:
    """Whether a record has the experiment's own kernels, as verdicts need."""
    return record.run.get("experiment") in names() and has_own_sources(record)


def _word(its: Result | None) -> str:
    """What a run concluded of a variant: faster, slower, or else undecided."""
    return its.effect if its is not None and its.effect in ("faster", "slower") else "undecided"


def _upgraded(record: Record, summary: Summary) -> Iterator[Upgraded]:
    kernel = part(record.receipt, "kernel")
    first = ".".join(str(kernel.get("version")).split(".")[:2])
    if record.receipt.get("count") or not _KERNEL.fullmatch(first):
        return
    kernels = [name for name in part(kernel, "trees") if _KERNEL.fullmatch(name)]
    others = sorted((one for one in kernels if version(one) > version(first)), key=version)
    for row in summary.rows:
        by_kernel: dict[str, Ratio | None] = {first: None} if BEFORE in row.variants else {}
        for name in others:
            its = row.variants.get(name)
            if its is not None and its.ratio and its.low and its.high:
                by_kernel[name] = Ratio(
                    its.ratio, its.low, its.high, (record.path.name,), _word(its)
                )
        if first in by_kernel and len(by_kernel) > 1:
            yield Upgraded(summary.experiment, row.row, _cpu(record), by_kernel)


def version(name: str) -> tuple[int, ...]:
    """The numbers of a kernel's name, by which it can be sorted."""
    return tuple(map(int, name.split(".")))


def _published(table: Table, by_machine: Mapping[str, Replication]) -> PublishedTable:
    lines: dict[tuple[object, ...], dict[str, Line]] = {}
    for machine, its in by_machine.items():
        for line in its.compared:
            key = *sorted(line.claim.line.params.items()), line.claim.value
            lines.setdefault(key, {})[machine] = line
    claimed = [_claimed(table, its) for its in lines.values()]
    return PublishedTable(table, claimed, {name: its.word for name, its in by_machine.items()})


def _claimed(table: Table, by_machine: Mapping[str, Line]) -> Claimed:
    claim = next(iter(by_machine.values())).claim
    words = [f"{name} {value}" for name, value in claim.line.params.items()]
    if claim.value and claim.printed.unit in NS:
        words.append(claim.value)
    return Claimed(", ".join(words) or table.title, claim.printed.ratio, by_machine)


def factor(ratio: float) -> str:
    """A ratio of times in words: 0.5 is 2.00x faster."""
    return f"{1 / ratio:.2f}x faster" if ratio <= 1 else f"{ratio:.2f}x slower"
