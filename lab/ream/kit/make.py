# SPDX-License-Identifier: GPL-2.0-only
"""Makes a kit: decides and builds all that can be decided and built before the first launch."""

import hashlib
import json
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ream.command import Command, run
from ream.counted import counted
from ream.errors import BadUsage, CannotRunHere
from ream.experiment import Row
from ream.kernel.arch import X86_64, Arch
from ream.kernel.cache import scratch
from ream.kernel.confine import FLAGS
from ream.kernel.confine import SOURCE as CONFINE
from ream.kit.contents import (
    CPU_COUNTS,
    SCHEMA,
    ExperimentOfKit,
    Kit,
    LaunchOfKit,
    PartOfKit,
    PlanOfKit,
)
from ream.kit.pack import Images, packed
from ream.kit.visits import Visits
from ream.measure.plan import Launch
from ream.measure.sample import Sample
from ream.paths import CHECKOUT, NATIVE
from ream.progress import Reporter
from ream.record.machine import read_machine
from ream.record.receipt import read_ream
from ream.record.record import new_run_id, open_record
from ream.session.native import Part, operations_verified, parts_of, symbols_of
from ream.session.plan import series_text
from ream.session.request import Request
from ream.session.run import Run, benchmark_of
from ream.session.suited import by_config, suited_programs
from ream.stage import counters, native
from ream.stage.confine import Confinement
from ream.stage.hosted import as_they_are
from ream.stage.link import Program
from ream.stage.memory import available_bytes, fit_rows
from ream.stage.suit import on_cpus

FACTS = NATIVE / "kit" / "facts.c"
COMPILE_S = 60.0
USED_SHARE = 0.8
"""Share of the given minutes that is planned for; the rest is for a slower machine."""
MEMORY = "@memory@"
"""Placeholder in a launch's arguments, replaced by the target machine's memory."""
NOWHERE = Path("/nonexistent")
"""A root without CPU-specific counters, so that only counters that any CPU may have are used."""


@dataclass(frozen=True)
class _Seconds:
    """Seconds of a launch until its first sample, and for each round of all its rows."""

    start: float
    a_round: float

    def of(self, rounds: int) -> float:
        """Return the seconds that a launch with this number of rounds takes."""
        return self.start + rounds * self.a_round


@dataclass
class _Prepared:
    """An experiment that is prepared for a kit."""

    run: Run
    parts: list[Part]
    verified: int
    symbols: Mapping[str, object]
    seconds: dict[str, "_Seconds"]
    """Seconds of a launch on this machine, by program."""
    memory_bytes: int
    """Memory that the target machine must have available."""

    @property
    def name(self) -> str:
        return self.run.request.experiment.name

    def name_of(self, part: Part) -> str:
        """Return the name of a program's files."""
        words = (self.name, *part.plan.label.replace(",", " ").split())
        return "-".join(words)


def make_kit(
    requests: Sequence[Request],
    file: Path,
    *,
    minutes: int,
    memory_bytes: int,
    cache: Path,
    force: bool,
    reporter: Reporter,
) -> int:
    """Build and write a kit; return its size in bytes. Raises what building raises."""
    if file.exists() and not force:
        raise BadUsage(f"{file} is there already; --force replaces it")
    if not file.parent.is_dir():
        raise BadUsage(f"{file}: there is no directory {file.parent}")
    kit_id = new_run_id("kit", "native")
    with scratch(cache / "run" / kit_id, reporter.step) as work:
        prepared = [
            _prepared(one, work / one.experiment.name, memory_bytes, reporter=reporter)
            for one in requests
        ]
        rounds = _rounds_share(prepared, minutes)
        stage = work / "kit"
        stage.mkdir()
        images = Images(stage)
        launches: list[tuple[int, str, int]] = []
        experiments = []
        for one in prepared:
            reporter.step(f"{one.name}: linking {counted(len(one.parts), 'program')}")
            experiments.append(_experiment(one, stage, images, rounds, launches))
        arch = requests[0].setup.target
        kit = Kit(
            schema=SCHEMA,
            ream=read_ream(CHECKOUT),
            arch=arch.machine,
            minutes=minutes,
            experiments=tuple(experiments),
        )
        _programs(stage, arch)
        reporter.step("packing")
        return packed(stage, kit, [(n, round(s)) for _, n, s in sorted(launches)], file)


