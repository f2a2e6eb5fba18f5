# SPDX-License-Identifier: GPL-2.0-only
"""Judges published tables by records. This is a pure function of both."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

from pydantic import ValidationError

from ream.errors import BadUsage
from ream.experiment import BEFORE, PUBLISHED, Experiment, Row, Stage
from ream.measure.statistics import Estimate
from ream.measure.verdict import (
    TIMED,
    Control,
    Facts,
    Verdict,
    Word,
    control,
    limiting,
    modelled,
    not_run,
    other_architecture,
    verdict_of,
)
from ream.measure.whole import Parts
from ream.published import NS, Printed, Table
from ream.record.machine import Machine
from ream.record.receipt import architecture_of
from ream.record.record import Record
from ream.replicate.claims import Claim, Fit, claims, fits, takes
from ream.replicate.counts import Counts, counts_of
from ream.replicate.plan import needs_kvm
from ream.replicate.rule import Judged, table_word, too_few
from ream.replicate.untried import Untried, untried
from ream.report.contract import Comparison, Fill, Ratio, Result, RowResult, Summary
from ream.report.explain import parts_of
from ream.report.grid import RATE
from ream.stage.accel import is_of_kvm
from ream.values import Scalar, faults

SAME = 1e-4
"""Ratios in records have five digits: two of the same numbers differ by less than this."""

_STAGE_RANK: Mapping[str, int] = {"vm": 3, "native": 2, "live": 1}
"""Preference among several results of one claim; results of emulated guests come last."""


@dataclass(frozen=True)
class JudgedRecord:
    """The properties of a record that a replication uses."""

    summary: Summary
    machine: Machine
    kernel: str
    """The kernel version, such as "6.12.117"."""
    emulated: bool
    guest: str | None
    guest_reason: str = "?"
    """The reason for the accelerator of its guests."""
    architecture: str = TIMED
    """The architecture of its kernels."""
    counted: bool = False
    """Whether what is executed was counted, which is the same on any machine, and not timed."""

    @classmethod
    def of(cls, record: Record) -> Self:
        """Read a record; raises BadUsage naming every property that is invalid."""
        receipt, path = record.receipt, str(record.path)
        guest = receipt.get("guest")
        return cls(
            summary=Summary.from_object(record.run, source=path),
            machine=_machine(receipt.get("machine"), path),
            kernel=_text(receipt, "kernel", "version"),
            emulated=isinstance(guest, dict) and guest.get("accel") == "tcg",
            guest=guest.get("accel") if isinstance(guest, dict) else None,
            guest_reason=_text(receipt, "guest", "accel_reason"),
            architecture=architecture_of(_text(receipt, "kernel", "tree")),
            counted=receipt.get("count") is not None,
        )

    @property
    def name(self) -> str:
        """The run id of the record."""
        return self.summary.run

    @property
    def rank(self) -> int:
        """Preference among records with a result for the same claim; higher is better."""
        return 0 if self.emulated else _STAGE_RANK.get(self.summary.stage, 0)


def _text(receipt: Mapping[str, object], part: str, name: str) -> str:
    inner = receipt.get(part)
    value = inner.get(name) if isinstance(inner, dict) else None
    return value if isinstance(value, str) else "?"


def _machine(value: object, path: str) -> Machine:
    try:
        return Machine.model_validate(value)
    except ValidationError as cause:
        raise faults(f"{path}: machine", cause) from cause


@dataclass(frozen=True)
class Line:
    """A claim, and what was measured for it here."""

    claim: Claim
    verdict: Verdict | None
    """None if the line is only the reference of others."""
    source: JudgedRecord | None = None
    row: RowResult | None = None
    differs: tuple[str, ...] = ()
    would_try: str | None = None
    """The row that would try this line on a machine that provides what it needs."""
    counts: tuple[Counts, ...] = ()
    """Counts of the table's architecture for the line; they have no verdict."""

    def result(self, variant: str) -> Result | None:
        """The result of a variant in the line's row; None if there is none."""
        return None if self.row is None else self.row.variants.get(variant)

    @property
    def timed(self) -> bool:
        """Whether times were measured here and the claim is about time.

        Counts of an emulated CPU's instructions are no times.
        """
        real = self.row is not None and self.row.unit == "ns" and not self._emulated
        return real and self.claim.of_time

    @property
    def _emulated(self) -> bool:
        return self.source is not None and self.source.emulated

    def here(self, variant: str) -> float | None:
        """The variant's value in the unit of the claim; None if it has none."""
        result = self.result(variant)
        if result is None or not self.timed:
            return None
        if self.claim.printed.unit == RATE:
            return result.gb_per_s
        return result.median / NS.get(self.claim.printed.unit, NS["ms"])

    @property
    def tried(self) -> bool:
        """Whether the line has a verdict other than not-run."""
        return self.verdict is not None and self.verdict.word != "not-run"

    @property
    def measured(self) -> tuple[str, str, str | None]:
        """The record, the row and the quantity of the measurement; empty texts if there is none."""
        record = self.source.name if self.source else ""
        return record, self.row.row if self.row else "", self.claim.value

    @property
    def judged(self) -> Judged:
        """The line in the form that the rule for tables needs."""
        word = "not-run" if self.verdict is None else self.verdict.word
        here = None if self.ratio is None else self.ratio.ratio
        return Judged(word, self.claim.printed.ratio, here)

    @property
    def control(self) -> Control:
        """The outcome of the line as a control, if it claims less than 10 %."""
        return control(self.judged.word, self.judged.here)

    @property
    def parts(self) -> Parts | None:
        """The part's time on the running kernel and hosted; that of another row for the same line
        if this row has none. None if the record measured neither.
        """
        if self.row is None or self.source is None:
            return None
        own = [one for one in self.row.comparisons if dict(one.params) == self.params]
        ids = {one.id for one in own}
        alike = (
            row
            for row in self.source.summary.rows
            for one in row.comparisons
            if one.id in ids and dict(one.params) == self.params
        )
        every = (parts_of(row) for row in (self.row, *alike))
        return next(filter(None, every), None)

    @property
    def params(self) -> dict[str, Scalar]:
        """The parameters of the printed line."""
        return dict(self.claim.line.params)

    @property
    def ratio(self) -> Result | Ratio | None:
        """The ratio `published`/`before` here; that of the complete call if it was measured."""
        result = self.result(PUBLISHED) if self.timed else None
        if result is None or result.ratio is None:
            return None
        whole = None if self.row is None else self.row.whole
        return result if whole is None or whole.ratio is None else whole.ratio

    @property
    def gain_published(self) -> float | None:
        """The printed speedup as a factor; None without a ratio."""
        ratio = self.claim.printed.ratio
        return None if ratio is None else 1 / ratio

    @property
    def gain_here(self) -> float | None:
        """The measured speedup as a factor; None without a ratio."""
        ratio = None if self.ratio is None else self.ratio.ratio
        return None if ratio is None else 1 / ratio

    @property
    def floor(self) -> Ratio | None:
        """The noise floor that applies to the ratio; None without one."""
        if self.row is None or not self.timed:
            return None
        return self.row.floor if self.row.whole is None else self.row.whole.floor

    @property
    def fill(self) -> Fill | None:
        """The fastest fill in the line's row; None without one."""
        return self.row.limit if self.row is not None and self.timed else None


