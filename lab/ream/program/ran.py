# SPDX-License-Identifier: GPL-2.0-only
"""Runs programs on a hosted computer, and says what happened in the words of the program."""

import bisect
import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import itemgetter
from pathlib import Path
from typing import Any, Self

from ream.command import Command, run
from ream.errors import CannotRunHere, ReamError, StillRunning
from ream.kernel.cache import Step
from ream.kernel.series import Patch
from ream.kernel.source import Tree
from ream.paths import NATIVE
from ream.program.lines import Definitions, lines, load_definitions
from ream.program.scene import last_calls, resolve
from ream.program.shrink import shrink
from ream.program.step import Program
from ream.program.text import parse
from ream.stage.computer import Checks, Computer, build_parts
from ream.stage.confine import build_confinement, say_unconfined
from ream.stage.native import EXIT_NOT_VERIFIED, EXIT_UNDEFINED_SYMBOL, Counts

DEFINITIONS = "steps.def"
"""What a computer's folder has: the steps that it takes."""

NM_S = 60.0
MOST_CALLS = 6
SIGALRM = 14
NO_ALARM = re.compile(
    r"irqs_disabled|IRQS_ENABLED|Cannot split mapped folio below min-order|Cannot split to order-1"
)
"""Assertions with these words are left out. cli and sti have no effect here. 6.12.117 splits each
folio of a file to single pages, also where the file has none, and warns of it. debugfs may ask for
a split to order 1, which not every folio can have.
"""
HANGS = "it does not come back"


def computer_folder() -> Path:
    """The folder of the computer that takes steps; raises CannotRunHere if there is none."""
    found = sorted(NATIVE.glob(f"*/{DEFINITIONS}"))
    if not found:
        raise CannotRunHere(f"{NATIVE}: no folder has a file {DEFINITIONS}")
    return found[0].parent


@dataclass(frozen=True)
class Timed:
    """What the kernel's own functions took in the step that is measured.

    nr: how often one of them was entered. cpu_ns: CPU time, which passes while they run only.
    """

    ns: int
    cpu_ns: int
    nr: int


@dataclass(frozen=True)
class Ran:
    """What a program did on a computer.

    alarms: what was found wrong, each with its line in the text. returned: by line, the result of
    its last call. digest: of the state at the end, when all processes have ended. state: that
    behind the last step. timed: of the measured step, if there was one. parts: by line, and by what
    it is, a number of the state after it, if all of memory was checked. said: all that it reported.
    """

    alarms: tuple[tuple[int, str], ...] = ()
    returned: Mapping[int, int] = field(default_factory=dict)
    digest: str = ""
    state: str = ""
    timed: Timed | None = None
    parts: Mapping[int, Mapping[str, str]] = field(default_factory=dict)
    said: Sequence[Mapping[str, Any]] = ()

    @property
    def is_wrong(self) -> bool:
        """Whether something was found wrong."""
        return bool(self.alarms)

    @property
    def kind(self) -> str:
        """The words of the first alarm, without its numbers; nothing if there is none.

        It is the same for all places of an endless loop.
        """
        return _kind(self.alarms[0][1]) if self.alarms else ""

    @property
    def kinds(self) -> frozenset[str]:
        """The words of each alarm, as `kind` has those of the first one."""
        return frozenset(_kind(text) for _, text in self.alarms)

    def beyond(self, base: Self) -> Self:
        """The same with those alarms alone of which a base, run alike, raises none of the kind."""
        its = tuple(one for one in self.alarms if _kind(one[1]) not in base.kinds)
        return replace(self, alarms=its)


def place(line: int, program: Program) -> str:
    """Where an alarm was raised, in words; line: as run() numbers steps."""
    steps = {step.line: step for step in numbered(program)}
    if line in steps:
        return f"after `{steps[line]}`"
    return "at the end, when all processes exit" if line > max(steps) else "in a step"


