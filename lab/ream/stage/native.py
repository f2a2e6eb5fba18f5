# SPDX-License-Identifier: GPL-2.0-only
"""The native stage: launches a plain program that contains the kernel's own objects."""

import hashlib
import json
import math
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol

from ream.command import Command, last_words, lines, run, spawn
from ream.errors import (
    CannotRunHere,
    EmulatorGaveUp,
    ReamError,
    UnhostedVariant,
    VerificationFailed,
    WrongVariant,
)
from ream.experiment import CONTROL
from ream.kernel.arch import X86_64
from ream.measure.plan import Launch
from ream.measure.sample import Sample
from ream.stage import counters
from ream.stage.differences import in_words
from ream.stage.fault import Fault, fault_of, told, wrong_of
from ream.stage.link import Kernel, Program

Facts = Mapping[str, int]

EXIT_NO_RESOURCE = 3
EXIT_NOT_VERIFIED = 5
EXIT_UNDEFINED_SYMBOL = 7
EXIT_WARNED = 8
"""Exit codes of the runner, from native/host/program.h."""

FACTS_DEADLINE_S = 10.0
MILLION = 1_000_000
SILENCE_S = 120.0
"""Time without output after which a runner is ended. It prints at least a line per sample, of which
the longest takes some seconds, and itself ends a sample that hangs; this covers other hangs."""
FIRST_SAMPLE_S = 60
"""Time limit of the first sample of a row in a launch, for which there is no reference."""
LEAST_SAMPLE_S = 10
"""Least time limit of later samples; it is longer if the row's slowest sample is (watch.c)."""
MOST_STARTS = 3
"""Attempts at an emulated launch. In about one of some dozens of counted runs QEMU 7.2 stops with
a failed assertion of its own (qemu_plugin_vcpu_mem_cb): it reads the list of callbacks for an
access to memory after that list is gone."""


@dataclass(frozen=True)
class Build:
    """A program's facts: addresses of its memory, and struct page as compiled."""

    addresses: Mapping[str, int]
    facts: Facts


@dataclass(frozen=True)
class End:
    """The last report of a launch."""

    stubs: tuple[Mapping[str, Any], ...]
    """Every stub that the launch reached, with its count."""
    huge_ratio: float
    """The share of the arena that lay in huge pages."""
    told: Mapping[str, int] = field(default_factory=dict)
    """Further numbers about the whole launch, by name."""
    cpu_clock_step_ns: int = 0
    """The step of the launch's CPU time clock, in ns; 0 if it is unknown."""


@dataclass(frozen=True)
class Round:
    """A launch's report on a complete round of a row: every variant and limit has its sample."""

    row: str
    stubs: tuple[Mapping[str, Any], ...]
    """Stubs reached since this start of the runner, with their counts."""
    huge_ratio: float


@dataclass(frozen=True)
class Refused:
    """Hardware counters that a launch could not open."""

    counters: Mapping[str, str]
    """The name of the error by counter."""


Event = Sample | Round | End | Refused


class Counts(Protocol):
    """Counts the samples of a launch; implemented in ream.count.counter."""

    @property
    def argv(self) -> tuple[str, ...]:
        """The command line before the program's."""

    @property
    def loads(self) -> tuple[Path, ...]:
        """Files that it loads, besides installed ones."""

    def completed(self, text: str) -> str:
        """Return a line of the program with the counts."""


def event_of(text: str, *, where: str) -> Event:
    """Parse a line of a runner's output; raises ReamError if it is invalid."""
    try:
        fields = json.loads(text)
        if "end" in fields:
            step_ns = fields.get("cpu_clock_step_ns", 0)
            return End(tuple(fields["stubs"]), fields["huge_ratio"], fields["told"], step_ns)
        if "whole" in fields:
            return Round(fields["row"], tuple(fields["stubs"]), fields["huge_ratio"])
        if "refused" in fields:
            return Refused(dict(fields["refused"]))
    except (ValueError, TypeError, KeyError):
        pass  # no line that it prints: it is no sample either
    return Sample.from_json(text, where=where)