def _prepared(request: Request, work: Path, memory_bytes: int, *, reporter: Reporter) -> _Prepared:
    """Build and check the programs of an experiment, and time a round of each."""
    run_id = new_run_id(request.experiment.name, "native")
    with open_record(work / "runs", run_id) as record:
        run = Run(request, run_id, read_machine(), (), record, reporter)
        run.begin()
        assert run.tree is not None
        request = run.request
        with on_cpus(max(CPU_COUNTS)):
            parts = parts_of(
                request, run.tree, failed=(), work=work, journal=record.journal, reporter=reporter
            )
        verified = operations_verified(request, parts, reporter)
        seconds = _tried(request, parts, memory_bytes, reporter)
    return _Prepared(run, parts, verified, symbols_of(parts), seconds, memory_bytes)


def _tried(
    request: Request, parts: Sequence[Part], memory_bytes: int, reporter: Reporter
) -> dict[str, _Seconds]:
    """Return the seconds of a launch on this machine, by program.

    A program of another architecture could only be emulated. It is not run; its time is estimated
    from the rounds of its rows.
    """
    found = {}
    suited = {label: rows for label, rows, _ in _rows_for(request)}
    for part in parts:
        rows = suited.get(part.plan.label, ())
        if not rows or part.bench.emulator:
            found[part.plan.label] = _Seconds(1.0, len(part.plan.rows))
            continue
        reporter.step(f"{request.experiment.name} {part.plan.label}".rstrip() + ": trying a round")
        once = tuple(
            row.model_copy(update={"rounds": 1}) for row in _fitted(rows, part, memory_bytes)[0]
        )
        cpus = next(cpus for label, _, cpus in _rows_for(request) if label == part.plan.label)
        tried = replace(part, plan=replace(part.plan, rows=once, cpus=cpus))
        launch = part.plan.launches[0]
        program = part.bench.link(launch)
        with tried.planned() as (plan, descriptors):
            began = first = time.monotonic()
            for event in native.launch_once(program, launch, plan, descriptors, cpus=cpus):
                if first == began and isinstance(event, Sample):
                    first = time.monotonic()
        found[part.plan.label] = _Seconds(first - began, time.monotonic() - first)
        shutil.rmtree(program.path.parent, ignore_errors=True)
    return found


def _rows_for(request: Request) -> Iterator[tuple[str, tuple[Row, ...], int]]:
    """Yield each program's label, the rows that the target machine can run, and its CPUs."""
    for its, suited in suited_programs(request):
        for config, rows in by_config(suited.rows).items():
            yield ", ".join(filter(None, (its.label, *config))), rows, suited.cpus


def _fitted(
    rows: tuple[Row, ...], part: Part, memory_bytes: int
) -> tuple[tuple[Row, ...], tuple[str, ...]]:
    """Return the rows that fit into that much memory and into this machine's, and notes."""
    return fit_rows(rows, min(available_bytes(), memory_bytes), part.build, part.its.sized)


def _rounds_share(prepared: Sequence[_Prepared], minutes: int) -> float:
    """Return the share of the planned rounds that the minutes suffice for."""
    starts = rounds = 0.0
    for one in prepared:
        for part in one.parts:
            seconds, launches = one.seconds[part.plan.label], len(part.plan.launches)
            starts += launches * seconds.start
            rounds += launches * seconds.a_round * max(row.rounds for row in part.plan.rows)
    return max(0.0, min(1.0, (minutes * 60 * USED_SHARE - starts) / max(rounds, 1.0)))


def _experiment(
    one: _Prepared,
    stage: Path,
    images: Images,
    share: float,
    launches: list[tuple[int, str, int]],
) -> ExperimentOfKit:
    """Put an experiment's programs and plans into the kit; add its launches, with their seconds."""
    run = one.run
    rows = tuple(
        row.model_copy(update={"rounds": max(1, int(row.rounds * share))})
        for row in run.request.experiment.rows
    )
    experiment = run.request.experiment.model_copy(update={"rows": rows})
    request = replace(run.request, experiment=experiment)
    plans = _plans(request, one, images)
    visits = Visits(stage, one.name, run.reporter)
    parts = []
    for part in one.parts:
        name = one.name_of(part)
        its = plans.get(part.plan.label, {})
        rounds = max((row.rounds for row in rows if part.its.runs(row)), default=1)
        seconds = one.seconds[part.plan.label].of(rounds)
        visits.note(request, part, _fitted(part.plan.rows, part, one.memory_bytes)[0])
        linked = []
        for launch in part.plan.launches:
            place = stage / "l" / f"{name}.{launch.number}"
            linked.append(_linked(part, launch, place))
            for count, plan in its.items():
                words = ["--plan", plan.file, *(["--cpus", str(plan.cpus)] if plan.cpus else [])]
                _write_words(place / f"plan-{count}", words)
            launches.append((launch.number, place.name, max(1, round(seconds))))
        parts.append(
            PartOfKit(
                name=name,
                label=part.plan.label,
                config_sha256=part.bench.config_sha256,
                launches=tuple(linked),
                plans={str(count): plan for count, plan in its.items()},
            )
        )
    launches += visits.launches
    return ExperimentOfKit(
        name=one.name,
        plan=json.loads(json.dumps({**run.plan_of(request)})),
        series=series_text(request),
        kernel=run.kernel(one.parts[0].bench.config_sha256),
        benchmark=benchmark_of(request),
        operations_verified=one.verified,
        symbols=json.loads(json.dumps(one.symbols)),
        parts=tuple(parts),
        visits=tuple(visits.found),
    )


