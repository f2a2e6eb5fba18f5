# SPDX-License-Identifier: GPL-2.0-only
"""Gathers from all records of a directory what the pages of a site show."""

import re
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from ream.experiment import BEFORE, PUBLISHED, named
from ream.folders import names
from ream.history.pooled import ByCpu, OverRuns, Place, cpu_type, pooled, ratios_in
from ream.published import NS, Table, load_tables
from ream.record.parts import part, rows_of
from ream.record.record import Record, is_record
from ream.replicate.outcome import JudgedRecord, Line, Replication, replicate_all

SHOWN: Mapping[str, str] = {PUBLISHED: "technique", "ream": "ours"}
"""By its name in a record, what a variant is called for readers."""
ARCHIVE = "https://lore.kernel.org/r/"
_KERNEL = re.compile(r"\d+\.\d+")
"""The name of a variant that is another kernel, such as 7.3."""
_PREFIX = re.compile(r"-\d+of\d+$")
"""The end of the name of a variant that has the first patches of a series alone."""


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
    page: str | None = None
    """The page, relative to the site; None if it has none."""


@dataclass(frozen=True)
class Effect:
    """A ratio to `before` with its 95 % interval; below 1 is faster."""

    ratio: float
    low: float
    high: float
    runs: tuple[str, ...]
    earlier: bool = False
    """Whether newer patches of this name were measured on another type of CPU."""

    @property
    def word(self) -> str:
        """faster, slower or undecided: the side of 1 on which all of the interval is."""
        return "faster" if self.high < 1 else "slower" if self.low > 1 else "undecided"

    @classmethod
    def of(cls, its: OverRuns) -> "Effect":
        """The pooled ratio of a place."""
        one = its.estimate
        low, high = (one.ratio if end is None else end for end in (one.low, one.high))
        return cls(one.ratio, low, high, its.runs, its.earlier)


@dataclass(frozen=True)
class MeasuredRow:
    """A row and a variant, with what was found on each type of CPU."""

    row: str
    variant: str
    by_cpu: Mapping[str, Effect]


@dataclass(frozen=True)
class Upgraded:
    """A row on a type of CPU, with the ratio of each later kernel to the first of them."""

    experiment: str
    row: str
    cpu: str
    by_kernel: Mapping[str, Effect]


@dataclass(frozen=True)
class Claimed:
    """A line of a published table, and what was found on each type of CPU."""

    what: str
    claimed: float | None
    by_cpu: Mapping[str, Line]


@dataclass(frozen=True)
class PublishedTable:
    """A published table with its lines."""

    table: Table
    lines: Sequence[Claimed]
    words: Mapping[str, str]
    """The verdict on the whole table by type of CPU."""

    @property
    def link(self) -> str | None:
        """The mail that it is from."""
        return self.table.message_id and f"{ARCHIVE}{self.table.message_id}"


@dataclass
class Gathered:
    """All records of a directory, read once."""

    runs: Path
    records: Sequence[Record] = field(default_factory=list)

    @classmethod
    def of(cls, runs: Path, said: Callable[[int, int], None]) -> "Gathered":
        """Read every record; said: takes how many are read, and of how many.

        Raises BadUsage for one that is damaged.
        """
        there = [one for one in sorted(runs.iterdir()) if is_record(one)] if runs.is_dir() else []
        found = []
        for number, path in enumerate(there, start=1):
            said(number, len(there))
            found.append(Record.load(str(path), runs))
        return cls(runs, found)

    @cached_property
    def listed(self) -> Sequence[Run]:
        """All records, newest first."""
        return [_run(one) for one in reversed(self.records)]

    @cached_property
    def newest(self) -> Sequence[Run]:
        """The newest record of each experiment, stage, CPU type and kind of measurement."""
        first: dict[tuple[object, ...], Run] = {}
        for one in self.listed:
            key = one.experiment, one.stage, one.cpu, one.counted
            first.setdefault(key, one)
        return [*first.values()]

    @property
    def experiments(self) -> Sequence[str]:
        """The names of the experiments of this checkout, each of which has a page."""
        return sorted(names())

    @cached_property
    def _pooled(self) -> Mapping[Place, ByCpu]:
        return pooled(ratios_in(self.runs))

    def rows(self, experiment: str) -> Iterator[MeasuredRow]:
        """Rows and variants of an experiment with their pooled ratios, in the order of its rows.

        Parts of series are left out: pages of single runs have them.
        """
        order = {row.name: number for number, row in enumerate(named(experiment).rows)}
        its = [(place, by) for place, by in self._pooled.items() if place[0] == experiment]
        its.sort(key=lambda one: order.get(one[0][1], len(order)))
        for (_, row, variant), by_cpu in its:
            if not _PREFIX.search(variant):
                effects = {cpu: Effect.of(one) for cpu, one in by_cpu.items()}
                yield MeasuredRow(row, shown(variant), effects)

    @cached_property
    def upgrades(self) -> Sequence[Upgraded]:
        """Rows that were measured in several kernels, each of its newest run on a type of CPU."""
        found: dict[tuple[str, ...], Upgraded] = {}
        for record in self.records:
            for one in _upgraded(record):
                found[one.experiment, one.row, one.cpu, next(iter(one.by_kernel))] = one
        return sorted(found.values(), key=lambda one: one.experiment)

    @cached_property
    def published(self) -> Sequence[PublishedTable]:
        """Each published table, judged by the records of each type of CPU."""
        tables = [one for one in load_tables() if one.experiment in names()]
        by_cpu: dict[str, list[JudgedRecord]] = defaultdict(list)
        for record in self.records:
            if _is_of_the_experiment(record):
                by_cpu[_cpu(record)].append(JudgedRecord.of(record))
        known = [named(name) for name in names()]
        judged: dict[str, dict[str, Replication]] = {}
        for cpu, sources in sorted(by_cpu.items()):
            of_cpu = replicate_all(
                tables, sources, known, sources[-1].machine, absent={}, failed={}
            )
            judged[cpu] = {one.table.id: one for one in of_cpu}
        return [
            _published(table, {cpu: its[table.id] for cpu, its in judged.items()})
            for table in tables
        ]

    @cached_property
    def cpus(self) -> Sequence[str]:
        """The types of CPU of all records."""
        return sorted({one.cpu for one in self.listed})