@dataclass(frozen=True)
class Replication:
    """One published table, with a verdict on every line."""

    table: Table
    lines: tuple[Line, ...]
    machine: Machine
    """The machine of the records; without records, this machine."""

    @cached_property
    def sources(self) -> tuple[JudgedRecord, ...]:
        """The records that lines use, in order of time."""
        used = {line.source.name: line.source for line in self.lines if line.source is not None}
        return tuple(used[name] for name in sorted(used))

    @property
    def counts(self) -> Mapping[Word, int]:
        """The number of lines with each verdict."""
        return Counter(line.verdict.word for line in self.lines if line.verdict is not None)

    @property
    def word(self) -> Word:
        """The verdict on the whole table, by the rule in replicate.rule."""
        return table_word(line.judged for line in self.compared)

    @property
    def too_few(self) -> bool:
        """Whether some claims could be tried, but too few for a word that supports the table."""
        return self.word == "inconclusive" and too_few(line.judged for line in self.compared)

    @property
    def compared(self) -> tuple[Line, ...]:
        """The lines with a verdict."""
        return tuple(line for line in self.lines if line.verdict is not None)

    @property
    def deciding(self) -> tuple[Line, ...]:
        """The lines that decide the verdict on the table."""
        return tuple(line for line in self.compared if line.claim.substantial) or self.compared

    @property
    def controls(self) -> tuple[Line, ...]:
        """The lines that claim less than 10 %, if others claim more."""
        deciding = {id(line) for line in self.deciding}
        return tuple(line for line in self.compared if id(line) not in deciding)