def _plans(request: Request, one: _Prepared, images: Images) -> dict[str, dict[int, PlanOfKit]]:
    """Return the plans by program and number of CPUs; equal plans share a file."""
    found: dict[str, dict[int, PlanOfKit]] = {}
    by_label = {part.plan.label: part for part in one.parts}
    for count in CPU_COUNTS:
        with on_cpus(count):
            for label, rows, cpus in _rows_for(request):
                its, part = found.setdefault(label, {}), by_label[label]
                if its and part.its.suit is as_they_are:
                    its[count] = next(iter(its.values()))
                elif rows:
                    its[count] = _plan(one, part, rows, cpus, images)
    return found


def _plan(
    one: _Prepared, part: Part, rows: tuple[Row, ...], cpus: int, images: Images
) -> PlanOfKit:
    fitted, shrunk = _fitted(rows, part, one.memory_bytes)
    planned = replace(part, plan=replace(part.plan, rows=fitted, cpus=cpus))
    with planned.planned() as (plan, _):
        file, sha256 = images.plan(one.name_of(part), plan)
    return PlanOfKit(
        file=file,
        sha256=sha256,
        rows=tuple(row.model_dump(mode="json", exclude_unset=True) for row in fitted),
        shrunk=shrunk,
        cpus=cpus,
        needed_bytes=part.its.sized.needed_bytes(fitted, part.build),
    )


def _linked(part: Part, launch: Launch, place: Path) -> LaunchOfKit:
    """Link the program of one launch, and write the arguments that start it."""
    program = part.bench.link(launch)
    place.mkdir(parents=True)
    arch = part.bench.arch
    out = place / "runner"
    strip = (arch.tool("strip"), "--strip-debug", "-o", str(out), str(program.path))
    run(Command(strip, place, COMPILE_S))
    shutil.copy(program.forbidden, place / "forbidden.txt")
    shutil.rmtree(program.path.parent, ignore_errors=True)
    below = Path("l") / place.name
    there: Program = replace(
        program,
        path=below / "runner",
        forbidden=below / "forbidden.txt",
        emulator=(),
        confinement=Confinement(Path("confine"), (Path(),)) if arch == X86_64 else None,
    )
    words = native.runner_argv(there)
    words[0] = f"./{words[0]}"
    if "--memory" in words:
        words[words.index("--memory") + 1] = MEMORY
    _write_words(place / "words", [*words, *native.task_words(launch, counters.sources(NOWHERE))])
    return LaunchOfKit(
        number=launch.number,
        seed=launch.seed,
        data_offset=launch.data_offset,
        link_order=launch.link_order,
        sha256=hashlib.sha256(out.read_bytes()).hexdigest(),
    )


def _write_words(path: Path, words: Sequence[str]) -> None:
    path.write_text("".join(f"{word}\n" for word in words))


def _programs(stage: Path, arch: Arch) -> None:
    """Compile a kit's other programs statically, for machines without this machine's libraries."""
    for name, source in {"facts": FACTS, "confine": CONFINE}.items():
        if name == "confine" and arch != X86_64:
            continue  # it knows the system calls of x86-64
        gcc = (arch.tool("gcc"), *FLAGS, "-static", "-s", str(source), "-o", str(stage / name))
        run(Command(gcc, stage, COMPILE_S))


def check_tools(arch: Arch) -> None:
    """Raise CannotRunHere if the compiler for a kit's programs is missing."""
    if shutil.which(arch.tool("gcc")) is None:
        raise CannotRunHere(f"{arch.tool('gcc')} is not installed; `make setup` installs it")
