# SPDX-License-Identifier: GPL-2.0-only
"""Finds given series that change nothing that is run. They are reported and not timed."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ream.errors import Inconclusive, NothingChanges
from ream.kernel.build import BUILD
from ream.kernel.image import Image
from ream.kernel.objects import is_same_code, kernel_objects
from ream.kernel.same_text import undecided_files
from ream.kernel.series import files
from ream.progress import Reporter
from ream.session.request import Request

MOST_NAMED = 4
"""The most files that a line names; if there are more, it has their number."""


def trees_of(request: Request) -> dict[str, str]:
    """Return, for each given series, the variant without it with which it is compared."""
    return {one.name: one.compared_with for one in request.variants if one.compared_with}


@dataclass(frozen=True)
class Untouched:
    """Why there is nothing to measure for a series, in one configuration."""

    why: str
    same: frozenset[str] | None = None
    """Names of the compared objects if all are the same; None if any differ."""
    before: Path = Path()
    """The kernel source without the series."""
    after: Path = Path()

    def unknown(self, names: Iterable[str]) -> tuple[str, ...] | None:
        """Return the changed files that may change code although no compared object differs.

        None if objects differ.
        """
        if self.same is None:
            return None
        return undecided_files(names, self.before, self.after, self.same)


def left_out(
    reasons: Sequence[Mapping[str, Untouched]], request: Request, reporter: Reporter
) -> dict[str, str]:
    """Report which series are not measured and why; return these reasons by series.

    reasons: for each configuration, the series that change nothing in it. A series is measured if
    it changes something in any configuration. If no other series is given, raises NothingChanges
    if each changed file is known to compile to the same code, and else Inconclusive.
    """
    trees = trees_of(request)
    found = {
        name: [one[name] for one in reasons]
        for name in trees
        if all(name in one for one in reasons)
    }
    if not found or found.keys() != trees.keys():
        for name, its in found.items():
            reporter.step(f"{name}: not measured: {its[0].why}")
        return {name: its[0].why for name, its in found.items()}
    unknown = {name: _unknown(request, name, its) for name, its in found.items()}
    said = "\n".join(_said(name, its[0].why, unknown[name]) for name, its in found.items())
    kind = Inconclusive if any(one is None or one for one in unknown.values()) else NothingChanges
    raise kind(f"{said}; `ream run --measure-anyway` measures it all the same")


def _unknown(request: Request, name: str, its: Sequence[Untouched]) -> tuple[str, ...] | None:
    """Return the files that no configuration shows to be the same code; None if objects differ."""
    (variant,) = (one for one in request.variants if one.name == name)
    names = {file for patch in variant.patches for file in files(patch)}
    each = [one.unknown(names) for one in its]
    if any(one is None for one in each):
        return None
    return tuple(sorted(set.intersection(*(set(one) for one in each if one is not None))))


def _said(name: str, why: str, unknown: tuple[str, ...] | None) -> str:
    if unknown is None:
        return f"{name}: not measured: {why}"
    if not unknown:
        return (
            f"{name}: nothing changes: every file that it touches is the same code with it: {why}"
        )
    more = f" and {len(unknown) - MOST_NAMED} more" if len(unknown) > MOST_NAMED else ""
    which = f"{', '.join(unknown[:MOST_NAMED])}{more}"
    return f"{name}: not measured: {why}, but it changes code that is not hosted here, in {which}"


def same_kernels(
    images: Mapping[str, Image], trees: Mapping[str, str], reporter: Reporter
) -> dict[str, Untouched]:
    """Return the series with which no object of a whole kernel changes, with the reason to report.

    images: kernels by variant. Which functions a guest executes is not known, so any changed object
    may matter.
    """
    if trees:
        reporter.step("comparing the objects of whole kernels")
    found = {}
    for name, tree in trees.items():
        theirs, its = (kernel_objects(images[one].tree / BUILD) for one in (tree, name))
        if its.keys() == theirs.keys() and all(
            is_same_code(theirs[where], path) for where, path in its.items()
        ):
            why = f"the same object code as {tree} in all {len(its)} objects of the kernel"
            found[name] = Untouched(why, frozenset(its), images[tree].tree, images[name].tree)
    return found
