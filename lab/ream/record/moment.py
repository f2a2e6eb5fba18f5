# SPDX-License-Identifier: GPL-2.0-only
"""One observation of the machine: load, clocks and settings, and CPU time since the last one.

Nothing here raises: a value that cannot be read is None. Every reader takes the root of the file
system, so that tests can supply another machine's.
"""

import os
import re
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ream.errors import ReamError
from ream.record.machine import Snapshot, boost_of, conditions, take_snapshot, text_of, whole
from ream.settings import JOURNAL, SettingsJournal, chosen, state_dir
from ream.values import Value

SETTINGS = {
    "thp": "sys/kernel/mm/transparent_hugepage/enabled",
    "thp_defrag": "sys/kernel/mm/transparent_hugepage/defrag",
    "numa_balancing": "proc/sys/kernel/numa_balancing",
    "governor": "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor",
}
"""The file of each setting, by the name of a moment's field."""
BOOST = "boost"
"""Another setting, whose file depends on the driver."""

PRESSURES = ("cpu", "memory", "io")

LEAST_S = 0.5
"""The shortest time between two observations from which percentages are made, as ticks are 10
ms."""

_MHZ = re.compile(r"^cpu MHz\s*: ([0-9]{1,9}\.?[0-9]*)$", re.MULTILINE)


class Moment(Value):
    """One observation of the machine; percentages refer to the time since the previous one."""

    t_s: float
    """Seconds since the run began, by the monotonic clock. For a resumed run, the interruption is
    left out."""
    load: float | None
    steal_pct: float | None = None
    others_pct: float | None = None
    idle_pct: float | None = None
    mhz_low: float | None = None
    """mhz_low and mhz_high are the clocks of the slowest and the fastest CPU in our affinity
    mask."""
    mhz_high: float | None = None
    thp: str | None = None
    thp_defrag: str | None = None
    numa_balancing: str | None = None
    governor: str | None = None
    boost: str | None = None
    cpu_pressure_pct: float | None = None
    """Share of the time in which some task waited for a CPU (/proc/pressure)."""
    memory_pressure_pct: float | None = None
    io_pressure_pct: float | None = None
    throttled: int | None = None
    """How often since boot CPUs were throttled because of heat."""
    wall_offset_s: float = 0.0
    """Drift of the wall clock from the monotonic one since the watch began."""
    slept_s: float = 0.0
    """How long the machine was suspended since the watch began."""
    cost_us: float = 0.0
    """CPU time of this observation."""


@dataclass(frozen=True)
class _Clocks:
    """The three clocks at one time, in seconds."""

    monotonic_s: float
    wall_s: float
    boot_s: float
    """Monotonic time plus the time that the machine was suspended."""


def _clocks() -> _Clocks:
    return _Clocks(
        time.monotonic(),
        time.clock_gettime(time.CLOCK_REALTIME),
        time.clock_gettime(time.CLOCK_BOOTTIME),
    )


@dataclass(frozen=True)
class _Counters:
    """Counters from whose differences a moment is made."""

    at_s: float
    snapshot: Snapshot
    waited_us: Mapping[str, int]


