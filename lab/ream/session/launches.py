# SPDX-License-Identifier: GPL-2.0-only
"""Runs all launches of a native run and turns their output into samples of the record.

Output of an earlier start of a launch is replayed from the journal. A starter runs the remaining
launches: it links a program here, or replays the recorded lines of one that ran on another machine.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Generator, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, closing
from dataclasses import dataclass
from typing import Any

from ream.errors import VariantFails
from ream.experiment import Row
from ream.measure.plan import LIMIT_KINDS, PASSES, Launch, bytes_gone_by
from ream.measure.sample import Sample
from ream.progress import Reporter
from ream.record.journal import Journal
from ream.record.record import RecordWriter
from ream.stage import native

Events = Generator[native.Event | None, None, None]

Start = Callable[[Mapping[str, int], Callable[[str], None]], Iterator[native.Event]]
"""Starts a launch and yields its events. The arguments are the rounds by row that an earlier start
completed, and a function that is called with every line."""

Starter = Callable[[Launch], AbstractContextManager[Start]]
"""Returns a context with the Start of a launch. Its files are removed at the end of the block."""


@dataclass(frozen=True)
class LaunchPlan:
    """A plan of launches: the rows, sized to fit this machine, and every launch."""

    rows: tuple[Row, ...]
    launches: tuple[Launch, ...]
    threads: int | None
    cpus: int
    """CPUs that the kernels see; 0: all CPUs of the machine."""
    label: str = ""
    """The program, and its kernels' options beyond the stage's configuration. It is part of every
    launch's name."""
    control: float | None = None
    at_once: bool = False
    """Whether all launches run at the same time, since their results do not depend on load."""
    emulated: bool = False
    """Whether they run under an emulator, which is restarted if it fails."""

    def weight(self) -> float:
        """The total work in bytes, the unit in which progress is counted."""
        return float(
            sum(
                bytes_gone_by(
                    self.rows,
                    nr_variants=len(launch.link_order),
                    launches=1,
                    nr_limits=LIMIT_KINDS * (1 if self.threads == 1 else 2),
                )
                for launch in self.launches
            )
        )


Stubs = dict[str, Any]
"""calls: how often the run reached a stub, by stub and honesty, then by variant. told: further
output by launch. refused: hardware counters that could not be opened, with the name of the error.
"""

_BEGUN = json.dumps({"begun": True})
"""Entry in the journal for a start of the runner, whose counts begin at 0."""


class Reached:
    """Output of all starts of all launches besides samples."""

    def __init__(self) -> None:
        self._calls: dict[str, Counter[str]] = defaultdict(Counter)
        self._of_start: dict[int, tuple[Mapping[str, Any], ...]] = {}
        """Output of the current start, by launch."""
        self.huge_ratio = 1.0
        self.told: list[Mapping[str, int]] = []
        self.refused: dict[str, str] = {}
        self.cpu_clock_step_ns = 0

    def begin(self, launch: int) -> None:
        """Continue after an interrupted start of a launch from its last complete round."""
        for stub in self._of_start.pop(launch, ()):
            self._calls[f"{stub['name']} ({stub['honesty']})"][stub["variant"]] += stub["calls"]

    def hear(self, launch: int, said: native.Round | native.End | native.Refused) -> None:
        """Record an event of a launch that is no sample."""
        if isinstance(said, native.Refused):
            self.refused.update(said.counters)
            return
        self._of_start[launch] = said.stubs
        self.huge_ratio = min(self.huge_ratio, said.huge_ratio)
        if isinstance(said, native.End):
            self.told.append(said.told)
            self.cpu_clock_step_ns = max(self.cpu_clock_step_ns, said.cpu_clock_step_ns)
            self.begin(launch)

    def stubs(self) -> Stubs:
        """Return what the receipt records about stand-ins."""
        calls = {name: dict(counts) for name, counts in self._calls.items()}
        told = {"told": self.told} if any(self.told) else {}
        refused = {"refused": self.refused} if self.refused else {}
        return {"calls": calls, **told, **refused}


def samples_of(
    plan: LaunchPlan,
    starter: Starter,
    reached: Reached,
    failed: Collection[str],
    *,
    record: RecordWriter,
    reporter: Reporter,
) -> Iterator[Sample]:
    """Run every launch; each sample is written to the record immediately.

    failed: variants that failed. Samples that they gave in earlier rounds are left out.
    """
    with reporter.measuring(plan.weight()) as advance:
        all_events = {
            launch.number: _events(launch, plan, starter, journal=record.journal, reporter=reporter)
            for launch in plan.launches
        }
        for number, said in _in_turn(all_events) if plan.at_once else _one_by_one(all_events):
            if said is None:
                reached.begin(number)
            elif not isinstance(said, Sample):
                reached.hear(number, said)
            elif said.subject not in failed:
                record.append(said)
                yield said
                doing = f"launch {number + 1} of {len(plan.launches)}, {said.row}"
                advance(float(said.nr_bytes * PASSES[said.role]), doing)


def _one_by_one(launches: Mapping[int, Events]) -> Iterator[tuple[int, native.Event | None]]:
    """Yield the events of launches that run one after the other."""
    for number, events in launches.items():
        yield from ((number, said) for said in events)


def _in_turn(launches: Mapping[int, Events]) -> Iterator[tuple[int, native.Event | None]]:
    """Yield the events of launches that run at the same time, one event of each in turn."""
    left = dict(launches)
    with ExitStack() as stack:  # if one fails, the others are ended
        for events in launches.values():
            stack.enter_context(closing(events))
        while left:
            for number, events in [*left.items()]:
                try:
                    yield number, next(events)
                except StopIteration:
                    del left[number]


def _events(
    launch: Launch, plan: LaunchPlan, starter: Starter, *, journal: Journal, reporter: Reporter
) -> Events:
    """Yield a launch's events; those of rounds that an earlier start completed are replayed.

    Yields None where another start begins.
    """
    piece = f"launch {launch.number} {plan.label}".rstrip()
    done: Counter[str] = Counter()
    with reporter.again():
        if (yield from _said_before(piece, journal, done)):
            return
    with starter(launch) as begin:

        def start() -> Iterator[native.Event]:
            return begin(done, lambda text: journal.add(piece, text))

        journal.add(piece, _BEGUN)
        yield None
        said: Iterator[native.Event | None]
        said = native.until_whole(start) if plan.emulated else start()
        try:
            for event in said:
                if event is None:
                    reporter.step(f"{piece}: the emulator gave up; it begins again")
                    journal.drop(piece)
                    journal.add(piece, _BEGUN)
                yield event
                if isinstance(event, native.Round | native.End):
                    journal.whole(piece)
                if isinstance(event, native.Round):
                    done[event.row] += 1
        except (VariantFails, GeneratorExit):  # also if it is stopped because another launch failed
            journal.drop(piece)
            raise


def _said_before(
    piece: str, journal: Journal, done: Counter[str]
) -> Generator[native.Event | None, None, bool]:
    """Yield events of earlier starts; return whether the launch ended. Adds rounds to `done`."""
    for text in journal.said(piece):
        if text == _BEGUN:
            yield None
            continue
        event = native.event_of(text, where=piece)
        yield event
        if isinstance(event, native.End):
            return True
        if isinstance(event, native.Round):
            done[event.row] += 1
    return False
