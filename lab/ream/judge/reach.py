# SPDX-License-Identifier: GPL-2.0-only
"""Finds what a series reaches: the hosted functions that it changes, and rows that run them."""

import hashlib
import json
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ream.counted import counted
from ream.experiment import BEFORE, Experiment, Row
from ream.files import write_whole
from ream.judge.hosted_code import (
    HostedCode,
    Kernel,
    groups,
    hosted_code,
    hosted_names,
    program_names,
)
from ream.judge.nearest import nearest
from ream.kernel.cache import room
from ream.kernel.objects import ObjectDifference
from ream.kernel.same_text import objects_of
from ream.kernel.series import Patch, files
from ream.kernel.size import text_bytes
from ream.kernel.source import Tree
from ream.measure.plan import Launch
from ream.progress import Reporter
from ream.session.benchmark import benchmark_id
from ream.session.counting import small
from ream.session.suited import by_config
from ream.stage.bench import Bench, build_bench, config_files
from ream.stage.hosted import Hosted, hosting
from ream.stage.memory import available_bytes, fit_rows
from ream.stage.native import Suited, read_build
from ream.stage.reach import COLD, NUMBER, Changes, Entered, entered
from ream.variants import Variant

MOST_NAMED = 6
"""The most rows or functions in a line; --json has all of them."""

ENTERED = "entered"
"""Folder of the cache with the functions that rows enter, in a file for each kernel."""


@dataclass(frozen=True)
class Reach:
    """The changes of a series to the kernel code of one experiment."""

    experiment: str
    functions: tuple[str, ...]
    """Functions of the base that the series changes or removes."""
    rows: tuple[str, ...]
    """Rows that execute any of them."""
    nr_rows: int
    why_not: str | None
    """Why the series cannot affect this experiment; None if it can."""

    def words(self) -> str:
        """Return the reach in a sentence."""
        if self.why_not is not None:
            return self.why_not
        its = ", ".join(f"{name}()" for name in self.functions) or "data"
        number = f"{len(self.rows)} of {counted(self.nr_rows, 'row')}"
        return f"it changes {its}: {number} execute it: {shortened(self.rows)}"


@dataclass(frozen=True)
class WholeReach:
    """The changes of a series to all hosted code."""

    nr_functions: int
    """Number of hosted functions of all experiments; each counts once."""
    changed: tuple[str, ...]
    added: tuple[str, ...]
    removed: tuple[str, ...]
    moved: tuple[str, ...]
    """Functions that the series moves to another object with the same instructions."""
    data: tuple[str, ...]
    layout: tuple[str, ...]
    """A line for each structure whose layout changes."""
    text_bytes: tuple[int, int]
    """Bytes of code in the objects that differ, without and with the series."""
    experiments: tuple[Reach, ...]
    nearest: str | None
    """The nearest experiment and the reason, if nothing is reached."""
    elsewhere: tuple[str, ...] | None = None
    """Changed files that may compile to other code where they are not hosted; None for an upgrade,
    since most of a kernel is not hosted."""

    @property
    def reached(self) -> tuple[Reach, ...]:
        """Experiments in which at least one row executes changed code."""
        return tuple(one for one in self.experiments if one.rows)

    @property
    def same(self) -> bool:
        """Whether every hosted object has the same code and data with the series."""
        return not (self.changed or self.added or self.removed or self.moved or self.data)

    @property
    def untouched(self) -> tuple[Reach, ...]:
        """Experiments in which no row executes changed code."""
        return tuple(one for one in self.experiments if not one.rows)

    @property
    def only_moves(self) -> bool:
        """Whether the series moves functions to other objects and changes nothing else."""
        others = (self.changed, self.added, self.removed, self.data, self.layout)
        return bool(self.moved) and not any(others)

    def sentence(self) -> str:
        """Return a sentence on what is changed, reached and unchanged."""
        more = [
            f"{verb} {len(its)}"
            for verb, its in (
                ("adds", self.added),
                ("removes", self.removed),
                ("moves", self.moved),
            )
            if its
        ]
        said = []
        if self.nr_functions:
            of = f"{len(self.changed):,} of {counted(self.nr_functions, 'hosted function')}"
            said.append(f"changes {of}" + (f" ({', '.join(more)})" if more else ""))
        if self.reached:
            each = (f"{one.experiment} ({counted(len(one.rows), 'row')})" for one in self.reached)
            said.append(f"reaches {', '.join(each)}")
        else:
            said.append("reaches nothing that a row executes")
        there = [one.experiment for one in self.untouched if one.functions]
        same = [one.experiment for one in self.untouched if not one.functions]
        said += [f"changes nothing that rows execute of {', '.join(there)}"] if there else []
        its = "leaves the code of {} as it is" if self.nr_functions else "no file of it is in {}"
        said += [its.format(", ".join(same))] if same else []
        return "; ".join(said)


