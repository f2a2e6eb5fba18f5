# SPDX-License-Identifier: GPL-2.0-only
"""Verifies, before anything is timed, that every kernel matches the oracle in every edge case."""

import hashlib
import json
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from ream import oracle
from ream.counted import counted
from ream.experiment import Experiment, Row
from ream.experiment.registry import folders_of, sources_of
from ream.measure.plan import Launch, without
from ream.measure.sample import Sample
from ream.progress import Reporter
from ream.session.request import Request
from ream.stage import calls as calls_module
from ream.stage import hosted
from ream.stage.bench import Bench
from ream.stage.hosted import Hosted, calls_owed, cases_of
from ream.stage.link import Kernel, Program
from ream.stage.native import Build, Facts, launch_once
from ream.stage.reach import NUMBER

S_PER_MINUTE = 60
VERIFIED = "verified"
"""Folder of the cache with an empty file for each kernel that passed."""


def verify(
    its: Hosted[Row],
    request: Request,
    *,
    bench: Bench,
    builds: Sequence[Build],
    launches: Sequence[Launch],
    reporter: Reporter,
) -> int:
    """Run all edge cases and some mixtures in every kernel; return how many operations passed.

    its: the program. builds: a build for each kind of kernels, which are checked by its facts.
    launches: one for each program, with the kernels that are linked into it. Kernels whose objects
    were verified before by the same runner and oracle are not verified again, unless minutes are
    given. The result is 0 if nothing was verified now.
    Raises WrongVariant with the case's name, and what else `launch_once` raises.
    """
    facts = {
        name: builds[bench.tree_of.get(name, 0)].facts
        for name in {n for one in launches for n in one.link_order}
    }
    marks = [*_marks(request, [(bench.kernels[name], own) for name, own in facts.items()])]
    if not request.verify_minutes and all(mark.exists() for mark in marks):
        return 0
    reporter.step("checking every kernel at the edges, and with random mixtures")
    place = bench.work / "cases"
    place.mkdir(exist_ok=True)
    programs = [(build, [*_programs(bench, tree, launches)]) for tree, build in enumerate(builds)]
    calls = calls_owed(its, _owing(request))
    until = time.monotonic() + request.verify_minutes * S_PER_MINUTE
    verified = pass_number = 0
    while pass_number == 0 or time.monotonic() < until:
        for build, own in programs:
            for planned, cpus in cases_of(
                its.cases, build, place, seed=request.seed, pass_number=pass_number
            ):
                with planned as (plan, descriptors):
                    for program, launch in own:
                        said = launch_once(program, launch, plan, descriptors, cpus=cpus)
                        verified += sum(
                            isinstance(one, Sample)
                            for one in calls.counted(said, launch.link_order)
                        )
        calls.check()
        pass_number += 1
    for mark in marks:
        mark.parent.mkdir(parents=True, exist_ok=True)
        mark.touch()
    reporter.step(f"{counted(verified, 'operation')} verified")
    return verified


def _owing(request: Request) -> dict[str, str]:
    """Return the variant without each given series, by series, if both have one kernel source."""
    pairs = ((one.name, one.compared_with) for one in request.variants)
    return {
        name: tree
        for name, tree in pairs
        if tree and request.trees.get(name) == request.trees.get(tree)
    }


def _programs(
    bench: Bench, tree: int, launches: Sequence[Launch]
) -> Iterable[tuple[Program, Launch]]:
    """Yield programs with the kernels of one kind only."""
    others = {n for one in launches for n in one.link_order if bench.tree_of.get(n, 0) != tree}
    # Numbers after that of the launch that finds entered functions, beyond those of the run.
    first = NUMBER + 1 + tree * len(launches)
    for at, launch in enumerate(without(others, launches)):
        if launch.link_order:
            own = replace(launch, number=first + at)
            yield replace(bench.link(own), trees=()), own


def _marks(request: Request, kernels: Sequence[tuple[Kernel, Facts]]) -> Iterable[Path]:
    """Yield, for each kernel, the file that exists if its objects passed this oracle.

    kernels: each with the facts that it is checked against.
    """
    # Imported here because the modules import each other.
    from ream.session.benchmark import benchmark_id  # noqa: PLC0415

    name = request.experiment.name
    judges = [path for place in _judges(request.experiment) for path in sources_of(place)]
    judges += [Path(hosted.__file__), Path(calls_module.__file__)]
    arch = request.setup.target
    benchmark = benchmark_id(request.experiment, request.stage, arch=arch)
    words = () if arch.is_here else arch.emulated(request.cpu)
    own = hashlib.sha256(" ".join((name, benchmark, *words)).encode())
    for path in judges:
        own.update(path.read_bytes())
    for kernel, facts in kernels:
        digest = own.copy()
        digest.update(json.dumps(dict(facts), sort_keys=True).encode())
        for path in kernel.objects:
            digest.update(hashlib.sha256(path.read_bytes()).digest())
        yield request.cache / VERIFIED / digest.hexdigest()


def _judges(experiment: Experiment) -> Iterable[Path]:
    """Yield folders of oracles and cases: the shared ones, and those of the experiments it uses."""
    yield Path(oracle.__path__[0])
    yield from folders_of(experiment.folder)
