# SPDX-License-Identifier: GPL-2.0-only
"""Which functions of the kernel each row executes, and what a series changes of them.

A series that changes no function that a row executes has nothing to be measured. Functions are
known by a launch of one kernel with a breakpoint at each one's entry; native/host/reach.c.
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
"""Of a launch that is none of the run's: more than a run may have."""
DEADLINE_S = 600.0
NM_DEADLINE_S = 60.0
MOST_NAMED = 4
COLD = ".cold"
"""What the compiler moved out of a function: it is entered in the middle, too."""

Entered = Mapping[str, frozenset[str]]
"""By row, the functions that it enters."""


@dataclass(frozen=True)
class Changes:
    """What the objects of one variant have that those of its tree have not."""

    by_object: Mapping[str, ObjectDifference]
    nr_objects: int

    def functions(self) -> tuple[str, ...]:
        """Functions of the tree that are others, or gone."""
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
        """The rows that execute any of it; all, where data differ: who reads them is not known."""
        if self.has_data:
            return tuple(reached)
        own = set(self.functions())
        return tuple(row for row, functions in reached.items() if own & functions)

    def pointless(self, reached: Entered, tree: str) -> str | None:
        """Why there is nothing to measure; None if there is."""
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
    """What variant `name` differs from variant `tree` by, object by object."""
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
    """By row, which functions one round of it enters in a variant's kernel; raises ReamError.

    planned: the plan file and its descriptors. cpus: of the machine that the kernel sees.
    """
    # The plan is of one kernel, whatever kinds the others are of.
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
    """Where each function of a kernel's own objects begins in a program, ascending.

    A name that the program around it has, too, is left out: those of its own must not stop.
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
    """The names of what is defined in them, code or not."""
    listings = (
        run(Command(("nm", "--defined-only", str(path)), path.parent, NM_DEADLINE_S))
        for path in objects
    )
    return {line.split()[-1] for text in listings for line in text.splitlines() if line.strip()}
