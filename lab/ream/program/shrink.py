# SPDX-License-Identifier: GPL-2.0-only
"""Finds a short program that still fails.

Chunks of steps are deleted first, then single ones (Zeller and Hildebrandt, "Simplifying and
isolating failure-inducing input", IEEE TSE 2002). Then sizes, ranges and options get smaller, alone
and with all that refers to them, and steps are deleted again, until nothing helps.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial

from ream.program.kinds import Place, Range, Value, halves
from ream.program.scene import without_misplaced
from ream.program.step import Program, Step

MOST_STAND_INS = 2
"""So many areas are tried in place of another one."""

Fails = Callable[[Program], bool]


def shrink(
    program: Program,
    fails: Fails,
    *,
    within_s: float,
    only_deletes: bool = False,
    now: Callable[[], float] = time.monotonic,
) -> Program:
    """Return the shortest program found within the time, and `program` itself if none is.

    fails: whether a program still fails; it is never asked twice about the same one. The result
    is one for which it said yes, or `program`, which is taken to fail. only_deletes: whether steps
    stay as they are.
    """
    search = _Search(program, fails, ends_at=now() + within_s, now=now)
    search.delete_chunks(least=1)
    if only_deletes:
        return search.best
    while (
        search.merge_processes()
        | search.merge_areas()
        | search.halve_all()
        | search.make_areas_smaller()
        | search.make_steps_smaller()
        | search.delete_chunks(least=1, most=2)
    ):
        pass
    return search.best


class _Search:
    """The shortest program so far, and the time at which the search ends."""

    def __init__(
        self, program: Program, fails: Fails, *, ends_at: float, now: Callable[[], float]
    ) -> None:
        self.best = program
        self._fails = fails
        self._ends_at = ends_at
        self._now = now
        self._asked: set[Program] = {program}

    def delete_chunks(self, *, least: int, most: int | None = None) -> bool:
        """Delete half of the steps, quarters, and so on; whether one of them was not needed.

        Later steps go first, since earlier ones are what they depend on.
        """
        nr = max(least, len(self.best) // 2) if most is None else most
        before = self.best
        while nr >= least:
            end = len(self.best)
            while end > 0:
                steps = self.best.steps
                self._try(steps[: max(0, end - nr)] + steps[end:])
                end = min(end - nr, len(self.best))
            nr //= 2
        return self.best != before

    def merge_processes(self) -> bool:
        """Let a process do what its child does, without a fork; whether a child is not needed."""
        before = self.best
        for fork in [step for step in self.best if step.get("child") is not None]:
            if fork in self.best.steps:
                self._try(_as_one(self.best, fork))
        return self.best != before

    def merge_areas(self) -> bool:
        """Use an area where another one was made or moved to; whether an area is not needed."""
        before = self.best
        for step in [step for step in self.best if step.verb == "mmap" or _moves(step)]:
            if step in self.best.steps:
                any(
                    self._try(_without_area(self.best, step, its))
                    for its in _stand_ins(self.best, step)
                )
        return self.best != before

    def make_areas_smaller(self) -> bool:
        """Make one area after another smaller, and what is done to its last pages with it."""
        before = self.best
        for name in {step.word("name"): None for step in self.best if step.verb == "mmap"}:
            sizes = [step.number("nr") for step in self.best if step.get("name") == name]
            for nr in halves(max(sizes, default=1), 1):
                if self._try(_cut(self.best, name, nr)):
                    break
        return self.best != before

    def halve_all(self) -> bool:
        """Make all areas and ranges half as large, as often as it still fails."""
        before = self.best
        while self._try(map(_halved, self.best)):
            pass
        return self.best != before

    def make_steps_smaller(self) -> bool:
        """Make the values of one step after another smaller; whether one could be."""
        before, place = self.best, 0
        while place < len(self.best):
            steps = self.best.steps
            if not any(
                self._try((*steps[:place], smaller, *steps[place + 1 :]))
                for smaller in (*_smaller_steps(steps[place]), *_with_first(steps, steps[place]))
            ):
                place += 1
        return self.best != before

    def _try(self, steps: Iterable[Step]) -> bool:
        """Go on to these steps, without those that no longer fit, if they still fail."""
        candidate = without_misplaced(Program(tuple(steps)))
        if candidate in self._asked or self._now() >= self._ends_at:
            return False
        self._asked.add(candidate)
        if self._fails(candidate):
            self.best = candidate
            return True
        return False


def _as_one(program: Program, fork: Step) -> Iterator[Step]:
    """The steps of a parent and of its child as those of the parent."""
    parent, child = fork.process, fork.number("child")
    both = {parent, child}
    for step in program:
        if step == fork or (step.verb == "exit" and step.process in both):
            continue
        yield replace(step, process=parent) if step.process == child else step


def _moves(step: Step) -> bool:
    """Whether a step moves pages of an area to another one."""
    return step.get("target") is not None


def _stand_ins(program: Program, made: Step) -> tuple[str, ...]:
    """Areas that may do for one that a step makes: that which it moves, or the first others."""
    if _moves(made):
        return (made.range().name,)
    areas = dict.fromkeys(step.word("name") for step in program if step.verb == "mmap")
    return tuple(name for name in areas if name != made.word("name"))[:MOST_STAND_INS]


def _without_area(program: Program, made: Step, new: str) -> Iterator[Step]:
    """The steps without one that makes an area, with another in its place, wherever that lies."""
    old = made.place("target").name if _moves(made) else made.word("name")

    def renamed(_: str, value: Value) -> Value:
        if isinstance(value, Range | Place) and value.name == old:
            return replace(value, name=new)
        return value

    for step in program:
        if step.get("name") == new:  # which is placed by itself then
            kept = (pair for pair in step.values if getattr(pair[1], "name", None) != old)
            yield replace(step, values=tuple(kept))
        elif step != made:
            yield _changed(step, renamed)


def _cut(program: Program, area: str, nr: int) -> Iterator[Step]:
    """The steps with an area, and what it becomes when it moves, of this many pages at most."""
    areas = {area}

    def shorter(sized: bool, name: str, value: Value) -> Value:
        match value:
            case Range(of, int(begin), int(end)) if of in areas:
                begin = min(begin, nr - 1)
                return Range(of, begin, max(begin + 1, min(end, nr)))
            case Place(of, offset) if of in areas:
                return Place(of, min(offset, nr - 1))
            case int() if sized and name in ("nr", "new_nr"):
                return min(value, nr)
        return value

    for step in program:
        moves = _moves(step) and step.range().name in areas
        if moves:
            areas.add(step.place("target").name)
        yield _changed(step, partial(shorter, moves or step.get("name") in areas))


def _smaller_steps(step: Step) -> Iterator[Step]:
    for flag in step.flags:
        yield replace(step, flags=tuple(one for one in step.flags if one != flag))
    for name, option in step.form.options.items():
        if step.get(name) is not None and not option.required:
            yield replace(step, values=tuple(pair for pair in step.values if pair[0] != name))
    for name, value in step.values:
        for smaller in step.kind(name).smaller(value):
            yield _with(step, name, smaller)


def _with_first(steps: Iterable[Step], step: Step) -> Iterator[Step]:
    """The step on the first area, so that the step that made its own may go."""
    first = next((one.word("name") for one in steps if one.verb == "mmap"), None)
    for name, value in step.values:
        if first and isinstance(value, Range) and name == "area" and value.name != first:
            yield _with(step, name, replace(value, name=first))


def _with(step: Step, name: str, value: Value) -> Step:
    return _changed(step, lambda one, its: value if one == name else its)


def _changed(step: Step, change: Callable[[str, Value], Value]) -> Step:
    """The step with other values: change is given the name and the value of each."""
    return replace(step, values=tuple((name, change(name, its)) for name, its in step.values))


def _halved(step: Step) -> Step:
    """The step with areas, ranges of them and offsets half as large; what fits still fits."""
    for name, value in step.values:
        if isinstance(value, Range) and value.begin is not None and value.end is not None:
            begin = value.begin // 2
            step = _with(step, name, Range(value.name, begin, max(begin + 1, value.end // 2)))
        elif name == "new_nr" or (step.verb, name) == ("mmap", "nr"):
            step = _with(step, name, max(1, step.number(name) // 2))
    return step
