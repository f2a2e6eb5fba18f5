# SPDX-License-Identifier: GPL-2.0-only
"""Explains why a published line may differ here, from receipt, table and measured bounds."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ream.experiment import BEFORE, PUBLISHED, format_size
from ream.record.machine import Machine
from ream.replicate.outcome import Line, Replication
from ream.report.explain import parts_of, whole_words
from ream.report.limit import limit_kind_of

NOT_SAID = "not said"
PART = "part"
"""What a deviation is called that says which part of a call a row times."""

_OURS = re.compile(r"their patches\b.*? there, (.+)")
_OF_A_LINE = re.compile(
    r"\d+ threads?(?: \(inferred\))? there|\S+ CPUs there|\S+ GiB a node there|about .* GB/s there"
)
"""Differences that concern one line, or that stem from another table which the row names."""


@dataclass(frozen=True)
class Deviation:
    """One property that differs, or may differ, between there and here."""

    what: str
    there: str
    here: str


@dataclass(frozen=True)
class Bound:
    """The largest possible gain of one measured line, and the measurement behind it."""

    of_limit: float | None
    """The limit's time over that of `before`; None if no fill or copy was measured."""
    of_limit_low: float | None
    """The low end of its interval; None without one."""
    after: float | None
    """The same ratio for `published`, which may use another number of CPUs."""
    how: str | None
    threads: int | None
    nr_bytes: int
    of_l3: float | None
    """The bytes of a sample over the size of the L3; None if that is unknown."""
    rest: float = 0.0
    """For a complete call, the time outside the measured part, over the time of `before`."""
    is_bound: bool = True
    """Whether the limit is what the hardware allows; a plain loop is none."""
    found: float | None = None
    """The upper end of the gain that was found here; None if there is none."""

    @property
    def factor(self) -> float | None:
        """How much faster the limit is than `before`, or than the complete call."""
        return None if self.of_limit is None else self._most(self.of_limit)

    @property
    def is_in_error(self) -> bool:
        """Whether more was found, interval included, than a limit of the hardware would allow."""
        known = self.is_bound and self.factor is not None and self.found is not None
        return known and (self.found or 0) > (self.factor or 0)

    @property
    def most(self) -> float | None:
        """The largest factor by which `before`, or the complete call, could become faster; None if
        the limit is no bound, or is in error.
        """
        return self.factor if self.is_bound and not self.is_in_error else None

    def excludes(self, gain: float) -> bool:
        """Whether this gain is impossible at every limit within its interval."""
        if self.most is None or self.of_limit_low is None:
            return False
        return gain > self._most(self.of_limit_low)

    def _most(self, of_limit: float) -> float:
        return max(1.0, (1 + self.rest) / (of_limit + self.rest))


def differences(replication: Replication) -> tuple[Deviation, ...]:
    """Differences in machine, kernel, clock and method, also if the source states none."""
    return tuple(one for one in _differences(replication) if one.there != one.here)


def _differences(replication: Replication) -> Iterator[Deviation]:
    table, machine = replication.table, replication.machine
    yield Deviation("machine", table.machine, machine.line())
    yield Deviation("host", _host(table.machine), _host_here(replication))
    yield Deviation("caches", NOT_SAID, _caches(machine))
    if table.cpus is not None:
        yield Deviation("CPUs", str(table.cpus), str(machine.nr_cpus))
    if table.node_gib is not None or _nodes_matter(replication):
        there = NOT_SAID if table.node_gib is None else f"{table.node_gib} GiB a node"
        yield Deviation("memory", there, _sizes(replication))
    yield Deviation("base", table.base or NOT_SAID, _base(replication))
    clock = (
        f"{machine.clock_source or 'unknown clock'}, steps of {machine.timer_step_ns} ns or less"
    )
    yield Deviation("timer", _timer(replication), clock)
    yield Deviation("method", f"there: {table.method}", "")
    for row in {line.row.row: line.row for line in replication.lines if line.row}.values():
        if row.whole is not None:
            yield Deviation(PART, f"{row.row}: {whole_words(row.whole, parts_of(row))}", "")
    for said in dict.fromkeys(text for line in replication.lines for text in line.differs):
        if not _OURS.match(said) and not _OF_A_LINE.match(said):
            yield Deviation("method", said, "")


def _host(machine: str) -> str:
    words = machine.lower()
    if "bare metal" in words:
        return "bare metal"
    if re.search(r"\bvm\b|\bguest\b|virtual machine", words):
        return "virtual machine"
    return NOT_SAID


def _host_here(replication: Replication) -> str:
    machine = replication.machine
    host = "not known"
    if machine.hypervisor is not None:
        host = "virtual machine" if machine.hypervisor else "bare metal"
    stages = dict.fromkeys(
        f"{source.summary.stage} stage" + (f" under {source.guest.upper()}" if source.guest else "")
        for source in replication.sources
    )
    return ", ".join((host, *stages))


def _timer(replication: Replication) -> str:
    """The timer that the source names, or the one that a row states for it."""
    ours = (text for line in replication.lines for text in line.differs if text.endswith(" there"))
    for text in (replication.table.method, *ours):
        if found := re.search(r"jiffies|ktime|boot log", text):
            return found[0]
    return NOT_SAID


def _caches(machine: Machine) -> str:
    sizes = {level: machine.cache_bytes(level) for level in (1, 2, 3)}
    known = [f"L{level} {format_size(size)}" for level, size in sizes.items() if size is not None]
    return ", ".join(known) or "not known"


def _nodes_matter(replication: Replication) -> bool:
    return replication.table.is_of_a_machine


def _sizes(replication: Replication) -> str:
    pages = {
        line.row.params["nr_pages"]: None
        for line in replication.lines
        if line.row is not None and isinstance(line.row.params.get("nr_pages"), int)
    }
    return ", ".join(format_size(int(number or 0) * 4096) for number in pages) or "not run"


def _base(replication: Replication) -> str:
    versions = ", ".join(dict.fromkeys(source.kernel for source in replication.sources))
    for line in replication.lines:
        for said in line.differs:
            if found := _OURS.match(said):
                return found[1].removesuffix(" here")
    return versions or "not run"


def bound(line: Line) -> Bound | None:
    """The bound set by the fastest fill or copy of the same bytes; None if nothing was timed."""
    before, published = line.result(BEFORE), line.result(PUBLISHED)
    if before is None or not line.timed or line.source is None or line.row is None:
        return None
    l3 = line.source.machine.cache_bytes(3)
    fill = next((one for one in line.row.limits if one.threads == before.limit_threads), line.fill)
    return Bound(
        of_limit=before.of_limit,
        of_limit_low=before.of_limit_low,
        after=None if published is None else published.of_limit,
        how=None if fill is None else fill.how,
        threads=before.limit_threads,
        nr_bytes=before.nr_bytes,
        of_l3=None if not l3 else before.nr_bytes / l3,
        rest=0.0 if line.row.whole is None else line.row.whole.left_out_ns / before.median,
        is_bound=limit_kind_of(line.source.summary) == "bound",
        found=None if line.ratio is None else 1 / (line.ratio.low or line.ratio.ratio or 1),
    )


def same_measurements(replications: Sequence[Replication]) -> tuple[tuple[str, ...], ...]:
    """The ids of tables whose judged claims rest on exactly the same measured rows, by group."""
    groups: dict[frozenset[tuple[str, str, str | None]], list[str]] = {}
    for one in replications:
        rows = frozenset(line.measured for line in one.deciding if line.tried)
        if rows:
            groups.setdefault(rows, []).append(one.table.id)
    return tuple(tuple(ids) for ids in groups.values() if len(ids) > 1)
