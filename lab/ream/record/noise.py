# SPDX-License-Identifier: GPL-2.0-only
"""Observes the machine from a thread every other second while a run measures.

A moment is one observation; noise summarises all of them. Nothing here raises: a value that cannot
be read is None, and a moment that cannot be written is still part of the summary.
"""

import json
import os
import signal
import statistics
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import pairwise
from pathlib import Path

from ream.counted import counted
from ream.errors import ReamError
from ream.record.machine import Conditions, Machine, warnings
from ream.record.moment import BOOST, SETTINGS, Looks, Moment
from ream.values import Tuple, Value

PERIOD_S = 2.0
BURST_PCT = 10.0
"""Steal, or the share of other programs, above which a moment counts as a burst."""
MAX_BURSTS_PCT = 5.0
"""Percentage of moments with bursts above which a run gets a warning; a median tolerates fewer."""
CONSTANT_PCT = 50.0
"""Load in more than this percentage of moments is constant rather than a burst; its mean shows
it."""
MAX_CLOCK_PCT = 10.0
"""How far the fastest CPU's clock may move, in per cent: more than the effect of most patches."""
MAX_JUMP_S = 1.0
MOST_OF_A_CPU = 0.005
"""Share of one CPU that observing may take. If one observation takes long, as with 200 CPUs, there
are fewer of them."""
NICEST = 19
"""The thread's nice value, so that it waits for an idle CPU instead of disturbing a sample."""


class ForeignChange(Value):
    """A setting that another process changed during the run."""

    t_s: float
    setting: str
    old: str | None
    new: str | None


class Noise(Value):
    """The noise that a run met: a summary of its moments."""

    duration_s: float
    nr_moments: int
    """The number of moments with percentages; the first one has no predecessor to refer to."""
    load_mean: float | None
    load_max: float | None
    steal_mean_pct: float | None
    steal_max_pct: float | None
    nr_steal_bursts: int | None
    """The number of moments above BURST_PCT."""
    others_mean_pct: float | None
    others_max_pct: float | None
    nr_others_bursts: int | None
    mhz_low: float | None
    """mhz_low and mhz_high are the lowest and the highest clock of any CPU in our affinity mask."""
    mhz_high: float | None
    fastest_low: float | None
    """fastest_low and fastest_high are the lowest and the highest clock of the fastest CPU of a
    moment. Idle CPUs are slow, busy ones should not be."""
    fastest_high: float | None
    cpu_pressure_pct: float | None
    memory_pressure_pct: float | None
    io_pressure_pct: float | None
    """The three pressures are means over moments."""
    throttled: int | None
    """How often CPUs were throttled because of heat during the run."""
    numa_balancing: str | None
    """The setting at the start of the run."""
    changes: Tuple[ForeignChange] = ()
    wall_jump_s: float = 0.0
    """The range of the wall clock's drift from the monotonic one."""
    slept_s: float = 0.0
    cost_us: float = 0.0
    """Mean CPU time of an observation, which counts as ours."""

    @property
    def clock_moved_pct(self) -> float | None:
        """Percentage by which the fastest CPU's clock changed between any two moments."""
        if not self.fastest_low or not self.fastest_high:
            return None
        return 100 * (self.fastest_high / self.fastest_low - 1)

    def warnings(self, machine: Machine) -> tuple[str, ...]:
        """Warnings about a possible bias, each with its number, its threshold and a remedy."""
        nr_nodes = len([node for node in machine.nodes if node.cpus])
        return (*self._bursts(), *self._clocks(), *self._settings(nr_nodes))

    def _bursts(self) -> Iterator[str]:
        bursts = (
            ("the hypervisor took", self.nr_steal_bursts, "measure at another time"),
            ("other programs used", self.nr_others_bursts, "stop what runs now and then"),
        )
        for whose, number, way_out in bursts:
            share_pct = 100 * (number or 0) / max(self.nr_moments, 1)
            if MAX_BURSTS_PCT < share_pct <= CONSTANT_PCT:
                yield (
                    f"{whose} more than {BURST_PCT:g} % of the CPU time in {number} of "
                    f"{counted(self.nr_moments, 'look')} (more than {MAX_BURSTS_PCT:g} % of them):"
                    f" {way_out}, or take more rounds, whose median stands bursts"
                )

    def _clocks(self) -> Iterator[str]:
        moved = self.clock_moved_pct
        if moved is not None and moved > MAX_CLOCK_PCT:
            yield (
                f"the fastest CPU's clock moved between {self.fastest_low:.0f} and "
                f"{self.fastest_high:.0f} MHz ({moved:.0f} %, more than {MAX_CLOCK_PCT:g} %): "
                "`cpupower frequency-set -g performance` and boost off keep it still"
            )
        if self.throttled:
            yield (
                f"CPUs slowed themselves down for heat {counted(self.throttled, 'time')} (more than"
                " 0): cool the machine, or turn boost off"
            )
        if self.slept_s > MAX_JUMP_S:
            yield (
                f"the machine slept for {self.slept_s:.0f} s (more than {MAX_JUMP_S:g} s) during "
                "the run, and woke with cold caches: run again under `systemd-inhibit`"
            )
        elif self.wall_jump_s > MAX_JUMP_S:
            yield (
                f"the wall clock went {self.wall_jump_s:.1f} s (more than {MAX_JUMP_S:g} s) from "
                "the monotonic one, which samples are timed with: somebody set it, or the machine "
                "stood still; look that time is kept (`timedatectl`), and run again if it stood"
            )

    def _settings(self, nr_nodes: int) -> Iterator[str]:
        if nr_nodes > 1 and self.numa_balancing not in (None, "0"):
            yield (
                f"NUMA balancing is {self.numa_balancing} (more than 0) on {nr_nodes} nodes: the "
                "kernel moves pages while we measure; echo 0 > /proc/sys/kernel/numa_balancing"
            )
        for one in self.changes:
            yield (
                f"somebody changed {one.setting} from {one.old or '?'} to {one.new or '?'} "
                f"{one.t_s:.0f} s after the start: samples before and after are of two machines; "
                "run again and leave it"
            )


