# SPDX-License-Identifier: GPL-2.0-only
"""All launches of a native run, wherever they run: what they say becomes samples of the record.

What an earlier start of a launch has said comes from the journal. A launch that is left is begun
by a starter: of a program that is linked here, or of one that ran on another machine and of which
the lines were kept.
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
"""Begins a launch and yields what it says. It is given the rounds by row that an earlier start has
done, and what is to hear every line."""

Starter = Callable[[Launch], AbstractContextManager[Start]]
"""What a launch is begun with; nothing of it is left behind the block."""


@dataclass(frozen=True)
class LaunchPlan:
    """What is launched: the rows as they fit this machine, and every launch."""

    rows: tuple[Row, ...]
    launches: tuple[Launch, ...]
    threads: int | None
    cpus: int
    """CPUs that the kernels see; 0: as many as there are."""
    label: str = ""
    """Which program it is, and what its kernels have over the stage's configuration; in the name of
    every launch."""
    control: float | None = None
    at_once: bool = False
    """Whether all launches run at the same time: what they say does not depend on it."""
    emulated: bool = False
    """Whether an emulator runs them, which may give up and then begins again."""

    def weight(self) -> float:
        """All of the work, in the bytes that samples are counted by as they come."""
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
"""calls: by stub and honesty, then by variant, how often the run reached it. told: of every launch
that has more to say, what; by name. refused: counters of the machine that could not be opened,
and the name of the error."""

_BEGUN = json.dumps({"begun": True})
"""In the journal: a start of the runner, whose counts begin at 0."""


class Reached:
    """What the starts of all launches said besides samples."""

    def __init__(self) -> None:
        self._calls: dict[str, Counter[str]] = defaultdict(Counter)
        self._of_start: dict[int, tuple[Mapping[str, Any], ...]] = {}
        """By launch."""
        self.huge_ratio = 1.0
        self.told: list[Mapping[str, int]] = []
        self.refused: dict[str, str] = {}
        self.cpu_clock_step_ns = 0

    def begin(self, launch: int) -> None:
        """Continue after an interrupted start of a launch from its last complete round."""
        for stub in self._of_start.pop(launch, ()):
            self._calls[f"{stub['name']} ({stub['honesty']})"][stub["variant"]] += stub["calls"]

    def hear(self, launch: int, said: native.Round | native.End | native.Refused) -> None:
        """Remember what a launch said that is no sample."""
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
        """Everything about stand-ins that the receipt keeps."""
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
    """Run every launch; each sample is in the record as soon as it is known.

    failed: variants whose samples, of rounds before that was known, are left out.
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
    """What launches say, each when the one before it has ended."""
    for number, events in launches.items():
        yield from ((number, said) for said in events)


def _in_turn(launches: Mapping[int, Events]) -> Iterator[tuple[int, native.Event | None]]:
    """What launches say that run at the same time: of each an event, again and again."""
    left = dict(launches)
    with ExitStack() as stack:  # where one of them fails, the others end
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
    """What a launch says; of the rounds that an earlier start has done, what that said.

    None where another start begins.
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
        except (VariantFails, GeneratorExit):  # also of one that is stopped since another failed
            journal.drop(piece)
            raise


def _said_before(
    piece: str, journal: Journal, done: Counter[str]
) -> Generator[native.Event | None, None, bool]:
    """What earlier starts of a launch said, and whether it had ended; adds rounds to `done`."""
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
