# SPDX-License-Identifier: GPL-2.0-only
"""What an experiment provides for the native stage, in its module `hosted`."""

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from ream.errors import BadUsage
from ream.experiment.registry import Experiment, named, part
from ream.experiment.shape import RowBase
from ream.folders import names
from ream.kernel.arch import X86_64
from ream.measure.whole import LeftOut
from ream.stage.calls import Calls
from ream.stage.memory import Sized
from ream.stage.native import Build, Facts, Suited
from ream.stage.steps import steps_of
from ream.stage.workload import Workload

R = TypeVar("R", bound=RowBase)
T = TypeVar("T")

MIXTURES = 40
"""Mixtures verified in each pass, after the edges; --verify-minutes adds more."""
SEED_BITS = 32

Planned = AbstractContextManager[tuple[Path, tuple[int, ...]]]
"""A plan file, and the file descriptors that the runner needs open."""
Batch = tuple[Planned, int]
"""The plan of one launch and its number of CPUs; 0: all CPUs there are."""


class Cases(Protocol):
    """Edge cases by name and mixtures by seed, which every kernel must pass before it is timed."""

    def __call__(
        self, build: Build, work: Path, seeds: Iterable[int], *, edges: bool
    ) -> Iterator[Batch]: ...


class LeftOutOf(Protocol[R]):  # type: ignore[misc]  # a row is only ever given to it
    """Returns the time of the rest of a call, or why it is not known, by row that times a part."""

    def __call__(
        self, rows: Iterable[R], *, seed: int, work: Path, step: Callable[[str], None]
    ) -> Mapping[str, LeftOut | str]: ...


class Suit(Protocol[R]):  # type: ignore[misc]  # a row is only ever given to it
    """Selects the rows that can be run; cpus: a number of CPUs instead of this machine's."""

    def __call__(
        self, rows: Sequence[R], threads: int | None, /, *, cpus: int | None = None
    ) -> Suited: ...


def as_they_are(rows: Sequence[R], threads: int | None, *, cpus: int | None = None) -> Suited:
    """Return all rows, for experiments where the number of CPUs does not matter."""
    del threads, cpus
    return Suited(tuple(rows))


def every_row(row: object) -> bool:
    """Return True: an experiment with one program runs all of its rows."""
    del row
    return True


@dataclass(frozen=True)
class Otherwise:
    """Behaviour of newer kernels that a series may adopt, where the specification leaves a choice.

    A series that does not match its tree's facts is checked against this fact instead. It must then
    match in everything, and this is reported. The reverse is not allowed: a series for a newer
    kernel must not return to the older behaviour.
    """

    fact: str
    value: int
    words: str
    """The behaviour as a phrase that follows "it"."""

    def __str__(self) -> str:
        return self.words

    def over(self, facts: Facts) -> Facts:
        """Return the facts with this one replaced, if they have it."""
        return {**facts, self.fact: self.value} if self.fact in facts else facts


@dataclass(frozen=True)
class Hosted(Generic[R]):
    """How rows become a runner's plans, and how large they are.

    An experiment whose rows need different kernel objects has a program for each kind. The others
    are listed in `beside` of the first, each with its own `label`; `runs` selects its rows.
    """

    folder: Path
    """The folder with glue.c, the runner's sources and the list of kernel objects."""
    plan_of: Callable[[Sequence[R], int | None, Build, Path], Planned]
    """Makes the plan of rows with at most this many threads; None: as many as there are CPUs."""
    sized: Sized[R]
    cases: Cases
    suit: Suit[R] = as_they_are
    left_out: LeftOutOf[R] | None = None
    programs: tuple[Workload, ...] = ()
    """Workloads that left_out() runs."""
    runs: Callable[[R], bool] = every_row
    """Whether this program runs a row."""
    label: str = ""
    """A word for this program in names of folders and launches; the first program needs none."""
    beside: tuple["Hosted[R]", ...] = ()
    """The experiment's other programs."""
    same_work: bool = True
    """Whether all kernels do the same work in a case, so that a series owes its tree's calls."""
    elsewhere: tuple[str, ...] = ()
    """Hosted functions that hand work to other CPUs; see `Calls`."""
    otherwise: tuple[Otherwise, ...] = ()
    any_page: bool = False
    """Whether struct page may have any size; else it must have that of the base kernel."""
    arches: tuple[str, ...] = (X86_64.name,)
    """The architectures of kernels that it hosts."""
    why_not_others: str = "its glue and its oracle know no other"
    unhosted: Mapping[str, str] = field(default_factory=dict)
    """Options that its kernels cannot have, and why, besides those of all hosted kernels."""


def programs_of(experiment: Experiment) -> tuple[Hosted[RowBase], ...]:
    """Return the programs of an experiment's native stage; none if its rows are programs of steps.

    Raises BadUsage if it has neither.
    """
    found = part(type(experiment), "hosted", Hosted)
    if found is None and steps_of(experiment):
        return ()
    if found is None:
        raise BadUsage(f"{experiment.folder}: rows of the native stage, and no hosted.py")
    return (found, *found.beside)


def hosting() -> list[Experiment]:
    """Return the experiments that list hosted objects."""
    native = (one for one in map(named, names()) if one.has("native"))
    return [one for one in native if programs_of(one)]


def calls_owed(its: Hosted[R], trees: Mapping[str, str]) -> Calls:
    """Return the check of calls that series owe; empty if kernels do not do the same work.

    trees: the tree that each given variant applies to, by variant.
    """
    return Calls(trees if its.same_work else {}, its.elsewhere)


def drawn(seed: int | str) -> random.Random:
    """Return a random generator, which is not for secrets."""
    return random.Random(seed)  # noqa: S311


def some(items: Iterable[T], most: int) -> Iterator[list[T]]:
    """Yield the items in lists of at most `most`."""
    rest = iter(items)
    while found := list(islice(rest, most)):
        yield found


def cases_of(
    cases: Cases, build: Build, work: Path, *, seed: int, pass_number: int
) -> Iterator[Batch]:
    """Yield the launches of one pass: all edge cases in the first, and new mixtures in each.

    The seed determines all mixtures; the name of a mixture suffices to make it again.
    """
    draw = drawn(f"{seed} {pass_number}")
    seeds = [draw.getrandbits(SEED_BITS) for _ in range(MIXTURES)]
    yield from cases(build, work, seeds, edges=pass_number == 0)
