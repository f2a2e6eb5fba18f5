# SPDX-License-Identifier: GPL-2.0-only
"""A native run of rows that are programs. For each sample a computer boots and times one step.

A run that counts runs under an emulator, in one layout, and counts what the kernel's functions
execute in that step. Variants are processes that take turns on one CPU. In a timed run each launch
is a layout: the computer of each variant is linked with its objects in another order.
"""

import json
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from itertools import pairwise
from pathlib import Path
from shutil import rmtree
from types import MappingProxyType

from ream.count.counter import LaunchCounter
from ream.count.emulator import build_plugin, emulator_version
from ream.count.places import places_on
from ream.errors import BadUsage, ReamError, VariantFails, WrongVariant
from ream.experiment import CONTROL, RUNNING, Row, shown
from ream.kernel.arch import X86_64
from ream.kernel.source import Tree
from ream.measure.plan import Launch, drawn_order, plan_launches, without
from ream.measure.sample import Sample
from ream.program.live import NOTHING_LIVE, Beside, beside_live
from ream.program.ran import Rig, computer_folder
from ream.program.step import Program, measured_line
from ream.program.text import parse
from ream.progress import Reporter, labelled
from ream.record.machine import conditions, take_snapshot
from ream.record.record import RecordWriter
from ream.session.counting import count_facts
from ream.session.failing import UNHOSTED, WRONG, failures, leave_out
from ream.session.replay import Replayed
from ream.session.request import Measured, Request
from ream.stage.computer import Checks, Parts, build_parts
from ream.stage.confine import build_confinement, say_unconfined
from ream.stage.shadowed import shadowed_warnings
from ream.stage.steps import Steps

READINGS = 1000
FIRST_ADDRESS = 0x200000000
"""Address of a computer's RAM, above all that the linker places."""
NO_COUNTERS: Mapping[str, LaunchCounter | None] = MappingProxyType({})

CounterOf = Callable[[Rig, str], LaunchCounter | None]

Link = Callable[[Launch], Mapping[str, Rig]]
"""Links the computers of a launch, one for each of its variants."""


def measure_programs(
    steps: Steps[Row],
    request: Request,
    tree: Tree,
    *,
    work: Path,
    record: RecordWriter,
    reporter: Reporter,
) -> Measured:
    """Run the program of each row in each variant as often as requested.

    A given series that is wrong is left out if another one remains. Raises BadUsage for a program
    without a measured step, VerificationFailed if the base is wrong, and what building raises.
    """
    _refuse(request)
    experiment = request.experiment
    programs = [(row, _program(steps, row)) for row in experiment.rows]
    parts = _parts(request, tree, work=work, reporter=reporter)
    counter_of = _counters(request, reporter)
    start = take_snapshot()
    while True:
        failed = {**failures(record.journal, WRONG), **failures(record.journal, UNHOSTED)}
        link = _linker(parts, request, work, reporter)
        names = [variant.name for variant in request.variants]
        planned = plan_launches(names, launches=experiment.launches, seed=request.seed)
        launches = without(failed, planned)
        try:
            with _beside(programs, request, work, reporter) as beside:
                samples = tuple(
                    _samples(
                        *(programs, link, launches, counter_of),
                        beside=beside,
                        record=record,
                        reporter=reporter,
                    )
                )
        except VariantFails as error:
            leave_out(error, request, record.journal, reporter)
            record.begin()
            continue
        return Measured(
            rows=experiment.rows,
            samples=samples,
            conditions=conditions(start, take_snapshot()),
            launches=experiment.launches,
            config_sha256=next(iter(parts.values())).config_sha256,
            options={"operations_verified": len(programs) * len(launches[0].link_order)},
            unit="instructions" if request.count else "ns",
            count=count_facts(request),
            cpu_clock_step_ns=None if request.count else _cpu_clock_step_ns(),
            warnings=shadowed_warnings() if request.beside_live else (),
            wrong=failures(record.journal, WRONG),
            untouched=failures(record.journal, UNHOSTED),
        )


