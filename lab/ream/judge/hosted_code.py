# SPDX-License-Identifier: GPL-2.0-only
"""Compiles the kernel code that experiments host, with and without a series, and compares it.

Only the kernel's own objects are compared, in trees without ream's own code, so that one pair of
trees serves all experiments of one configuration. ream.judge.reach finds the rows that execute
what differs.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from ream.experiment import Experiment, Row
from ream.kernel.build import build_objects
from ream.kernel.cache import Step
from ream.kernel.layout import layout_changes, layouts
from ream.kernel.objects import ObjectDifference, contents, differences
from ream.kernel.same_text import undecided_files
from ream.kernel.series import Patch
from ream.kernel.source import Tree
from ream.kernel.uncompiled import naming_the_patch
from ream.kernel.variant import HOME, assemble, compiled_for
from ream.paths import KERNEL_REACH
from ream.stage.bench import fragments_of, held, objects
from ream.stage.hosted import Hosted, programs_of

LAYOUT = f"{HOME}/layout.o"

Fragments = tuple[Path, ...]


@dataclass(frozen=True)
class Kernel:
    """A kernel source with the patches on it."""

    tree: Tree
    patches: tuple[Patch, ...] = ()


@dataclass(frozen=True)
class HostedCode:
    """The objects that experiments of one configuration host, and their changes by a series."""

    before: Mapping[str, Path]
    """Objects without the series, by name."""
    after: Mapping[str, Path]
    by_object: Mapping[str, ObjectDifference]
    """Differences by object, for each whose code or data differ, or that is new or gone."""
    layout: tuple[str, ...]
    """A line for each structure whose layout changes."""
    sources: tuple[Path, Path] = (Path(), Path())
    """The trees without the series and with it."""

    def unknown(self, names: Iterable[str]) -> tuple[str, ...]:
        """Return those of the changed files that are not known to compile to the same code."""
        same = (self.before.keys() & self.after.keys()) - self.by_object.keys()
        return undecided_files(names, *self.sources, same)

    def functions(self) -> frozenset[tuple[str, str]]:
        """Return (object, function) names of all functions that are hosted without the series.

        Parts that the compiler split off a function do not count as functions.
        """
        return frozenset(
            (name, function) for name, path in self.before.items() for function in named(path)
        )

    def moved(self) -> tuple[str, ...]:
        """Return functions that the series moves to another object with the same instructions."""
        gone = {
            function: contents(self.before[name])[f"f {function}"]
            for name, its in self.by_object.items()
            if name in self.before
            for function in its.removed
            if f"f {function}" in contents(self.before[name])
        }
        new = {
            function: contents(self.after[name])[f"f {function}"]
            for name, its in self.by_object.items()
            if name in self.after
            for function in its.added
            if f"f {function}" in contents(self.after[name])
        }
        return tuple(sorted(name for name, digests in gone.items() if new.get(name) == digests))


def named(path: Path) -> frozenset[str]:
    """Return the names of the functions in an object."""
    return frozenset(
        name.removeprefix("f ").partition(".")[0] for name in contents(path) if name[:2] == "f "
    )


Programs = dict[str, tuple[Hosted[Row], ...]]
"""Selected programs by experiment."""


def groups(experiments: Iterable[Experiment]) -> dict[Fragments, Programs]:
    """Group the programs of the native stage by their kernels' configuration."""
    found: dict[Fragments, Programs] = {}
    for one in experiments:
        for its in programs_of(one):
            group = found.setdefault(tuple(fragments_of(its.folder)), {})
            group[one.name] = (*group.get(one.name, ()), its)
    return found


def program_names(its: Hosted[Row]) -> tuple[str, ...]:
    """Return the names of the kernel's own objects that a program lists, in any configuration."""
    return tuple(one.name for one in objects(its.folder) if not one.name.startswith(f"{HOME}/"))


def hosted_names(experiment: Experiment) -> tuple[str, ...]:
    """Return the names of the kernel's own objects that any program of an experiment lists."""
    return tuple(
        dict.fromkeys(name for its in programs_of(experiment) for name in program_names(its))
    )


def hosted_code(
    before: Kernel,
    after: Kernel,
    programs: Programs,
    *,
    fragments: Fragments,
    cache: Path,
    step: Step,
) -> HostedCode:
    """Compile the objects that these programs host of two kernels, and compare them.

    Raises what `assemble` and `build_objects` raise, and DoesNotCompile for a patch.
    """
    (source, old), (patched, new) = (
        _compiled(one, programs, fragments=fragments, cache=cache, step=step)
        for one in (before, after)
    )
    layout = layout_changes(layouts(old.pop(LAYOUT)), layouts(new.pop(LAYOUT)))
    step("comparing objects, function by function")
    return HostedCode(old, new, dict(_differing(old, new)), layout, (source, patched))


def _compiled(
    kernel: Kernel,
    programs: Programs,
    *,
    fragments: Fragments,
    cache: Path,
    step: Step,
) -> tuple[Path, dict[str, Path]]:
    """Compile a kernel's hosted objects; return its source tree and the objects by name."""
    place = assemble(
        kernel.tree,
        kernel.patches,
        cache=cache,
        fragments=fragments,
        homes=[KERNEL_REACH],
        step=step,
    )
    folders = [its.folder for all_its in programs.values() for its in all_its]
    listed = [one for folder in folders for one in objects(folder)]
    names = [one.name for one in held(listed, place) if not one.name.startswith(f"{HOME}/")]
    with naming_the_patch(kernel.patches, place):
        named = compiled_for(kernel.tree, kernel.patches, "the rows of experiments")
        wanted = [*dict.fromkeys((*names, LAYOUT))]
        return place, build_objects(place, wanted, step=step, named=named)


def _differing(
    before: Mapping[str, Path], after: Mapping[str, Path]
) -> Iterator[tuple[str, ObjectDifference]]:
    for name in sorted(before.keys() | after.keys()):
        if name not in before:
            yield name, ObjectDifference(added=tuple(sorted(named(after[name]))))
        elif name not in after:
            yield name, ObjectDifference(removed=tuple(sorted(named(before[name]))))
        elif its := differences(before[name], after[name]):
            yield name, its
