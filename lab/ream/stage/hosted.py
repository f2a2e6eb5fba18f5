# SPDX-License-Identifier: GPL-2.0-only
"""What the native stage asks of an experiment, in its module `hosted`."""

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
"""Of each pass, after the edges; more take --verify-minutes."""
SEED_BITS = 32

Planned = AbstractContextManager[tuple[Path, tuple[int, ...]]]
"""A plan file, and the file descriptors that the runner needs open."""
Batch = tuple[Planned, int]
"""The plan of one launch and its number of CPUs; 0: all CPUs there are."""


class Cases(Protocol):
    """Edges by name and mixtures by seed, which every kernel must pass before it is timed."""

    def __call__(
        self, build: Build, work: Path, seeds: Iterable[int], *, edges: bool
    ) -> Iterator[Batch]: ...


class LeftOutOf(Protocol[R]):  # type: ignore[misc]  # a row is only ever given to it
    """By row that times a part of a call: what the rest takes, or why that is not known."""

    def __call__(
        self, rows: Iterable[R], *, seed: int, work: Path, step: Callable[[str], None]
    ) -> Mapping[str, LeftOut | str]: ...


class Suit(Protocol[R]):  # type: ignore[misc]  # a row is only ever given to it
    """Which rows can be run on how many CPUs; cpus: instead of this machine's."""

    def __call__(
        self, rows: Sequence[R], threads: int | None, /, *, cpus: int | None = None
    ) -> Suited: ...


def as_they_are(rows: Sequence[R], threads: int | None, *, cpus: int | None = None) -> Suited:
    """All rows, where the number of CPUs does not matter."""
    del threads, cpus
    return Suited(tuple(rows))


def every_row(row: object) -> bool:
    """Of an experiment with one program, that runs all of its rows."""
    del row
    return True


@dataclass(frozen=True)
class Otherwise:
    """What a series may do otherwise than its tree, since the specification leaves it open.

    A kernel that came later does so. A series that is not what its tree's facts predict is held
    against these: all that it does must then be as they predict, and it is told. The other way
    round is no choice: a newer kernel's promise is broken by a series that goes back.
    """

    fact: str
    value: int
    words: str
    """What it does, with "it" before."""

    def __str__(self) -> str:
        return self.words

    def over(self, facts: Facts) -> Facts:
        """The facts with this one in the place of the tree's, if they have it."""
        return {**facts, self.fact: self.value} if self.fact in facts else facts


@dataclass(frozen=True)
class Hosted(Generic[R]):
    """How rows become a runner's plans, and how large they are.

    An experiment whose rows need different kernel objects has a program for each kind: the others
    are `beside` the first, each with a `label` of its own, and `runs` says which rows it takes.
    """

    folder: Path
    """The folder with glue.c, the runner's sources and the list of kernel objects."""
    plan_of: Callable[[Sequence[R], int | None, Build, Path], Planned]
    """Make the plan of rows with at most this many threads; None: as many as there are CPUs."""
    sized: Sized[R]
    cases: Cases
    suit: Suit[R] = as_they_are
    left_out: LeftOutOf[R] | None = None
    programs: tuple[Workload, ...] = ()
    """Workloads that left_out() runs."""
    runs: Callable[[R], bool] = every_row
    """Whether a row is one of this program's."""
    label: str = ""
    """A word for this program, in names of folders and launches; the first needs none."""
    beside: tuple["Hosted[R]", ...] = ()
    """The experiment's other programs."""
    same_work: bool = True
    """Whether all kernels have the same to do in a case: then a series owes what its tree calls."""
    elsewhere: tuple[str, ...] = ()
    """Hosted functions that give work to others: see `Calls`."""
    otherwise: tuple[Otherwise, ...] = ()
    any_page: bool = False
    """Whether struct page may have any size; else that of the kernel without a series."""
    arches: tuple[str, ...] = (X86_64.name,)
    """The architectures of kernels that it hosts."""
    why_not_others: str = "its glue and its oracle know no other"
    unhosted: Mapping[str, str] = field(default_factory=dict)
    """Options that its kernels cannot have, besides those that no hosted one can, and why."""


def programs_of(experiment: Experiment) -> tuple[Hosted[RowBase], ...]:
    """The programs of an experiment's native stage, none if its rows are programs of steps.

    Raises BadUsage if it has neither.
    """
    found = part(type(experiment), "hosted", Hosted)
    if found is None and steps_of(experiment):
        return ()
    if found is None:
        raise BadUsage(f"{experiment.folder}: rows of the native stage, and no hosted.py")
    return (found, *found.beside)


def hosting() -> list[Experiment]:
    """The experiments that say which objects they host."""
    native = (one for one in map(named, names()) if one.has("native"))
    return [one for one in native if programs_of(one)]


def calls_owed(its: Hosted[R], trees: Mapping[str, str]) -> Calls:
    """What series must call as often as their trees; nothing where a better one has less to do.

    trees: by given variant, the tree that it applies to.
    """
    return Calls(trees if its.same_work else {}, its.elsewhere)


def drawn(seed: int | str) -> random.Random:
    """A generator of lots, no secrets."""
    return random.Random(seed)  # noqa: S311


def some(items: Iterable[T], most: int) -> Iterator[list[T]]:
    """The items in lists of at most so many."""
    rest = iter(items)
    while found := list(islice(rest, most)):
        yield found


def cases_of(
    cases: Cases, build: Build, work: Path, *, seed: int, pass_number: int
) -> Iterator[Batch]:
    """What one pass launches: in the first one all edges, in each one mixtures of its own.

    The seed draws all mixtures; their names hold what makes each of them again.
    """
    draw = drawn(f"{seed} {pass_number}")
    seeds = [draw.getrandbits(SEED_BITS) for _ in range(MIXTURES)]
    yield from cases(build, work, seeds, edges=pass_number == 0)
