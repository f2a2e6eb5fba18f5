# SPDX-License-Identifier: GPL-2.0-only
"""What a kernel must do that leaves no trace in memory: at least as often as the tree it is of.

A lost cond_resched() makes no byte wrong, and a machine hang. No specification says how often it
is due, so the tree that a series was put on says it, case by case.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping

from ream.errors import WrongVariant
from ream.stage.native import Event, Round

OWED = ("__cond_resched", "set_cpus_allowed_ptr")
"""Functions of the kernel's other parts that a series may call more often, and not less."""

WORK = {
    "__cond_resched": (
        ("free_pages_and_swap_cache", 2),
        ("vma_alloc_folio_noprof", 1),
        ("folio_alloc_noprof", 1),
    )
}
"""What is followed by how many of them each time: a series that does it less often owes less.

A full mmu_gather is freed with one, and zap_pte_range() breaks off for it with another.
copy_pte_range() breaks off to allocate the page that a pinned one is copied to. With a batch it
does so for pages that turn out not to need one, and without batches it does not.
"""


class Calls:
    """How often each kernel called them in each case."""

    def __init__(self, trees: Mapping[str, str]) -> None:
        """trees: by given variant, the tree that it applies to, which runs the same cases."""
        self._trees = trees
        self._calls: Counter[tuple[str, int, str, str]] = Counter()
        self._held: list[Collection[str]] = []
        """The variants in each launch's program."""

    def counted(self, said: Iterable[Event], variants: Collection[str]) -> Iterator[Event]:
        """What a launch says, which is counted on the way.

        variants: of its program. A tree that is in several of them does its calls in each, so
        launches are counted apart.
        """
        launch = len(self._held)
        self._held.append(variants)
        before: dict[tuple[str, str], int] = {}
        for event in said:
            if isinstance(event, Round):
                for stub in event.stubs:
                    who = stub["variant"], stub["name"]
                    self._calls[event.row, launch, *who] += stub["calls"] - before.get(who, 0)
                    before[who] = stub["calls"]
            yield event

    def _spared(self, row: str, launch: int, given: str, name: str) -> int:
        """How many calls less are due of a series that does less of what they follow."""
        tree = self._trees[given]

        def saved(work: str) -> int:
            due, done = (self._calls[row, launch, who, work] for who in (tree, given))
            return max(due - done, 0)

        return sum(nr * saved(work) for work, nr in WORK.get(name, ()))

    def check(self) -> None:
        """Raises WrongVariant, which names a case, if a series left calls out."""
        for row, launch, variant, name in sorted(self._calls):
            for given, tree in self._trees.items():
                is_due = tree == variant and name in OWED and given in self._held[launch]
                due, done = (self._calls[row, launch, who, name] for who in (tree, given))
                if is_due and done < due - self._spared(row, launch, given, name):
                    raise WrongVariant(
                        f"{row}: {given}: {name}() is called {done} times, by {tree} {due} times",
                        given,
                    )