def shortened(texts: Sequence[str], most: int = MOST_NAMED) -> str:
    """Join the first `most` texts, with an ellipsis if there are more."""
    return ", ".join(texts[:most]) + (", …" if len(texts) > most else "")


def find_reach(
    patches: tuple[Patch, ...],
    tree: Tree,
    *,
    to: Tree | None = None,
    is_examined: bool = False,
    cache: Path,
    reporter: Reporter,
) -> WholeReach:
    """Compile what experiments host without and with patches; find the rows that execute changes.

    to: the kernel source that the patches are for; None: `tree`. is_examined: all of mm/ is hosted
    with the series, so the nearest experiment is not needed, and experiments that cannot differ
    are not compiled.
    Raises DoesNotApply for a patch, and what building raises.
    """
    before, after = Kernel(tree), Kernel(to or tree, patches)
    found: dict[str, list[Reach]] = {}
    codes: list[HostedCode] = []
    experiments = hosting()
    names = {name for patch in patches for name in files(patch)}
    touched = objects_of(names, tree.path) if is_examined else None
    if touched is not None:
        for one in experiments:
            if touched.isdisjoint(hosted_names(one)):
                found[one.name] = [_untouched(one)]
        experiments = [one for one in experiments if one.name not in found]
    for fragments, programs in groups(experiments).items():
        code = hosted_code(
            before, after, programs, fragments=fragments, cache=cache, step=reporter.step
        )
        codes.append(code)
        for one in (one for one in experiments if one.name in programs):
            found.setdefault(one.name, []).extend(
                _reach(one, its, code, tree, cache=cache, reporter=reporter)
                for its in programs[one.name]
            )
    ordered = tuple(_together(its) for _, its in sorted(found.items()))
    reached = any(one.rows for one in ordered)
    unexecuted = {one.experiment: one.functions for one in ordered if one.functions}
    return WholeReach(
        nr_functions=len(frozenset().union(*(code.functions() for code in codes))),
        **_differences(codes),
        text_bytes=_text_bytes(codes),
        experiments=ordered,
        nearest=None
        if reached or is_examined
        else nearest(patches, tree, experiments, codes, unexecuted),
        elsewhere=None if to else _elsewhere(names, codes),
    )


def _untouched(experiment: Experiment) -> Reach:
    """Return the reach for an experiment that hosts none of the changed files."""
    nr_rows = len(experiment.at("native").unasked().rows)
    return Reach(experiment.name, (), (), nr_rows, "it hosts none of the files that are changed")


def _elsewhere(names: Collection[str], codes: Sequence[HostedCode]) -> tuple[str, ...]:
    """Return changed files that no configuration shows to be the same code or hosts as changed."""
    differing = {f"{Path(name).with_suffix('')}.c" for code in codes for name in code.by_object}
    unknown = [set(code.unknown({*names} - differing)) for code in codes]
    return tuple(sorted(set.intersection({*names}, *unknown)))


def _differences(codes: Sequence[HostedCode]) -> dict[str, tuple[str, ...]]:
    """Return the names of what differs, each once; moved functions are not added or removed."""
    moved = {name for code in codes for name in code.moved()}

    def names_of(kind: str) -> tuple[str, ...]:
        its = (
            name.partition(COLD)[0]
            for code in codes
            for one in code.by_object.values()
            for name in getattr(one, kind)
        )
        return tuple(dict.fromkeys(name for name in its if kind == "data" or name not in moved))

    return {
        **{kind: names_of(kind) for kind in ("changed", "added", "removed", "data")},
        "moved": tuple(sorted(moved)),
        "layout": tuple(dict.fromkeys(line for code in codes for line in code.layout)),
    }


def _text_bytes(codes: Sequence[HostedCode]) -> tuple[int, int]:
    """Return bytes of code before and after; of objects in several configurations, the first."""
    before, after = (
        {name: path for code in reversed(codes) for name, path in getattr(code, side).items()}
        for side in ("before", "after")
    )
    return text_bytes(before, after)


def _together(found: Sequence[Reach]) -> Reach:
    """Merge the reach of all programs of one experiment."""
    told = [one for one in found if one.rows] or found
    return Reach(
        experiment=found[0].experiment,
        functions=tuple(dict.fromkeys(name for one in told for name in one.functions)),
        rows=tuple(row for one in found for row in one.rows),
        nr_rows=sum(one.nr_rows for one in found),
        why_not=told[0].why_not,
    )