class Rig:
    """A computer and the steps that it takes."""

    def __init__(self, computer: Computer) -> None:
        self.computer = computer
        self._definitions: Definitions = load_definitions(computer_folder() / DEFINITIONS)
        self._functions = _functions(computer.program)

    @classmethod
    def of(
        cls,
        tree: Tree,
        patches: Sequence[Patch],
        *,
        cache: Path,
        work: Path,
        step: Step,
    ) -> Self:
        """Build a computer and confine it; as build_parts()."""
        work.mkdir(exist_ok=True)
        confinement = build_confinement(work, [work])
        say_unconfined(confinement, step)
        parts = build_parts(tree, patches, computer_folder(), cache=cache, work=work, step=step)
        return cls(parts.link(work, confinement=confinement))

    def run(
        self,
        program: Program,
        checks: Checks = Checks.EACH,
        *,
        shows: bool = False,
        ram: int | None = None,
        counter: Counts | None = None,
        goes_on: bool = False,
    ) -> Ran:
        """Run a program. Raises ReamError if it reaches what the computer lacks.

        shows: VMAs and rss are reported after each step, and all contents are read at the end. ram,
        counter, goes_on: as Computer.report() has them.
        """
        program = numbered(program)
        calls = (*resolve(program), *(last_calls(program) if shows else ()))
        wanted = lines(calls, self._definitions, shows=shows)
        try:
            code, said = self.computer.report(
                wanted, checks=checks, ram=ram, counter=counter, goes_on=goes_on
            )
        except StillRunning:
            return Ran(((0, HANGS),))
        return replace(self._ran(code, said), said=tuple(said))

    def run_covered(
        self, program: Program, blocks: Path, checks: Checks, *, only_measured: bool = False
    ) -> tuple[Ran, tuple[int, ...]]:
        """Run a program, and say which of the blocks that a file lists it meets; as run().

        What is met first comes first.
        """
        wanted = lines(resolve(numbered(program)), self._definitions)
        try:
            code, said = self.computer.report(
                wanted, checks=checks, blocks=blocks, only_measured=only_measured
            )
        except StillRunning:
            return Ran(((0, HANGS),)), ()
        met = said.pop()["met"] if said and "met" in said[-1] else ()
        return self._ran(code, said), tuple(met)

    def _ran(self, code: int, said: Sequence[Mapping[str, Any]]) -> Ran:
        alarms = [(one["line"], one["alarm"]) for one in said if "alarm" in one]
        alarms += [(one["line"], text) for one in said if (text := self._warning(one))]
        alarms.sort(key=itemgetter(0))
        steps = [one for one in said if "returned" in one and one["step"] != "spaces"]
        returned = {one["line"]: one["returned"] for one in steps}
        last_step = max(returned, default=0)  # behind it, processes exit
        parts = {
            one["line"]: one["parts"]
            for one in reversed(said)
            if "parts" in one and one["line"] <= last_step
        }
        last = said[-1] if said else {}
        if "refused" in last:
            raise ReamError(f"the computer refuses a line: {last['refused']}: {last['why']}")
        if "fault" in last:
            if code == EXIT_UNDEFINED_SYMBOL:
                raise ReamError(f"{last['symbol']}() is not hosted: {self._where(last)}")
            return Ran((*alarms, (int(last["row"] or 0), self._crash(last))), returned)
        if code not in {0, EXIT_NOT_VERIFIED}:
            words = str(last.get("end") or f"it ended with {code}")
            return Ran((*alarms, (int(last.get("line", 0)), words)), returned)
        states = [str(one["state"]) for one in said if "state" in one]
        times = [
            Timed(one["timed_ns"], one["cpu_ns"], one["nr_timed"])
            for one in said
            if "timed_ns" in one
        ]
        digest = str(last.get("digest", ""))
        ends = digest, "".join(states[-1:]), times[-1] if times else None, parts
        return Ran(tuple(alarms), returned, *ends)

    def _crash(self, last: Mapping[str, Any]) -> str:
        if last["file"]:
            return f"BUG at {last['file']}:{last['line']}, {self._where(last)}"
        if last["fault"] == SIGALRM:
            return f"{HANGS}: {self._where(last)}"
        return f"crash at address {last['address']:#x}, {self._where(last)}"

    def _warning(self, one: Mapping[str, Any]) -> str | None:
        """What the kernel warns of; None if this is no warning, or one that is left out."""
        if "warning" not in one:
            return None
        file, _, number = str(one["warning"]).rpartition(":")
        source = (self.computer.tree / file).read_text(encoding="utf-8").splitlines()
        text = source[int(number) - 1].strip()
        if NO_ALARM.search(text):
            return None
        return f"the kernel warns at {file}:{number}: {text}"

    def _where(self, last: Mapping[str, Any]) -> str:
        places = (last["registers"]["rip"], *last["calls"])
        names = [name for place in places if (name := self._function_at(place))]
        return "in " + " < ".join(f"{name}()" for name in names[:MOST_CALLS])

    def _function_at(self, address: int) -> str:
        addresses, names = self._functions
        at = bisect.bisect_right(addresses, address) - 1
        return names[at] if at >= 0 else ""


