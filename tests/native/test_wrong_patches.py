# SPDX-License-Identifier: GPL-2.0-only
"""Patches that look right and are wrong: each is caught before anything is timed.

They were written without a look at the oracle. What hosted code cannot show is named beside them
with the reason, so that silence about it is not taken for an answer.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from ream.errors import VerificationFailed
from ream.experiment import BASE, Experiment, Row, named
from ream.folders import base_names, names
from ream.kernel.base import base_named
from ream.kernel.series import Series
from ream.kernel.source import Tree, fetch_tree
from ream.measure.plan import Launch
from ream.session.builds import by_facts
from ream.stage.bench import Bench, build_bench
from ream.stage.hosted import Hosted, Otherwise, calls_owed, cases_of, programs_of
from ream.stage.native import launch_once
from ream.variants import Variant
from wrong import number_of, on_base, unshown, wrong_series

pytestmark = [pytest.mark.xdist_group("wrong"), pytest.mark.vm]

EVERY = [named(name) for name in names()]


CAUGHT = r": mine: |warnings"
"""The wrong variant in a case's error message; or a WARN of the kernel's own."""

PATCHES = [
    (experiment, path)
    for experiment in EVERY
    for path in (experiment.folder / "wrong").glob("*.patch")
]


def name_of(one: Experiment | Path | str) -> str:
    return one.stem if isinstance(one, Path) else one if isinstance(one, str) else one.name


ON_BASES = [
    (place.name, experiment, name)
    for experiment in EVERY
    for place in sorted((experiment.folder / "wrong").glob("*/"))
    for name in on_base(place)
]


@pytest.mark.parametrize(
    ("experiment", "path"),
    sorted(
        (one for one in PATCHES if number_of(one[1]) not in unshown(one[1].parent)),
        key=lambda one: one[1],
    ),
    ids=name_of,
)
def test_it_is_caught(
    kernel: Tree, cache: Path, tmp_path: Path, experiment: Experiment, path: Path
) -> None:
    check_caught(kernel, cache, tmp_path, experiment, wrong_series(path))


@pytest.mark.parametrize(("base", "experiment", "name"), ON_BASES, ids=name_of)
def test_it_is_caught_on_another_base(
    cache: Path, tmp_path: Path, base: str, experiment: Experiment, name: str
) -> None:
    kernel = fetch_tree(base_named(base), cache=cache, step=print)
    series = on_base(experiment.folder / "wrong" / base)[name]
    check_caught(kernel, cache, tmp_path, experiment, (series,))


def check_caught(
    kernel: Tree, cache: Path, tmp_path: Path, experiment: Experiment, series: tuple[Series, ...]
) -> None:
    variants = Variant(BASE, ()), Variant("mine", series, BASE)
    programs = programs_of(experiment)
    benches: dict[str, Bench] = {}

    def built(its: Hosted[Row]) -> Bench:
        if its.label not in benches:  # as late as can be: most patches are caught in the first
            work = tmp_path / f"program{its.label}"
            work.mkdir()
            benches[its.label] = build_bench(
                kernel, variants, folder=its.folder, cache=cache, work=work, step=print
            )
        return benches[its.label]

    def run_every_program(ways: Mapping[str, Otherwise]) -> None:
        for its in programs:
            run_all(its, built(its), ways)

    with pytest.raises(VerificationFailed, match=CAUGHT):
        run_every_program({})
    for way in (way for its in programs for way in its.otherwise):  # which are no way out
        with pytest.raises(VerificationFailed, match=CAUGHT):
            run_every_program({"mine": way})


def run_all(its: Hosted[Row], bench: Bench, ways: Mapping[str, Otherwise]) -> None:
    launch = Launch(0, 1, 0x340, (BASE, "mine"))
    bench, builds = by_facts(bench, [launch], ways)
    calls = calls_owed(its, {"mine": BASE})
    for number, build in enumerate(builds):
        order = tuple(one for one in launch.link_order if bench.tree_of.get(one, 0) == number)
        own = replace(launch, number=number + 1, link_order=order)
        program = replace(bench.link(own), trees=())
        for planned, cpus in cases_of(its.cases, build, bench.work, seed=1, pass_number=0):
            with planned as (plan, descriptors):
                said = launch_once(program, own, plan, descriptors, cpus=cpus)
                list(calls.counted(said, order))
    calls.check()


def test_what_cannot_be_shown_is_there_and_has_a_reason() -> None:
    for folder in (experiment.folder / "wrong" for experiment in EVERY):
        numbers = {number_of(path) for path in folder.glob("*.patch")}
        told = unshown(folder)
        assert told.keys() <= numbers
        for place in folder.glob("*/"):
            ported = {number_of(path) for path in place.glob("*.patch")}
            assert place.name in base_names()
            assert ported | unshown(place).keys() <= numbers
            assert not ported & unshown(place).keys()
            assert all(re.search(r"\w{3}", reason) for reason in unshown(place).values())
        assert all(re.search(r"\w{3}", reason) for reason in told.values())