def one_machine(sources: Sequence[JudgedRecord]) -> None:
    """Raise BadUsage if timed records are of several machines, as a verdict applies to one.

    Counts are the same on any machine.
    """
    seen: dict[tuple[str | None, str | None, int], str] = {}
    for source in (one for one in sources if not one.counted):
        machine = source.machine
        seen.setdefault((machine.id, machine.cpu, machine.nr_cpus), source.name)
    # Old records do not tell machines of one kind apart.
    kinds = {key[1:] for key in seen}
    ids = {key[0] for key in seen} - {None}
    if len(kinds) > 1 or len(ids) > 1:
        names = ", ".join(seen.values())
        raise BadUsage(f"records of several machines: {names}; replicate with those of one")


def replicate_all(
    tables: Iterable[Table],
    sources: Sequence[JudgedRecord],
    experiments: Sequence[Experiment],
    machine: Machine,
    *,
    absent: Mapping[Stage, str],
    failed: Mapping[tuple[str, Stage], str],
) -> tuple[Replication, ...]:
    """Judge every table by the same records.

    absent: for each stage, what it lacks here. failed: for each experiment and stage, why its run
    left no record.
    """
    return tuple(
        replicate(
            table,
            sources,
            experiments,
            machine,
            absent=absent,
            failed={
                stage: said for (name, stage), said in failed.items() if name == table.experiment
            },
        )
        for table in tables
    )


def replicate(
    table: Table,
    sources: Iterable[JudgedRecord],
    experiments: Iterable[Experiment],
    machine: Machine,
    *,
    absent: Mapping[Stage, str],
    failed: Mapping[Stage, str],
) -> Replication:
    """Judge every claim of a table by the records.

    machine: this one, used if there is no record. absent: for each stage, what it lacks here.
    failed: for each stage, why its run left no record.
    """
    experiments = tuple(experiments)
    its = tuple(fits(table, experiments))
    known = sorted(sources, key=lambda one: one.name)
    every = [one for one in known if not one.counted]
    alike = [one.summary for one in known if one.counted and one.architecture == table.architecture]
    own = [one for one in every if one.summary.experiment == table.experiment]
    candidates = [line for source in own for line in _candidates(table, its, source)]
    whose = next((one.machine for one in reversed(own)), machine)
    absent = {**_no_kvm(every), **absent}
    first = {fit.row.name: -number for number, fit in reversed([*enumerate(its)])}
    lines = []
    for claim in claims(table):
        if claim.is_base:
            lines.append(Line(claim, None))
            continue
        if far := other_architecture(table.architecture, TIMED, claim.printed.ratio):
            counts = counts_of(table, claim, experiments, alike)
            lines.append(Line(claim, not_run(far), counts=counts))
            continue
        found = [one for one in candidates if _is_of(one, claim)]
        best = max(found, key=lambda one: _rank(one, claim, first), default=None)
        if best is None or not best.tried:
            told = {
                one.row.row: one.verdict.reason
                for one in found
                if one.row is not None and one.verdict is not None
            }
            why = untried(table, claim, its, machine=whose, absent=absent, failed=failed, told=told)
            best = _not_run(best or Line(claim, None), why)
        lines.append(best)
    return Replication(table, tuple(lines), whose)


def _not_run(line: Line, why: Untried) -> Line:
    """The line with the reason, and a note on other numbers measured beside it."""
    reason = why.reason
    if line.row is not None and line.ratio is not None and line.row.row != why.row:
        beside = "" if line.verdict is None else f": {line.verdict.reason}"
        reason += f"; the numbers beside it are of {line.row.row}{beside}"
    return replace(line, verdict=not_run(reason), would_try=why.row)


def _no_kvm(sources: Iterable[JudgedRecord]) -> Mapping[Stage, str]:
    """The reason against the vm stage if all guests of the records were emulated; else empty.

    A record of any experiment tells of the machine: the last that tried KVM is asked.
    """
    guests = [one for one in sources if one.guest is not None]
    if not guests or any(not one.emulated for one in guests):
        return {}
    tried = [one for one in guests if is_of_kvm(one.guest_reason)]
    return {"vm": needs_kvm((tried or guests)[-1].guest_reason)}


def _is_of(one: Line, claim: Claim) -> bool:
    return one.claim.line == claim.line and one.claim.value == claim.value


def _rank(
    one: Line, claim: Claim, first: Mapping[str, int]
) -> tuple[bool, bool, bool, bool, int, int, str]:
    """first: of each row of the experiment, how early it comes among those that fit the table."""
    tried = one.verdict is not None and one.verdict.word != "not-run"
    threads = one.row.params.get("threads") if one.row is not None else None
    same_threads = threads == claim.printed.threads
    return (
        tried,
        one.ratio is not None,  # a record of other variants says nothing of the claim's
        one.row is None or one.row.whole is None,  # hosting all of the call, and no part of it
        same_threads,
        one.source.rank if one.source else 0,
        first[one.row.row] if one.row else 0,  # whatever rows a newer record has
        one.source.name if one.source else "",
    )


