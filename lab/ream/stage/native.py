# SPDX-License-Identifier: GPL-2.0-only
"""The native stage: the kernel's own objects in a plain program, launched again and again."""

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
"""The runner's own exit codes; native/host/program.h."""

FACTS_DEADLINE_S = 10.0
MILLION = 1_000_000
SILENCE_S = 120.0
"""A runner prints at least a line per sample; the longest takes some seconds. It ends by itself a
sample that does not come back; this is for what that cannot see."""
FIRST_SAMPLE_S = 60
"""What the first sample of a row may take in a launch: there is nothing to hold it against."""
LEAST_SAMPLE_S = 10
"""What every later one may take at least; more if the slowest of its row is slow (watch.c)."""
MOST_STARTS = 3
"""Of an emulated launch. QEMU 7.2 may stop with a failed assertion of its own, one counted run of
some dozens (qemu_plugin_vcpu_mem_cb): it looks at what to call for an access to memory when that
is no longer there."""


@dataclass(frozen=True)
class Build:
    """What a program says of itself: where it puts things, and struct page as compiled."""

    addresses: Mapping[str, int]
    facts: Facts


@dataclass(frozen=True)
class End:
    """What a launch says when it is through."""

    stubs: tuple[Mapping[str, Any], ...]
    """Every stub it reached, with its count."""
    huge_ratio: float
    """The share of the arena that lay in huge pages."""
    told: Mapping[str, int] = field(default_factory=dict)
    """What else there is to say of the whole launch, by name."""
    cpu_clock_step_ns: int = 0
    """The step in which the launch's clock of CPU time advances, in ns; 0 if it is unknown."""


@dataclass(frozen=True)
class Round:
    """What a launch says when a round of a row is whole: every variant and limit has its sample."""

    row: str
    stubs: tuple[Mapping[str, Any], ...]
    """Reached since this start of the runner, with their counts."""
    huge_ratio: float


@dataclass(frozen=True)
class Refused:
    """Counters of the machine that a launch could not open."""

    counters: Mapping[str, str]
    """The name of the error by counter."""


Event = Sample | Round | End | Refused


class Counts(Protocol):
    """What counts the samples of a launch; ream.count.counter has it."""

    @property
    def argv(self) -> tuple[str, ...]:
        """The words before the program's."""

    @property
    def loads(self) -> tuple[Path, ...]:
        """What they load, besides what is installed."""

    def completed(self, text: str) -> str:
        """A line of the program, with what was counted."""


def event_of(text: str, *, where: str) -> Event:
    """What a line of a runner's output says; raises ReamError if it is none."""
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
    """Which rows the CPUs of this machine can run, and how."""

    rows: tuple[Any, ...]
    cpus: int = 0
    """CPUs that the kernels see; 0: as many as there are."""
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
    """The words that start a runner, confined as its program says, before those of its task.

    counter: counts it, under an emulator. reads: files that it reads besides its program's own.
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
    """Ask a program whose variants all have the same facts for the numbers of its build.

    Raises ReamError if they have not.
    """
    addresses, variants = read_facts(program)
    (first_name, first), *others = variants.items()
    for name, facts in others:
        if facts != first:
            differ = sorted(k for k in {*first, *facts} if facts.get(k) != first.get(k))
            raise ReamError(f"{name} and {first_name} differ in {', '.join(differ)}")
    return Build(addresses, first)


def read_facts(program: Program) -> tuple[Mapping[str, int], dict[str, Facts]]:
    """Ask a program where it puts things, and each of its variants what it is."""
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
    """Run one launch to its end; yield its samples as they come, and what it says at the end.

    cpus: of the machine that the kernels see; more than there are share the real ones. 0: all.
    done: by row, the rounds that an earlier start of this launch has done: the others are drawn
    as they would have been. control: the share by which the variant of that name is slowed.
    counter: counts what samples execute, in the place of their times.
    heard: is given every line before what it says is yielded.
    Raises WrongVariant when a sample's memory is not what the oracle says, or its kernel warned,
    crashed or did not come back; UnhostedVariant when it reached what is not provided,
    CannotRunHere when memory or CPUs are short, EmulatorGaveUp when the emulator did, ReamError
    when the runner went silent. The runner never outlives this iterator.
    """
    argv = _launch_argv(program, launch, plan, cpus=cpus, counter=counter)
    argv += [f"--{CONTROL}", f"{round(control * MILLION)}"] if control else []
    for row, nr_rounds in done.items():
        argv += ["--done", f"{row}:{nr_rounds}"]
    command = Command(tuple(argv), program.path.parent, math.inf, pass_fds=tuple(descriptors))
    # A file, not a pipe: a kernel that says much must not wait for us to read it.
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
    """What the lines of a launch say, wherever its program ran; raises what `launch_once` raises.

    ending: after the last line, the exit code of the program and all that it wrote to standard
    error.
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
    """What a launch says under an emulator, begun again where that gave up.

    start: runs the launch, without the rounds that were whole before. What it says of a round comes
    when the round is whole; None comes where it begins again, before anything of that start.
    Raises EmulatorGaveUp when the last of MOST_STARTS has, and what `start` does.
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
    """The words that start a launch; of one that is counted, those of the emulator first."""
    argv = [*runner_argv(program, counter, reads=(plan,)), "--plan", str(plan)]
    argv += ["--cpus", str(cpus)] if cpus else []
    if counter is None:
        return [*argv, *task_words(launch, counters.sources())]
    argv += ["--launch", str(launch.number), "--seed", str(launch.seed)]
    return [*argv, "--patience", f"{FIRST_SAMPLE_S}:{FIRST_SAMPLE_S}", "--count"]


def task_words(launch: Launch, sources: Iterable[str]) -> list[str]:
    """The words of a launch that is timed, besides its program's, its plan and its CPUs.

    sources: of counters, as `counters.sources` has them.
    """
    words = ["--launch", str(launch.number), "--seed", str(launch.seed)]
    words += [word for source in sources for word in ("--counter", source)]
    return [*words, "--patience", f"{FIRST_SAMPLE_S}:{LEAST_SAMPLE_S}"]


def _whole_lines(process: "subprocess.Popen[bytes]") -> Iterator[str]:
    """Lines of a process's output until its end; raises ReamError if it goes silent."""
    try:
        for line in lines(process, silence_s=SILENCE_S):
            if line.endswith("\n"):  # what is left is a line cut short by its death
                yield line.removesuffix("\n")
    except TimeoutError as cause:
        raise ReamError(f"the native runner said nothing for {SILENCE_S:g} s") from cause


def _fault(code: int, faults: Sequence[Fault], program: Program, said: str) -> ReamError:
    """A crash or an endless loop of a hosted kernel, and what it had said before.

    What the native stage does not provide may be right in a kernel; all else is wrong.
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
    """What one of a program's variants is; nothing if that is not known."""
    try:
        return read_facts(program)[1].get(subject or "", {})
    except (ReamError, ValueError):  # what is wrong is known, and is said with fewer names
        return {}


def symbol_map(kernels: Iterable[Kernel], root: Mapping[str, Path]) -> dict[str, Any]:
    """For the receipt: which object each function of each variant came from, and its digest.

    root: by variant, the directory that kbuild names objects from.
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