def _reach(
    experiment: Experiment,
    its: Hosted[Row],
    code: HostedCode,
    tree: Tree,
    *,
    cache: Path,
    reporter: Reporter,
) -> Reach:
    own = program_names(its)
    rows = by_config(row for row in experiment.at("native").unasked().rows if its.runs(row))
    held = sum(name in code.before for name in own)
    moved = frozenset(code.moved())
    differing = {
        name: _unmoved(code.by_object[name], moved) for name in own if name in code.by_object
    }
    found = Changes(differing, held)
    reached: dict[str, frozenset[str]] = {}
    if any(found.by_object.values()):
        for config, some in rows.items():
            reached |= _entered_by(
                experiment, its, config, some, tree, cache=cache, reporter=reporter
            )
    executed = {function for one in reached.values() for function in one}
    reaching = found.reaching(reached)
    functions = found.functions()
    return Reach(
        experiment=experiment.name,
        # Functions that no row executes may be many, so they are listed only if no row is reached.
        functions=tuple(one for one in functions if one in executed or not reaching),
        rows=reaching,
        nr_rows=sum(map(len, rows.values())),
        why_not=found.pointless(reached, "the base"),
    )


def _unmoved(its: ObjectDifference, moved: frozenset[str]) -> ObjectDifference:
    """Return the difference without functions that moved to another object."""
    return replace(
        its,
        added=tuple(name for name in its.added if name not in moved),
        removed=tuple(name for name in its.removed if name not in moved),
    )


def _entered_by(
    experiment: Experiment,
    its: Hosted[Row],
    config: tuple[str, ...],
    rows: Sequence[Row],
    tree: Tree,
    *,
    cache: Path,
    reporter: Reporter,
) -> Entered:
    """Return the functions that each row enters in the kernel without the series.

    The rows are of one configuration. Rows that this machine cannot run are left out.
    """
    suited = its.suit(rows, None)
    if not suited.rows:
        return {}
    with room(cache, reporter.step) as work:
        bench = build_bench(
            tree,
            [Variant(BEFORE, ())],
            folder=its.folder,
            cache=cache,
            work=work,
            step=reporter.step,
            fragments=config_files(config),
        )
        return _entered(experiment, its, suited, bench, cache=cache, reporter=reporter)


def _entered(
    experiment: Experiment,
    its: Hosted[Row],
    suited: Suited,
    bench: Bench,
    *,
    cache: Path,
    reporter: Reporter,
) -> Entered:
    """Return the functions that each row enters without the series; cached for each kernel.

    Rows have the size at which they are counted, so functions that only a larger one enters are
    missed.
    """
    build = read_build(bench.link(Launch(NUMBER, 1, 0, (BEFORE,))))
    fitted, _ = fit_rows(small(suited.rows, its.sized), available_bytes(), build, its.sized)
    once = tuple(row.model_copy(update={"rounds": 1}) for row in fitted)
    kept = cache / ENTERED / _digest(experiment, bench, once, suited)
    if kept.is_file():
        held: dict[str, list[str]] = json.loads(kept.read_text())
        return {row: frozenset(functions) for row, functions in held.items()}
    reporter.step(f"{experiment.name}: finding what each row executes")
    with its.plan_of(once, None, build, bench.work) as planned:
        found = entered(bench, BEFORE, planned, cpus=suited.cpus)
    kept.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps({row: sorted(its) for row, its in found.items()})
    write_whole(kept, text.encode(), force=True)
    return found


def _digest(experiment: Experiment, bench: Bench, rows: Sequence[Row], suited: Suited) -> str:
    """Digest of all that decides which functions rows enter: kernel, program, rows and CPUs."""
    own = hashlib.sha256(benchmark_id(experiment, "native").encode())
    own.update(json.dumps([[row.name, row.params()] for row in rows], default=str).encode())
    own.update(str(suited.cpus).encode())
    for path in bench.kernels[BEFORE].objects:
        own.update(hashlib.sha256(path.read_bytes()).digest())
    return own.hexdigest()


def lines(whole: WholeReach) -> Iterator[tuple[str, str]]:
    """Yield the lines of a report as pairs of a label and a sentence."""
    yield "in all", whole.sentence()
    for text in whole.layout:
        yield "layout", f"{text}: whatever uses it is compiled anew"
    for one in whole.experiments:
        yield one.experiment, one.words()
    if whole.nearest is not None:
        yield "nearest", whole.nearest
