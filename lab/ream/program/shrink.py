# SPDX-License-Identifier: GPL-2.0-only
"""Finds a short program that still fails.

Chunks of steps are deleted first, then single ones (Zeller and Hildebrandt, "Simplifying and
isolating failure-inducing input", IEEE TSE 2002). Then sizes, ranges and options get smaller.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from ream.program.kinds import Range, Value
from ream.program.scene import without_misplaced
from ream.program.step import Program, Step

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
        | search.halve_all()
        | search.make_steps_smaller()
        | search.delete_chunks(least=1, most=1)
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
    values = tuple((one, value if one == name else its) for one, its in step.values)
    return replace(step, values=values)


def _halved(step: Step) -> Step:
    """The step with areas, ranges of them and offsets half as large; what fits still fits."""
    for name, value in step.values:
        if isinstance(value, Range) and value.begin is not None and value.end is not None:
            begin = value.begin // 2
            step = _with(step, name, Range(value.name, begin, max(begin + 1, value.end // 2)))
        elif name == "new_nr" or (step.verb, name) == ("mmap", "nr"):
            step = _with(step, name, max(1, step.number(name) // 2))
    return step