def _beside(
    programs: Sequence[tuple[Row, Program]], request: Request, work: Path, reporter: Reporter
) -> AbstractContextManager[Beside]:
    """Return the running kernel's part of the run, which is empty unless it was requested."""
    if not request.beside_live:
        return nullcontext(NOTHING_LIVE)
    return beside_live({row.name: one for row, one in programs}, work, reporter.step)


def _refuse(request: Request) -> None:
    name = request.experiment.name
    if request.count is not None and request.count.annotate:
        raise BadUsage(f"--annotate: no instructions of {name} can be listed; leave it out")
    if request.control is not None:
        raise BadUsage(f"--{CONTROL}: no computer of {name} can be slowed; leave it out")


def _counters(request: Request, reporter: Reporter) -> CounterOf:
    """Return the function that makes a computer's counter; it makes none if the run is timed.

    Raises CannotRunHere if the emulator is not installed.
    """
    if request.count is None:
        return lambda _rig, _name: None
    emulator_version()
    plugin = build_plugin(request.cache, reporter.step)

    def counter(rig: Rig, name: str) -> LaunchCounter:
        places = places_on(rig.computer, name)
        its = plugin, rig.computer.program, X86_64, places
        return LaunchCounter(*its, cpu=request.cpu, memory=FIRST_ADDRESS)

    return counter


def _program(steps: Steps[Row], row: Row) -> Program:
    program = parse(steps.text_of(row), row.name)
    measured_line(program, row.name)
    return program


# --- Computers -----------------------------------------------------------------------------


def _parts(request: Request, tree: Tree, *, work: Path, reporter: Reporter) -> dict[str, Parts]:
    """Build each list of patches once for a source and its options, prefixes of others first."""
    built: dict[object, Parts] = {}
    found = {}
    for variant in sorted(request.variants, key=lambda one: len(one.patches)):
        source = request.trees.get(variant.name, tree)
        content = variant.content, source.key, source.setup
        if content not in built:
            built[content] = build_parts(
                source,
                variant.patches,
                computer_folder(),
                cache=request.cache,
                work=work / variant.name,
                step=labelled(reporter.step, f"{shown(variant.name)}: "),
            )
        found[variant.name] = built[content]
    return found


def _linker(parts: Mapping[str, Parts], request: Request, work: Path, reporter: Reporter) -> Link:
    confinement = build_confinement(work, [work]) if request.confined else None
    say_unconfined(confinement, reporter.step)

    def link(launch: Launch) -> dict[str, Rig]:
        def one(name: str) -> Rig:
            its = parts[name]
            place = work / f"launch-{launch.number}-{name}"
            if request.count:  # the number of pages with data depends on the layout
                return Rig(its.link(place, confinement=confinement))
            order = drawn_order(range(len(its.objects)), launch.seed, name)
            computer = its.link(
                place, order=order, pad_bytes=launch.data_offset, confinement=confinement
            )
            return Rig(computer)

        with ThreadPoolExecutor(max_workers=os.cpu_count()) as at_once:
            return dict(zip(launch.link_order, at_once.map(one, launch.link_order), strict=True))

    return link


# --- Samples -------------------------------------------------------------------------------


def _samples(
    programs: Sequence[tuple[Row, Program]],
    link: Link,
    launches: Sequence[Launch],
    counter_of: CounterOf,
    *,
    beside: Beside,
    record: RecordWriter,
    reporter: Reporter,
) -> Iterator[Sample]:
    """Yield all samples; those of an earlier start of the run come from the journal."""
    memory = Replayed(record.journal)
    total = float(sum(row.rounds for row, _ in programs) * len(launches))
    with reporter.measuring(total) as advance:
        for launch in launches:
            rigs: dict[str, Rig] = {}
            counters: dict[str, LaunchCounter | None] = {}

            def take(
                row: Row,
                program: Program,
                launch: Launch = launch,
                rigs: dict[str, Rig] = rigs,
                counters: dict[str, LaunchCounter | None] = counters,
            ) -> str:
                if not rigs:
                    rigs.update(link(launch))
                    counters.update((name, counter_of(rig, name)) for name, rig in rigs.items())
                return "\n".join(samples_of(row, program, rigs, launch, counters, beside=beside))

            for row, program in programs:
                piece = f"launch {launch.number} {row.name}"
                for line in memory.recall(piece, partial(take, row, program)).splitlines():
                    sample = Sample.from_json(line, where=piece)
                    # The journal also has earlier samples of variants that were left out later.
                    if sample.subject in (*launch.link_order, RUNNING):
                        record.append(sample)
                        yield sample
                with reporter.again() if memory.recalled else nullcontext():
                    where = f"launch {launch.number + 1} of {len(launches)}, {row.name}"
                    advance(float(row.rounds), where)
            for rig in rigs.values():
                rmtree(rig.computer.program.parent, ignore_errors=True)