class Watched:
    """A computer that says which of some blocks each program meets.

    blocks: addresses by number. only_measured: of each program, what its measured step meets.
    """

    def __init__(self, rig: Rig, blocks: Mapping[int, int], *, only_measured: bool = False) -> None:
        self.rig = rig
        self._its = {"only_measured": only_measured}
        self._numbers = sorted(blocks, key=blocks.__getitem__)
        text = "".join(f"{blocks[number]:x}\n" for number in self._numbers)
        name = hashlib.sha256(text.encode()).hexdigest()[:16]  # a computer may be watched twice
        self._file = rig.computer.program.parent / f"blocks-{name}.txt"
        self._file.write_text(text, encoding="ascii")

    def run(self, program: Program, checks: Checks) -> tuple[Ran, frozenset[int]]:
        """What a program does, and the numbers of the blocks that it meets; as Rig.run()."""
        ran, met = self.in_order(program, checks)
        return ran, frozenset(met)

    def in_order(self, program: Program, checks: Checks) -> tuple[Ran, tuple[int, ...]]:
        """What a program does, and the blocks that it meets, first ones first; as Rig.run()."""
        if not self._numbers:
            return self.rig.run(program, checks), ()
        ran, met = self.rig.run_covered(program, self._file, checks, **self._its)
        return ran, tuple(self._numbers[at] for at in met)


def shortest(
    rig: Rig, program: Program, ran: Ran, *, within_s: float, base: Rig | None = None
) -> Program:
    """The shortest program found in which the same is wrong as when a program ran.

    base: a computer in which it must not be, whatever else is wrong in it. What comes behind the
    step that it was found after is left out first. If it is found, too, when memory is checked only
    at the end, that is done: it takes a tenth of the time.
    """
    kind, last = ran.kind, ran.alarms[0][0] if ran.alarms else 0
    if last:
        steps = tuple(step for step in numbered(program) if step.line <= last)
        program = Program(steps)
    goes_on = base is not None
    at_end = rig.run(program, Checks.LAST, goes_on=goes_on)
    checks = Checks.LAST if kind in at_end.kinds else Checks.EACH

    def fails(shorter: Program) -> bool:
        try:
            if kind not in rig.run(shorter, checks, goes_on=goes_on).kinds:
                return False
            return base is None or kind not in base.run(shorter, checks, goes_on=True).kinds
        except ReamError:  # such as a node that is smaller than nodes may be
            return False

    return parse(str(shrink(program, fails, within_s=within_s)))


def _kind(text: str) -> str:
    words = HANGS.split() if text.startswith(HANGS) else text.split()
    return " ".join(word for word in words if not any(map(str.isdigit, word)))


def difference_words(differs: tuple[int, str], base: Ran, series: Ran, program: Program) -> str:
    """What difference() found, in words: where, and both results of a call."""
    line, part = differs
    where = place(line, program)
    if part != "returned":
        return f"{where}, {part} is other than without it"
    both = (one.returned.get(line, "nothing") for one in (series, base))
    return "{}, {} is returned, and {} without it".format(where, *both)


def difference(base: Ran, series: Ran) -> tuple[int, str] | None:
    """The first line after which two runs of a program differ, and in what; None if they agree."""
    for line in sorted(series.parts.keys() & base.parts.keys()):
        if base.returned.get(line) != series.returned.get(line):
            return line, "returned"
        theirs = base.parts[line]
        for part, number in series.parts[line].items():
            if theirs[part] != number:
                return line, part
    return None


def numbered(program: Program) -> Program:
    """The program with each step on a line of its own, counted from 1 where none has a number."""
    if any(step.line for step in program):
        return program
    steps = (replace(step, line=at) for at, step in enumerate(program, 1))
    return Program(tuple(steps))


def _functions(program: Path) -> tuple[list[int], list[str]]:
    said = run(Command(("nm", "-n", str(program)), program.parent, NM_S))
    found = [line.split() for line in said.splitlines()]
    code = [(int(words[0], 16), words[2]) for words in found if words[1:2] and words[1] in "tT"]
    return [at for at, _ in code], [name for _, name in code]
