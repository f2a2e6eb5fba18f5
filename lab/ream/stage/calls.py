# SPDX-License-Identifier: GPL-2.0-only
"""Checks calls that leave no trace in memory: a series must make as many as its tree.

A lost cond_resched() makes no byte wrong, but may hang a machine. No specification defines how
often it is due, so the tree that a series applies to is the reference, case by case.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import product

from ream.errors import WrongVariant
from ream.stage.native import Event, Round

OWED = ("__cond_resched", "set_cpus_allowed_ptr")
"""Functions of other parts of the kernel that a series may call more often, but not less often."""

WORK = {
    "__cond_resched": (
        ("free_pages_and_swap_cache", 2),
        ("vma_alloc_folio_noprof", 1),
        ("folio_alloc_noprof", 1),
    )
}
"""By owed function, other functions and how many owed calls follow each of their calls. A series
that calls the others less often owes fewer calls.

A full mmu_gather is freed with one, and zap_pte_range() breaks off for it with another.
copy_pte_range() breaks off to allocate the page that a pinned one is copied to. With a batch it
does so for pages that turn out not to need one, and without batches it does not.
"""


class Calls:
    """Counts of these calls, by kernel and case."""

    def __init__(self, trees: Mapping[str, str], elsewhere: Collection[str] = ()) -> None:
        """Start with no counts.

        trees: the tree that each given variant applies to, by variant; it runs the same cases.
        elsewhere: functions that hand work to other CPUs. A series that calls one of them more
        often in a case owes no cond_resched() there, since a tree that does all the work on one
        CPU does not define how the rest is split.
        """
        self._trees = trees
        self._elsewhere = elsewhere
        self._calls: Counter[tuple[str, int, str, str]] = Counter()
        self._held: list[Collection[str]] = []
        """The variants in each launch's program."""
        self._rows: list[list[str]] = []
        """The cases of each launch."""

    def counted(self, said: Iterable[Event], variants: Collection[str]) -> Iterator[Event]:
        """Yield the events of a launch and count them.

        variants: those of its program. A tree that is in several programs makes its calls in each,
        so launches are counted separately.
        """
        launch = len(self._held)
        self._held.append(variants)
        self._rows.append([])
        before: dict[tuple[str, str], int] = {}
        for event in said:
            if isinstance(event, Round):
                self._rows[launch].append(event.row)
                for stub in event.stubs:
                    who = stub["variant"], stub["name"]
                    self._calls[event.row, launch, *who] += stub["calls"] - before.get(who, 0)
                    before[who] = stub["calls"]
            yield event

    def check(self) -> None:
        """Raise WrongVariant, which names a case, if a series made fewer calls than it owes."""
        for launch, rows in enumerate(self._rows):
            for row, (given, tree) in product(rows, self._trees.items()):
                if given not in self._held[launch]:
                    continue
                if (theirs := self._launch_of(tree, row, launch)) is None:
                    continue
                self._check_case(row, (given, launch), (tree, theirs))

    def _launch_of(self, tree: str, row: str, launch: int) -> int | None:
        """Return the launch in which the tree ran a case; None if it did not."""
        if tree in self._held[launch]:
            return launch
        found = (at for at, rows in enumerate(self._rows) if tree in self._held[at] and row in rows)
        return next(found, None)

    def _check_case(self, row: str, given: tuple[str, int], tree: tuple[str, int]) -> None:
        """Check a case; given, tree: a variant, and the launch in which it ran the case."""

        def calls(name: str) -> tuple[int, int]:
            due, done = (self._calls[row, at, who, name] for who, at in (tree, given))
            return due, done

        given_away = any(its > theirs for theirs, its in map(calls, self._elsewhere))
        for name in OWED:
            if given_away and name == "__cond_resched":
                continue
            due, done = calls(name)
            saved = ((nr, *calls(work)) for work, nr in WORK.get(name, ()))
            spared = sum(nr * max(theirs - its, 0) for nr, theirs, its in saved)
            if done < due - spared:
                raise WrongVariant(
                    f"{row}: {given[0]}: {name}() is called {done} times, by {tree[0]} {due} times",
                    given[0],
                )