@dataclass(frozen=True)
class Suited:
    """The rows that the CPUs of this machine can run, and how."""

    rows: tuple[Any, ...]
    cpus: int = 0
    """CPUs that the kernels see; 0: all CPUs of the machine."""
    skipped: Mapping[str, str] = field(default_factory=dict)
    """The reason for each row that is not run."""
    remarks: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Remarks on rows that are run, beyond their titles."""
    warnings: tuple[str, ...] = ()

    def by_reason(self) -> dict[str, list[str]]:
        """The names of skipped rows, by the reason."""
        found: dict[str, list[str]] = {}
        for name, reason in self.skipped.items():
            found.setdefault(reason, []).append(name)
        return found


def runner_argv(
    program: Program, counter: Counts | None = None, *, reads: tuple[Path, ...] = ()
) -> list[str]:
    """Return the command line of a runner, confined as its program requires, without its task.

    counter: counts it, under an emulator. reads: files that it reads besides those of its program.
    """
    own, argv = program.path.parent, list[str]()
    if program.confinement is not None:
        unemulated = None if not program.emulator else ()
        loads = unemulated if counter is None else counter.loads
        argv += program.confinement.words(own, reads=reads, emulator=loads)
    argv += program.emulator if counter is None else counter.argv
    argv += [str(program.path), "--variants", ",".join(program.order)]
    if program.trees:
        argv += ["--trees", ",".join(map(str, program.trees)), "--nr-trees", f"{program.nr_trees}"]
    return [*argv, "--forbidden", str(program.forbidden)]


def read_build(program: Program) -> Build:
    """Return the build of a program whose variants have the same facts.

    Raises ReamError if the facts differ.
    """
    addresses, variants = read_facts(program)
    (first_name, first), *others = variants.items()
    for name, facts in others:
        if facts != first:
            differ = sorted(k for k in {*first, *facts} if facts.get(k) != first.get(k))
            raise ReamError(f"{name} and {first_name} differ in {', '.join(differ)}")
    return Build(addresses, first)


def read_facts(program: Program) -> tuple[Mapping[str, int], dict[str, Facts]]:
    """Run a program to get its addresses, and the facts of each of its variants."""
    argv = (*runner_argv(program), "--facts")
    said = json.loads(run(Command(argv, program.path.parent, FACTS_DEADLINE_S)))
    return said["addresses"], dict(said["variants"])


def launch_once(
    program: Program,
    launch: Launch,
    plan: Path,
    descriptors: Sequence[int],
    *,
    cpus: int = 0,
    done: Mapping[str, int] = MappingProxyType({}),
    control: float | None = None,
    counter: Counts | None = None,
    heard: Callable[[str], None] = lambda _text: None,
) -> Iterator[Event]:
    """Run one launch to its end; yield its samples as they arrive, and its last report.

    cpus: CPUs that the kernels see, which may share the machine's; 0: all CPUs of the machine.
    done: rounds by row that an earlier start of this launch completed; the random choices of the
    others do not depend on it. control: the share by which the variant of that name is slowed.
    counter: counts what samples execute instead of timing them.
    heard: is called with every line before its event is yielded.
    Raises WrongVariant if a sample's memory does not match the oracle, or if its kernel warned,
    crashed or hung; UnhostedVariant if it reached a function that is not provided, CannotRunHere if
    memory or CPUs do not suffice, EmulatorGaveUp if the emulator failed, ReamError if the runner
    went silent. The runner never outlives this iterator.
    """
    argv = _launch_argv(program, launch, plan, cpus=cpus, counter=counter)
    argv += [f"--{CONTROL}", f"{round(control * MILLION)}"] if control else []
    for row, nr_rounds in done.items():
        argv += ["--done", f"{row}:{nr_rounds}"]
    command = Command(tuple(argv), program.path.parent, math.inf, pass_fds=tuple(descriptors))
    # A file, not a pipe, so that a kernel with much output does not wait for a reader.
    with (
        tempfile.TemporaryFile(dir=program.path.parent) as said,
        spawn(command, stderr=said) as process,
    ):

        def ending() -> tuple[int, str]:
            code = process.wait()
            said.seek(0)
            return code, said.read().decode(errors="replace")

        yield from events_of(
            _whole_lines(process), ending, program, launch, counter=counter, heard=heard
        )


def events_of(
    texts: Iterable[str],
    ending: Callable[[], tuple[int, str]],
    program: Program,
    launch: Launch,
    *,
    counter: Counts | None = None,
    heard: Callable[[str], None] = lambda _text: None,
) -> Iterator[Event]:
    """Yield the events in a launch's lines, wherever it ran; raises what `launch_once` raises.

    ending: called after the last line; returns the program's exit code and its standard error.
    """
    ended = False
    faults: list[Fault] = []
    wrong: str | None = None
    for text in texts:
        if (fault := fault_of(text)) is not None:
            faults.append(fault)
            continue
        if (subject := wrong_of(text)) is not None:
            wrong = subject
            continue
        if (counter or program.emulator) and not text.startswith("{"):
            raise EmulatorGaveUp(f"launch {launch.number}: the emulator gave up: {text}")
        said_whole = text if counter is None else counter.completed(text)
        event = event_of(said_whole, where=f"launch {launch.number}")
        ended = isinstance(event, End)
        heard(said_whole)
        yield event
    code, words = ending()
    if code or not ended:
        if faults:
            raise _fault(code, faults, program, words)
        raise _failure(code, words, launch.number, wrong, program)


def until_whole(start: Callable[[], Iterator[Event]]) -> Iterator[Event | None]:
    """Yield the events of a launch under an emulator, which is restarted if the emulator fails.

    start: runs the launch without rounds that are complete. Events of a round are yielded when it
    is complete; None is yielded at a restart, before any event of it.
    Raises EmulatorGaveUp after the last of MOST_STARTS, and what `start` raises.
    """
    for nr_left in reversed(range(MOST_STARTS)):
        held: list[Event] = []
        try:
            for event in start():
                held.append(event)
                if isinstance(event, Round | End):
                    yield from held
                    held.clear()
        except EmulatorGaveUp:
            if not nr_left:
                raise
            yield None
        else:
            return


def _launch_argv(
    program: Program, launch: Launch, plan: Path, *, cpus: int, counter: Counts | None
) -> list[str]:
    """Return the command line of a launch, preceded by the emulator's if it is counted."""
    argv = [*runner_argv(program, counter, reads=(plan,)), "--plan", str(plan)]
    argv += ["--cpus", str(cpus)] if cpus else []
    if counter is None:
        return [*argv, *task_words(launch, counters.sources())]
    argv += ["--launch", str(launch.number), "--seed", str(launch.seed)]
    return [*argv, "--patience", f"{FIRST_SAMPLE_S}:{FIRST_SAMPLE_S}", "--count"]


