# SPDX-License-Identifier: GPL-2.0-only
"""Series of the user's that change nothing of what is run: that is said, and they are not timed."""

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
"""Files in a line; of more than that there is their number."""


def trees_of(request: Request) -> dict[str, str]:
    """For each given series, the variant without it, with which it is compared."""
    return {one.name: one.compared_with for one in request.variants if one.compared_with}


@dataclass(frozen=True)
class Untouched:
    """Why there is nothing to measure of a series, in one configuration."""

    why: str
    same: frozenset[str] | None = None
    """The objects that were compared if all of them are the same, by name; else None."""
    before: Path = Path()
    """The kernel source without the series."""
    after: Path = Path()

    def unknown(self, names: Iterable[str]) -> tuple[str, ...] | None:
        """Of files that a series changes, those that may be other code all the same.

        None if objects differ.
        """
        if self.same is None:
            return None
        return undecided_files(names, self.before, self.after, self.same)


def left_out(
    reasons: Sequence[Mapping[str, Untouched]], request: Request, reporter: Reporter
) -> dict[str, str]:
    """Say which series are not measured and why.

    reasons: of each configuration, by series that change nothing of it. Measured is what changes
    something in any. If no other series is given, it raises NothingChanges where each file that
    they change is known to compile to the same, and else Inconclusive.
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
    """The files that no configuration shows to be the same code; None if objects differ."""
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
    """By series, of which not one object of a whole kernel is other code: what to say of that.

    images: by variant. Which functions a guest executes is not known: any other code may matter.
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
