# SPDX-License-Identifier: GPL-2.0-only
"""Times a program's measured step on the running kernel, in folios of the size that it declares."""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from ream.command import Command, finished, last_words, run
from ream.errors import CannotRunHere, VerificationFailed
from ream.experiment import RUNNING, Row
from ream.kernel.arch import X86_64
from ream.measure.sample import Sample
from ream.program.elsewhere import running_kernel
from ream.program.kinds import PAGE_BYTES
from ream.program.reproducer import reproducer, unperformed
from ream.program.rules import nr_nodes
from ream.program.scene import resolve
from ream.program.step import Program
from ream.settings import WAIT_S, Door, Say, Setting, sole_door
from ream.stage.live import FOLIO_KIB, offered_kib, plan_settings, why_not
from ream.stage.workload import compile_command

DEADLINE_S = 60.0
ATTEMPTS = 8
"""Memory of this machine may be fragmented: so often a program may miss its folios."""
COMPACT = Path("/proc/sys/vm/compact_memory")
DECLARED = frozenset({"memory", "cpus", "mthp"})
"""Steps that describe the computer, which a machine has already."""


@dataclass(frozen=True)
class LiveProgram:
    """A program of system calls, compiled twice: `looking` says of folios before it measures.

    door, settings: of the running kernel, while it runs. folio_kib: what its memory is in.
    """

    name: str
    timed: Path
    looking: Path
    folio_kib: int
    settings: tuple[Setting, ...]
    door: Door

    @classmethod
    def build(cls, program: Program, name: str, work: Path, door: Door) -> Self:
        """Compile a program that can be timed here; raises CannotRunHere without a compiler."""
        built = []
        for suffix, folios in (("timed", False), ("looking", True)):
            source = work / f"{name}-{suffix}.c"
            source.write_text(reproducer(program, folios=folios))
            run(compile_command(source.with_suffix(""), str(source), work=work, arch=None))
            built.append(source.with_suffix(""))
        kib = wanted_kib(program)
        offered = offered_kib() if kib != FOLIO_KIB[0] else ()
        return cls(name, built[0], built[1], kib, plan_settings(kib, offered), door)

    def sample(self, row: Row, launch: int, number: int) -> Sample:
        """Run it once and time its measured step, with entering and leaving the kernel.

        Raises VerificationFailed if a step fails, or memory is not what was written.
        """
        (timed,) = (one for one in self._said(self.timed) if "timed_ns" in one)
        return Sample(
            row=row.name,
            launch=launch,
            round=number,
            role="live",
            subject=RUNNING,
            threads=1,
            time_ns=max(1, int(timed["timed_ns"])),
            nr_bytes=row.written_bytes,
            verified=True,
        )

    def check(self) -> None:
        """See that its memory is in folios of the size that it declares.

        That is so before the measured step, or after it if there is none before. Only root sees
        that. Others get base pages, for which the program advises memory. Between attempts the
        kernel is asked to compact memory. Raises CannotRunHere after ATTEMPTS of them.
        """
        if os.geteuid():
            return
        found: dict[int, int] = {}
        for _ in range(ATTEMPTS):
            looks = [one["folios"] for one in self._said(self.looking) if "folios" in one]
            look = next(filter(any, looks), ())
            found = {FOLIO_KIB[0] << order: nr for order, nr in enumerate(look) if nr}
            if set(found) == {self.folio_kib}:
                return
            with suppress(OSError):  # a kernel without compaction
                COMPACT.write_text("1")
        words = ", ".join(f"{nr} in {kib} KiB" for kib, nr in found.items())
        raise CannotRunHere(
            f"{self.name}: pages should be in folios of {self.folio_kib} KiB; in {ATTEMPTS}"
            f" attempts they were not, the last time {words}: memory is fragmented here"
        )

    def _said(self, program: Path) -> list[dict[str, Any]]:
        with self.door.applied(self.settings):
            command = Command((str(program),), program.parent, DEADLINE_S)
            code, out, wrong = finished(command, tied=True)
        said = [json.loads(line) for line in out.splitlines()]
        timed = [one for one in said if "timed_ns" in one]
        if code or not timed or timed[0]["returned"] < 0:
            words = f"{timed[0]}" if timed else last_words(wrong or out)
            raise VerificationFailed(f"{self.name}: the program ended with {code}: {words}")
        return said


@dataclass(frozen=True)
class Beside:
    """What the running kernel performs beside hosted ones, by row."""

    programs: Mapping[str, LiveProgram]
    say: Say

    def ready(self, row: str) -> LiveProgram | None:
        """The row's program, which was checked; None if the running kernel does not perform it.

        Where memory is too fragmented, that is told.
        """
        program = self.programs.get(row)
        try:
            if program is not None:
                program.check()
        except CannotRunHere as cause:
            self.say(f"{cause}; this launch is without the running kernel")
            return None
        return program


NOTHING_LIVE = Beside({}, print)


@contextmanager
def beside_live(programs: Mapping[str, Program], work: Path, say: Say) -> Iterator[Beside]:
    """Compile what can be timed on the running kernel; the rest is told, with the reason.

    programs: by row. It holds the door to the kernel's settings until the block ends. Raises
    CannotRunHere if none of them can, or if another run changes settings.
    """
    reasons = {name: why_not_live(program) for name, program in programs.items()}
    if all(reasons.values()):
        raise CannotRunHere(next(f"{name}: {why}" for name, why in reasons.items()))
    for name, why in reasons.items():
        if why:
            say(f"{name}: not on the running kernel: {why}")
    say("compiling programs for the running kernel")
    with sole_door(say=say, wait_s=WAIT_S) as door:
        yield Beside(
            {
                name: LiveProgram.build(program, name, work, door)
                for name, program in programs.items()
                if not reasons[name]
            },
            say,
        )


def wanted_kib(program: Program) -> int:
    """The size of the folios that a program declares, in KiB; base pages if it declares none.

    Raises CannotRunHere if it declares several.
    """
    found = [call.arguments["orders"] for call in resolve(program) if call.name == "mthp"]
    orders = [order for order in range(32) if found and found[-1] >> order & 1]
    if len(orders) > 1:
        raise CannotRunHere(f"folios of {len(orders)} sizes: the running kernel is given one")
    return FOLIO_KIB[0] << orders[0] if orders else FOLIO_KIB[0]


def why_not_live(program: Program) -> str | None:
    """Why a program cannot be timed on the running kernel; None if it can."""
    if os.uname().machine != X86_64.name:
        return "the program is of an x86-64 computer"
    here = running_kernel()
    if nr_nodes(program) > here.nr_nodes:
        return f"it declares {nr_nodes(program)} nodes, and this machine has {here.nr_nodes}"
    if skipped := unperformed(program) - DECLARED:
        return f"user space cannot perform {', '.join(sorted(skipped))}"
    try:
        return why_not(wanted_kib(program), nr_bytes(program))
    except CannotRunHere as cause:
        return str(cause)


def nr_bytes(program: Program) -> int:
    """How much memory its mappings have together."""
    calls = (call for call in resolve(program) if call.name == "mmap")
    return sum(call.arguments["nr"] * PAGE_BYTES for call in calls)
