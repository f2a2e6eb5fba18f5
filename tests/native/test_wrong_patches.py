# SPDX-License-Identifier: GPL-2.0-only
"""Patches that look right and are wrong: each is caught before anything is timed.

They were written by somebody who had not seen the oracle. What hosted code cannot show is named
beside them with the reason, so that nobody takes silence about it for an answer.
"""

import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from ream.errors import ReamError
from ream.experiment import BASE, Experiment, Row, named
from ream.folders import names
from ream.kernel.series import load_series
from ream.kernel.source import Tree
from ream.measure.plan import Launch
from ream.stage.bench import build_bench
from ream.stage.calls import Calls
from ream.stage.hosted import Hosted, cases_of, hosted_of
from ream.stage.link import Program
from ream.stage.native import launch_once, read_build
from ream.values import read_toml
from ream.variants import Variant

pytestmark = [pytest.mark.xdist_group("wrong"), pytest.mark.vm]

EVERY = [named(name) for name in names()]


def unshown(folder: Path) -> Mapping[str, str]:
    """By number: why no run of hosted code can show it."""
    return dict(read_toml(listed)) if (listed := folder / "unshown.toml").is_file() else {}


CAUGHT = r": mine: |warnings"
"""Who was wrong, and in what case; or a WARN of the kernel's own."""

PATCHES = [
    (experiment, path)
    for experiment in EVERY
    for path in (experiment.folder / "wrong").glob("*.patch")
]


def number_of(path: Path) -> str:
    return path.name[:2]


def name_of(one: Experiment | Path) -> str:
    return one.stem if isinstance(one, Path) else one.name


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
    variants = Variant(BASE, ()), Variant("mine", (load_series(path),), BASE)
    its = hosted_of(experiment)
    bench = build_bench(kernel, variants, folder=its.folder, cache=cache, work=tmp_path, step=print)
    launch = Launch(0, 1, 0x340, (BASE, "mine"))
    program = bench.link(launch)
    with pytest.raises(ReamError, match=CAUGHT):
        run_all(its, program, launch, tmp_path)


def run_all(its: Hosted[Row], program: Program, launch: Launch, work: Path) -> None:
    build = read_build(program)
    calls = Calls({"mine": BASE})
    for planned, cpus in cases_of(its.cases, build, work, seed=1, pass_number=0):
        with planned as (plan, descriptors):
            said = launch_once(program, launch, plan, descriptors, cpus=cpus)
            list(calls.counted(said, launch.link_order))
    calls.check()


def test_what_cannot_be_shown_is_there_and_has_a_reason() -> None:
    for folder in (experiment.folder / "wrong" for experiment in EVERY):
        told = unshown(folder)
        assert told.keys() <= {number_of(path) for path in folder.glob("*.patch")}
        assert all(re.search(r"\w{3}", reason) for reason in told.values())