class Watch:
    """Observes the machine until it is stopped; watch() makes one."""

    def __init__(self, write: Callable[[str], None], root: Path, begins_s: float) -> None:
        self._write: Callable[[str], None] | None = write
        self._looks = Looks(root, begins_s=begins_s)
        self._seen: list[Moment] = []
        self._one_at_a_time = threading.Lock()
        self.ended = False

    def during(self, since: float | None = None) -> Noise:
        """A summary of the run so far, including an observation now unless the watch has ended.

        since: a time of time.monotonic(); earlier observations, such as those of a build, are left
        out.
        """
        if not self.ended:
            self.look()
        after_s = -1.0 if since is None else self._looks.t_s(since)
        return sum_up(self._seen.copy(), after_s)

    def look(self) -> Moment:
        """Observe the machine once, and write the moment."""
        with self._one_at_a_time:
            moment = self._looks.moment()
            self._seen.append(moment)
            if self._write is None:
                return moment
            try:
                self._write(json.dumps(moment.model_dump(mode="json")))
            except (OSError, ValueError, ReamError):  # the writer of samples reports a full disk
                self._write = None
            return moment


@contextmanager
def watch(
    write: Callable[[str], None],
    *,
    root: Path = Path("/"),
    period_s: float = PERIOD_S,
    begins_s: float = 0.0,
) -> Iterator[Watch]:
    """Observe the machine now, every `period_s`, and when the `with` block ends.

    write: receives each moment as one line of JSON without newline, from another thread. root: the
    root of the file system. begins_s: `t_s` at this time, if an earlier start of the run has
    observed up to then.
    """
    watching = Watch(write, root, begins_s)
    stop = threading.Event()
    thread = threading.Thread(
        target=_keep_looking, args=(watching, stop, period_s), name="noise", daemon=True
    )
    watching.look()
    thread.start()
    try:
        yield watching
    finally:
        stop.set()
        thread.join()
        watching.look()
        watching.ended = True


def _keep_looking(watching: Watch, stop: threading.Event, period_s: float) -> None:
    # A signal is the main thread's, whose system call it is to interrupt.
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    with suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICEST)
    cost_us = 0.0
    while not stop.wait(pause_s(period_s, cost_us)):
        cost_us = watching.look().cost_us


def pause_s(period_s: float, cost_us: float) -> float:
    """Seconds to wait after an observation of this cost."""
    return max(period_s, cost_us / 1e6 / MOST_OF_A_CPU)


def sum_up(moments: Sequence[Moment], after_s: float = -1.0) -> Noise:
    """The summary of moments after `after_s`; the last one before it is the starting point."""
    first = max((n for n, one in enumerate(moments) if one.t_s <= after_s), default=0)
    moments = moments[first:]
    later = moments[1:]
    steal, others = _known(m.steal_pct for m in later), _known(m.others_pct for m in later)
    load = _known(m.load for m in moments)
    fastest = _known(m.mhz_high for m in moments)
    start = moments[0]
    throttled = [count for count in (m.throttled for m in moments) if count is not None]
    offsets = [m.wall_offset_s for m in moments]
    return Noise(
        duration_s=round(moments[-1].t_s - start.t_s, 3),
        nr_moments=max(len(steal), len(others)),
        load_mean=_mean(load),
        load_max=max(load, default=None),
        steal_mean_pct=_mean(steal),
        steal_max_pct=max(steal, default=None),
        nr_steal_bursts=_bursts(steal),
        others_mean_pct=_mean(others),
        others_max_pct=max(others, default=None),
        nr_others_bursts=_bursts(others),
        mhz_low=min(_known(m.mhz_low for m in moments), default=None),
        mhz_high=max(fastest, default=None),
        fastest_low=min(fastest, default=None),
        fastest_high=max(fastest, default=None),
        cpu_pressure_pct=_mean(_known(m.cpu_pressure_pct for m in later)),
        memory_pressure_pct=_mean(_known(m.memory_pressure_pct for m in later)),
        io_pressure_pct=_mean(_known(m.io_pressure_pct for m in later)),
        throttled=throttled[-1] - throttled[0] if throttled else None,
        numa_balancing=start.numa_balancing,
        changes=tuple(_changes(moments)),
        wall_jump_s=round(max(offsets) - min(offsets), 3),
        slept_s=round(moments[-1].slept_s - start.slept_s, 3),
        cost_us=round(statistics.fmean(m.cost_us for m in moments), 1),
    )


def _known(values: Iterable[float | None]) -> list[float]:
    return [value for value in values if value is not None]


def _mean(values: Sequence[float]) -> float | None:
    return round(statistics.fmean(values), 2) if values else None


def _bursts(shares_pct: Sequence[float]) -> int | None:
    return sum(share > BURST_PCT for share in shares_pct) if shares_pct else None


def _changes(moments: Sequence[Moment]) -> Iterator[ForeignChange]:
    for early, late in pairwise(moments):
        for name in (*SETTINGS, BOOST):
            old, new = getattr(early, name), getattr(late, name)
            if old != new:
                yield ForeignChange(t_s=late.t_s, setting=name, old=old, new=new)


def all_warnings(machine: Machine, during: Conditions, noise: Noise | None) -> tuple[str, ...]:
    """Warnings about a possible bias from the machine and, if there was a watch, from its noise."""
    return (*warnings(machine, during), *(noise.warnings(machine) if noise else ()))