def shown(variant: str) -> str:
    """The name of a variant for readers."""
    return SHOWN.get(variant, variant)


def _cpu(record: Record) -> str:
    return cpu_type(part(record.receipt, "machine"))


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
    )


def _is_of_the_experiment(record: Record) -> bool:
    """Whether a record has the experiment's own kernels, as verdicts need."""
    kernel = part(record.receipt, "kernel")
    return (
        record.run.get("experiment") in names()
        and not kernel.get("config")
        and not kernel.get("trees")
    )


def _upgraded(record: Record) -> Iterator[Upgraded]:
    kernel = part(record.receipt, "kernel")
    first = ".".join(str(kernel.get("version")).split(".")[:2])
    kernels = [name for name in part(kernel, "trees") if _KERNEL.fullmatch(name)]
    others = [name for name in kernels if version(name) > version(first)]
    if not others or record.receipt.get("count"):
        return
    for row, its in rows_of(record).items():
        variants = part(its, "variants")
        if BEFORE not in variants:
            continue
        run = (record.path.name,)
        effects = {first: Effect(1.0, 1.0, 1.0, run)}
        for name in others:
            found = part(variants, name)
            ratio, low, high = (found.get(one) for one in ("ratio", "low", "high"))
            if ratio and low and high:
                effects[name] = Effect(ratio, low, high, run)
        if len(effects) > 1:
            by_kernel = dict(sorted(effects.items(), key=lambda one: version(one[0])))
            yield Upgraded(str(record.run.get("experiment")), row, _cpu(record), by_kernel)


def version(name: str) -> tuple[int, ...]:
    """The numbers of a kernel's name, by which it can be sorted."""
    return tuple(map(int, name.split(".")))


def _published(table: Table, by_cpu: Mapping[str, Replication]) -> PublishedTable:
    lines: dict[tuple[object, ...], dict[str, Line]] = {}
    for cpu, its in by_cpu.items():
        for line in its.compared:
            key = *sorted(line.claim.line.params.items()), line.claim.value
            lines.setdefault(key, {})[cpu] = line
    claimed = [_claimed(table, its) for its in lines.values()]
    return PublishedTable(table, claimed, {cpu: its.word for cpu, its in by_cpu.items()})


def _claimed(table: Table, by_cpu: Mapping[str, Line]) -> Claimed:
    claim = next(iter(by_cpu.values())).claim
    words = [f"{name} {value}" for name, value in claim.line.params.items()]
    if claim.value and claim.printed.unit in NS:
        words.append(claim.value)
    return Claimed(", ".join(words) or table.title, claim.printed.ratio, by_cpu)


def means(rows: Sequence[MeasuredRow], cpu: str) -> Mapping[str, float]:
    """The geometric mean ratio over rows on a type of CPU, of the technique and of ours."""
    by_variant: dict[str, list[float]] = {}
    for one in rows:
        if one.variant in SHOWN.values() and cpu in one.by_cpu:
            by_variant.setdefault(one.variant, []).append(one.by_cpu[cpu].ratio)
    return {name: statistics.geometric_mean(its) for name, its in by_variant.items()}


def factor(ratio: float) -> str:
    """A ratio of times in words: 0.5 is 2.00x faster."""
    return f"{1 / ratio:.2f}x faster" if ratio <= 1 else f"{ratio:.2f}x slower"


def of_experiment(runs: Iterable[Run], experiment: str) -> list[Run]:
    """The runs of one experiment."""
    return [one for one in runs if one.experiment == experiment]
