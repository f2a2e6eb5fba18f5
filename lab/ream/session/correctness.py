# SPDX-License-Identifier: GPL-2.0-only
"""Before any time is believed: every kernel does what the oracle says at every edge."""

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
"""In the cache: an empty file for each kernel that has done all of it right."""


def verify(
    its: Hosted[Row],
    request: Request,
    *,
    bench: Bench,
    builds: Sequence[Build],
    launches: Sequence[Launch],
    reporter: Reporter,
) -> int:
    """Run all edges and some mixtures in every kernel; how many operations were verified.

    its: the program. builds: of every kind; kernels of each are judged by themselves, by its facts.
    launches: of each program one, with the kernels that are linked into it. Kernels whose objects
    were verified before, by the same runner and oracle, are not verified again unless minutes are
    given: then it is 0.
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
    """By given series, the variant without it, if both are of one kernel source."""
    pairs = ((one.name, one.compared_with) for one in request.variants)
    return {
        name: tree
        for name, tree in pairs
        if tree and request.trees.get(name) == request.trees.get(tree)
    }


def _programs(
    bench: Bench, tree: int, launches: Sequence[Launch]
) -> Iterable[tuple[Program, Launch]]:
    """Programs of the kernels of one kind alone."""
    others = {n for one in launches for n in one.link_order if bench.tree_of.get(n, 0) != tree}
    # Numbered after the one that finds what rows execute: none of the run's.
    first = NUMBER + 1 + tree * len(launches)
    for at, launch in enumerate(without(others, launches)):
        if launch.link_order:
            own = replace(launch, number=first + at)
            yield replace(bench.link(own), trees=()), own


def _marks(request: Request, kernels: Sequence[tuple[Kernel, Facts]]) -> Iterable[Path]:
    """For each kernel the file whose presence means that its objects passed this oracle.

    kernels: with the facts that they are held against.
    """
    # Here, not above: it asks the module that asks us.
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
    """Where oracles are, and cases: of what all share, and of every experiment that it leans on."""
    yield Path(oracle.__path__[0])
    yield from folders_of(experiment.folder)