class Looks:
    """Makes moments from the current counters and those of the previous observation."""

    def __init__(
        self, root: Path, cpus: Iterable[int] | None = None, *, begins_s: float = 0.0
    ) -> None:
        """cpus: the CPUs whose clocks are read; by default those in our affinity mask.

        begins_s: `t_s` at this time.
        """
        self._root = root
        self._begins_s = begins_s
        self._cpus = sorted(os.sched_getaffinity(0) if cpus is None else cpus)
        self._last: _Counters | None = None
        self.start = _clocks()

    def t_s(self, at: float) -> float:
        """Seconds since the run began, for a time of time.monotonic()."""
        return self._begins_s + at - self.start.monotonic_s

    def moment(self) -> Moment:
        """Observe the machine; the result includes the CPU time that this took."""
        began_ns = time.thread_time_ns()
        clocks, start = _clocks(), self.start
        now = _Counters(clocks.monotonic_s, take_snapshot(self._root), _waited_us(self._root))
        last = self._last or now
        long_enough = now.at_s - last.at_s >= LEAST_S
        during = conditions(last.snapshot if long_enough else now.snapshot, now.snapshot)
        waited = _since(last, now) if long_enough else {}
        self._last = now if long_enough else last
        settings = settings_now(self._root)
        mhz = clocks_mhz(self._root, self._cpus)
        passed_s = clocks.monotonic_s - start.monotonic_s
        return Moment(
            t_s=round(self.t_s(clocks.monotonic_s), 3),
            load=now.snapshot.load_1min,
            steal_pct=during.steal_pct,
            others_pct=during.others_pct,
            idle_pct=during.idle_pct,
            mhz_low=min(mhz, default=None),
            mhz_high=max(mhz, default=None),
            thp=settings["thp"],
            thp_defrag=settings["thp_defrag"],
            numa_balancing=settings["numa_balancing"],
            governor=settings["governor"],
            boost=settings[BOOST],
            cpu_pressure_pct=waited.get("cpu"),
            memory_pressure_pct=waited.get("memory"),
            io_pressure_pct=waited.get("io"),
            throttled=_throttled(self._root),
            wall_offset_s=_ms(clocks.wall_s - start.wall_s - passed_s),
            slept_s=_ms(clocks.boot_s - start.boot_s - passed_s),
            cost_us=round((time.thread_time_ns() - began_ns) / 1e3, 1),
        )


def _ms(difference_s: float) -> float:
    """The difference rounded to milliseconds, and never -0.0."""
    return round(difference_s, 3) + 0.0


def settings_now(root: Path, journal: Path | None = None) -> dict[str, str | None]:
    """Settings that a run depends on, with the original values of those that ream itself changed.

    journal: the journal of ream's own changes.
    """
    journal = state_dir() / JOURNAL if journal is None else journal
    # Read before and after: a change of ours may begin or end between two files.
    ours = _ours(journal)
    found = {name: text_of(root / path) for name, path in SETTINGS.items()}
    ours |= _ours(journal)
    said: dict[str, str | None] = {}
    for name, text in found.items():
        value = None if text is None else chosen(text)
        old, new = ours.get(f"/{SETTINGS[name]}", (value, value))
        said[name] = old if value == new else value
    return {**said, BOOST: boost_of(root)}


def _ours(journal: Path) -> dict[str, tuple[str, str]]:
    """Old and new value of each setting that ream has changed at this moment, by path."""
    with suppress(ReamError):
        if (told := SettingsJournal.load(journal)) is not None:
            return {entry.path: (entry.old, entry.new) for entry in told.entries}
    return {}


def clocks_mhz(root: Path, cpus: Iterable[int]) -> list[float]:
    """The clocks of those of the CPUs that report one, from sysfs or else from /proc/cpuinfo."""
    base = root / "sys/devices/system/cpu"
    found = [whole(text_of(base / f"cpu{cpu}/cpufreq/scaling_cur_freq")) for cpu in cpus]
    if khz := [one for one in found if one]:
        return [one / 1e3 for one in khz]
    # Some hypervisors say 0, which is no clock.
    said = _MHZ.findall(text_of(root / "proc/cpuinfo") or "")
    return [mhz for text in said if (mhz := float(text)) > 0]


def _waited_us(root: Path) -> dict[str, int]:
    """How long some task has waited since boot, by resource."""
    found = {}
    for what in PRESSURES:
        text = text_of(root / "proc/pressure" / what) or ""
        if match := re.search(r"^some .*total=([0-9]{1,19})$", text, re.MULTILINE):
            found[what] = int(match[1])
    return found


def _since(last: _Counters, now: _Counters) -> dict[str, float]:
    """Percentage of the time between two observations in which some task waited, by resource."""
    passed_us = 1e6 * (now.at_s - last.at_s)
    both = now.waited_us.keys() & last.waited_us.keys()
    shares = {what: 100 * (now.waited_us[what] - last.waited_us[what]) / passed_us for what in both}
    return {what: round(min(max(share, 0.0), 100.0), 2) for what, share in shares.items()}


def _throttled(root: Path) -> int | None:
    """How often all CPUs together were throttled; None if the machine does not count it."""
    cpus = root / "sys/devices/system/cpu"
    counts = [whole(text_of(path)) for path in cpus.glob("cpu[0-9]*/thermal_throttle/core_*_count")]
    known = [count for count in counts if count is not None]
    return sum(known) if known else None