def task_words(launch: Launch, sources: Iterable[str]) -> list[str]:
    """Return the arguments of a timed launch, besides its program, plan and CPUs.

    sources: hardware counters from `counters.sources`.
    """
    words = ["--launch", str(launch.number), "--seed", str(launch.seed)]
    words += [word for source in sources for word in ("--counter", source)]
    return [*words, "--patience", f"{FIRST_SAMPLE_S}:{LEAST_SAMPLE_S}"]


def _whole_lines(process: "subprocess.Popen[bytes]") -> Iterator[str]:
    """Yield the lines of a process until its end; raises ReamError if it goes silent."""
    try:
        for line in lines(process, silence_s=SILENCE_S):
            if line.endswith("\n"):  # otherwise the process died within the line
                yield line.removesuffix("\n")
    except TimeoutError as cause:
        raise ReamError(f"the native runner said nothing for {SILENCE_S:g} s") from cause


def _fault(code: int, faults: Sequence[Fault], program: Program, said: str) -> ReamError:
    """Return the error for a crash or a hang of a hosted kernel, with its earlier output.

    A kernel that reached what the native stage does not provide may be right; others are wrong.
    """
    words = "\n".join((told(faults, program), *([last_words(said)] if said.strip() else [])))
    if code == EXIT_UNDEFINED_SYMBOL:
        subject = faults[0].subject
        return UnhostedVariant(words, subject) if subject in program.order else ReamError(words)
    return _wrong(words, faults[0].subject, program)


def _wrong(words: str, subject: str | None, program: Program) -> VerificationFailed:
    if subject in program.order:
        return WrongVariant(words, subject)
    return VerificationFailed(words)


def _failure(code: int, said: str, launch: int, subject: str | None, program: Program) -> ReamError:
    words = last_words(said)
    if code == EXIT_NOT_VERIFIED:
        its = in_words(words, _facts_of(subject, program), decodes=program.arch is X86_64)
        return _wrong(its, subject, program)
    if code == EXIT_NO_RESOURCE:
        return CannotRunHere(words)
    if code == EXIT_WARNED:
        return _wrong(f"{subject}: the hosted kernel raised warnings: {words}", subject, program)
    how = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with {code}"
    return ReamError(f"launch {launch}: the native runner {how}: {words}")


def _facts_of(subject: str | None, program: Program) -> Facts:
    """Return the facts of one of a program's variants; empty if they are not known."""
    try:
        return read_facts(program)[1].get(subject or "", {})
    except (ReamError, ValueError):  # the error is known, and is reported with fewer names
        return {}


def symbol_map(kernels: Iterable[Kernel], root: Mapping[str, Path]) -> dict[str, Any]:
    """Return the object of each function of each variant, and its digest, for the receipt.

    root: the build directory, to which kbuild's names of objects are relative, by variant.
    """
    held = list(kernels)
    paths = sorted({path for kernel in held for path in kernel.objects})
    listing = run(Command(("nm", "-A", "--defined-only", *map(str, paths)), Path("/"), 60.0))
    functions: dict[str, list[str]] = {str(path): [] for path in paths}
    for line in listing.splitlines():
        path, _, symbol = line.rpartition(":")
        *_, kind, name = symbol.split()
        if kind in "tTwW":
            functions[path].append(name)
    digests = {path: hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}
    return {
        kernel.name: {
            "objects": {
                str(path.relative_to(root[kernel.name])): {
                    "sha256": digests[path],
                    "functions": sorted(functions[str(path)]),
                }
                for path in kernel.objects
            },
            "undefined": list(kernel.undefined),
        }
        for kernel in held
    }