def samples_of(
    row: Row,
    program: Program,
    rigs: Mapping[str, Rig],
    launch: Launch,
    counters: Mapping[str, LaunchCounter | None] = NO_COUNTERS,
    *,
    beside: Beside = NOTHING_LIVE,
) -> Iterator[str]:
    """Yield the samples of a row in a launch as lines.

    Each variant is checked first. A sample is verified if it leaves the same state. counters: the
    counters of variants that are counted instead of timed. beside: the running kernel's part.
    """
    with _on_one_cpu(), _kept_ram() as ram:
        states = {name: _checked(rig, program, row, name) for name, rig in rigs.items()}
        live = beside.ready(row.name)
        subjects = [*rigs, *([RUNNING] if live else [])]
        for number in range(row.rounds):
            for name in drawn_order(subjects, launch.seed, row.name, number):
                if live and name == RUNNING:
                    yield live.sample(row, launch.number, number).to_json()
                    continue
                counter = counters.get(name)
                ran = rigs[name].run(program, Checks.NEVER, ram=ram, counter=counter)
                if ran.is_wrong or ran.timed is None or ran.state != states[name]:
                    words = f"{row.name}: {name} ends in another state than when it was checked"
                    raise WrongVariant(words, name)
                sample = Sample(
                    row=row.name,
                    launch=launch.number,
                    round=number,
                    role="variant",
                    subject=name,
                    threads=1,
                    time_ns=max(1, ran.timed.ns),
                    nr_bytes=row.written_bytes,
                    verified=True,
                    cpu_ns=ran.timed.cpu_ns,
                )
                yield _counted(sample, counter) if counter else sample.to_json()


def _counted(sample: Sample, counter: LaunchCounter) -> str:
    """Return the sample with the counts of the only window of its run."""
    counter.again()
    return counter.completed(json.dumps({**json.loads(sample.to_json()), "marks": 1}))


def _checked(rig: Rig, program: Program, row: Row, name: str) -> str:
    """Return the state that a variant leaves; raises WrongVariant if a check fails.

    Checks drain the kernel's batches, so with a check after each step states differ from samples'.
    """
    each, ran = (rig.run(program, checks) for checks in (Checks.EACH, Checks.LAST))
    for line, text in (*each.alarms, *ran.alarms):
        raise WrongVariant(f"{row.name}: {name}: after line {line}: {text}", name)
    line = measured_line(program, row.name)
    if ran.timed is None or ran.returned[line] < 0:
        raise ReamError(
            f"{row.name}: {name}: line {line} was to be measured and returned"
            f" {ran.returned.get(line, 'nothing')}: correct the steps before it"
        )
    return ran.state


def _cpu_clock_step_ns() -> int:
    """Return an upper bound on the step of the CPU time clock: some readings differ by it."""
    readings = [time.thread_time_ns() for _ in range(READINGS)]
    return min(after - before for before, after in pairwise(readings) if after > before)


@contextmanager
def _kept_ram() -> Iterator[int]:
    """Yield a file that serves as RAM of successive computers; only the first allocates pages."""
    ram = os.memfd_create("ram")
    try:
        yield ram
    finally:
        os.close(ram)


@contextmanager
def _on_one_cpu() -> Iterator[None]:
    """Within the block, pin started processes to the last CPU that this thread may run on."""
    cpus = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(cpus)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, cpus)