def _candidates(table: Table, its: Sequence[Fit], source: JudgedRecord) -> Iterator[Line]:
    """Every pair of a row of a record and a claim that it measures, with a verdict."""
    every = claims(table)
    for row in source.summary.rows:
        for fit in its:
            if fit.row.name != row.row:
                continue
            told, threads = _told(row, fit), _threads(row)
            if fit.ref.nearest is not None and threads is None:
                continue  # a share of CPUs that came to a number which another row has
            for claim in every:
                if takes(table, fit.ref, claim, threads):
                    differs = () if told is None else told.differs
                    line = Line(claim, None, source, row, differs)
                    yield replace(line, verdict=_verdict(table, line, fit.row, told))


def _told(row: RowResult, fit: Fit) -> Comparison | None:
    """The record's own comparison with the line that the row refers to; None without one."""
    return next(
        (
            one
            for one in row.comparisons
            if one.id == fit.own.id
            and one.value == fit.own.value
            and fit.own.params.items() <= one.params.items()
        ),
        None,
    )


def _threads(row: RowResult) -> int | None:
    published = row.variants.get(PUBLISHED)
    asked = row.params.get("threads")
    numbers = (asked if isinstance(asked, int) else None, published and published.threads)
    return min((number for number in numbers if number), default=None)


def _verdict(table: Table, line: Line, asked: Row, told: Comparison | None) -> Verdict:
    """The verdict by the rule of today on the record's numbers.

    Of a quantity that is no time a record has no numbers in one form, but the verdict of its time.
    """
    claim, printed, row = line.claim, line.claim.printed, line.row
    assert row is not None
    assert line.source is not None
    facts = Facts(
        stand_in=_stand_in(row, told),
        model=asked.model_of_device if told is None else told.model,
        is_part=row.whole is not None,
        parts=line.parts,
        misses_costs=limiting(page_tables=asked.times_page_tables, amd=line.source.machine.is_amd),
        no_gain=table.approximate and not claim.substantial,
    )
    reason = _no_verdict(claim, row, asked, told)
    if told is not None and not line.timed and reason is None and _same_numbers(told, printed):
        return modelled(facts.model) if facts.model else Verdict(told.verdict, told.reason or "")
    why_not = (reason, *_missing(line))
    ours, floor = _estimate(line.ratio), _estimate(line.floor)
    return verdict_of(why_not, ours, floor, printed.ratio, facts)


def _missing(line: Line) -> Iterator[str]:
    """Reasons for a missing number, there or here."""
    if line.claim.printed.ratio is None:
        yield "the source printed no ratio for this line"
    if not line.timed and line.claim.of_time:
        yield "instructions of an emulated CPU here, which are no time"
    if not line.timed:
        yield f"the record has no ratio of {line.claim.value}"
    if line.ratio is None or line.result(BEFORE) is None:
        yield f"{BEFORE} and {PUBLISHED} were not both measured"


def _stand_in(row: RowResult, told: Comparison | None) -> str | None:
    """The device's substitute according to the record; older records always used a CPU thread."""
    if told is not None and "stand_in" in told.model_fields_set:
        return told.stand_in
    return "a CPU thread" if row.params.get("channels") else None


def _same_numbers(told: Comparison, printed: Printed) -> bool:
    """Whether the record was compared with these very numbers, of this table or another one."""
    return (
        (told.before, told.published) == (printed.before, printed.published)
        and None not in (told.ratio, printed.ratio)
        and math.isclose(told.ratio or 0, printed.ratio or 0, rel_tol=SAME)
    )


def _no_verdict(claim: Claim, row: RowResult, asked: Row, told: Comparison | None) -> str | None:
    """The reason why the row does not try the claim, from its record or its number of threads."""
    there, here = claim.printed.threads, _threads(row)
    if told is not None and told.verdict == "not-run" and told.reason:
        same_line = dict(told.params) == dict(claim.line.params)
        # What it says of the threads of another line holds for that line alone.
        if same_line or told.threads is None or told.threads == here:
            return told.reason
    if row.skipped is not None:
        return row.skipped
    if asked.part_of and row.whole is None:
        return f"the record timed a part of {asked.part_of}, and not the rest of it"
    if there is not None and here is not None and there != here:
        return f"{claim.printed.threads_there}, {here} here"
    return None


def _estimate(value: Result | Ratio | None) -> Estimate | None:
    if value is None:
        return None
    ratio = value.ratio or 1.0
    spread = (value.spread_low or ratio, value.spread_high or ratio)
    return Estimate(ratio, value.low, value.high, spread)
