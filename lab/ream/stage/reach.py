# SPDX-License-Identifier: GPL-2.0-only
"""Finds the kernel functions that each row executes, and those that a series changes.

If a series changes no function that a row executes, there is nothing to measure. Functions are
found by a launch of one kernel with a breakpoint at the entry of each (native/host/reach.c).
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ream.command import Command, run
from ream.kernel.objects import ObjectDifference, differences, plain
from ream.kernel.variant import HOME
from ream.measure.plan import Launch
from ream.stage.bench import Bench
from ream.stage.link import Program
from ream.stage.native import FIRST_SAMPLE_S, LEAST_SAMPLE_S, runner_argv

NUMBER = 1_000_000
"""Number of the launch that finds entered functions: larger than any number in a run."""
DEADLINE_S = 600.0
NM_DEADLINE_S = 60.0
MOST_NAMED = 4
COLD = ".cold"
"""Suffix of code that the compiler split off a function. It is entered in the middle, too."""

Entered = Mapping[str, frozenset[str]]
"""The functions that are entered, by row."""


@dataclass(frozen=True)
class Changes:
    """Differences between the objects of a variant and those of its tree."""

    by_object: Mapping[str, ObjectDifference]
    nr_objects: int

    def functions(self) -> tuple[str, ...]:
        """Return functions of the tree that are changed or removed."""
        found = (
            name.removesuffix(COLD)
            for its in self.by_object.values()
            for name in (*its.changed, *its.removed)
        )
        return tuple(dict.fromkeys(found))

    @property
    def has_data(self) -> bool:
        return any(its.data for its in self.by_object.values())

    def reaching(self, reached: Entered) -> tuple[str, ...]:
        """Return the rows that execute a changed function.

        If data differ, return all rows: which functions read the data is not known.
        """
        if self.has_data:
            return tuple(reached)
        own = set(self.functions())
        return tuple(row for row, functions in reached.items() if own & functions)

    def pointless(self, reached: Entered, tree: str) -> str | None:
        """Return why there is nothing to measure; None if there is something."""
        if not any(self.by_object.values()):
            return f"the same object code as {tree} in all {self.nr_objects} objects"
        if self.reaching(reached):
            return None
        names = self.functions()
        if not names:
            return "it adds functions, and nothing that is executed calls them"
        more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
        named = ", ".join(f"{name}()" for name in names[:MOST_NAMED])
        return f"it changes {named}{more}, which no row here executes"


def changes(bench: Bench, name: str, tree: str) -> Changes:
    """Compare variant `name` with variant `tree`, object by object."""
    its, theirs = (
        {str(path.relative_to(bench.roots[one])): path for path in bench.kernels[one].objects}
        for one in (name, tree)
    )
    found = {
        where: differences(theirs[where], path)
        if where in theirs
        else ObjectDifference(added=(where,))
        for where, path in its.items()
    }
    gone = {where: ObjectDifference(removed=(where,)) for where in theirs.keys() - its.keys()}
    return Changes({**found, **gone}, len(its))


def entered(
    bench: Bench, name: str, planned: tuple[Path, Sequence[int]], *, cpus: int = 0
) -> Entered:
    """Return the functions that a round of each row enters in a variant's kernel.

    planned: the plan file and its descriptors. cpus: CPUs that the kernel sees.
    Raises ReamError if the launch fails.
    """
    # The plan is for one kernel, whatever kinds the others have.
    program = replace(bench, tree_of={}).link(Launch(NUMBER, 1, 0, (name,)))
    entries = _entries(bench, name, program)
    listing = program.path.parent / "functions.txt"
    listing.write_text("".join(f"{at:x}\n" for at, _ in entries))
    plan, descriptors = planned
    argv = [*runner_argv(program), "--plan", str(plan), "--launch", str(NUMBER), "--seed", "1"]
    argv += ["--cpus", str(cpus)] if cpus else []
    argv += ["--reach", str(listing), "--patience", f"{FIRST_SAMPLE_S}:{LEAST_SAMPLE_S}"]
    where = program.path.parent
    said = run(Command(tuple(argv), where, DEADLINE_S, pass_fds=tuple(descriptors)))
    return {
        fields["row"]: frozenset(entries[number][1] for number in fields["met"])
        for fields in map(json.loads, said.splitlines())
        if "met" in fields
    }


def _entries(bench: Bench, name: str, program: Program) -> list[tuple[int, str]]:
    """Return the addresses, ascending, and names of a kernel's own functions in a program.

    A name that the program around it also has is left out, since its own function must not stop.
    """
    kernel, root = bench.kernels[name], bench.roots[name]
    own = (path for path in kernel.objects if not path.relative_to(root).is_relative_to(HOME))
    wanted = _functions(own) - _functions(bench.host)
    listing = run(Command(("nm", str(program.path)), program.path.parent, NM_DEADLINE_S))
    found = {
        int(words[0], 16): plain(words[2])
        for words in map(str.split, listing.splitlines())
        if len(words) == 3 and words[1] in "tT" and words[2] in wanted  # noqa: PLR2004
    }
    return sorted(found.items())


def _functions(objects: Iterable[Path]) -> set[str]:
    """Return the names of all symbols that objects define, code or not."""
    listings = (
        run(Command(("nm", "--defined-only", str(path)), path.parent, NM_DEADLINE_S))
        for path in objects
    )
    return {line.split()[-1] for text in listings for line in text.splitlines() if line.strip()}
