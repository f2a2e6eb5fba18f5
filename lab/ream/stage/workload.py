# SPDX-License-Identifier: GPL-2.0-only
"""Programs in user space: compiled for this machine or a guest, and run on this machine."""

import signal
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from ream.command import Command, finished, last_words, run
from ream.errors import CannotRunHere, ReamError, VerificationFailed
from ream.kernel.arch import Arch
from ream.paths import MARKS, WORKLOADS


@dataclass(frozen=True)
class Workload:
    """A program, and what it is compiled of."""

    name: str
    sources: tuple[Path, ...]

    def __str__(self) -> str:
        return self.name

    @classmethod
    def of(cls, folder: Path, *stems: str) -> Self:
        """Make a workload of files in an experiment's workloads/ or the project's own."""
        own = (folder / "workloads" / f"{stem}.c" for stem in stems)
        found = (path if path.is_file() else WORKLOADS / path.name for path in own)
        return cls(stems[0], tuple(found))


FLAGS = ("-std=gnu11", "-O2", "-Wall", "-Wextra", "-Wshadow", "-Werror", "-static")
HEADERS = (f"-I{WORKLOADS}", f"-I{MARKS.parent}")
"""Where a program finds the headers that it shares."""
COMPILE_DEADLINE_S = 120.0

EXIT_CANNOT_RUN = 3
EXIT_NOT_VERIFIED = 5
"""The workloads' own exit codes; workloads/program.h."""

END_MARK = '{"end":{"ok":true'
"""Begins the line that a workload prints last, if it came to its end."""


def compile_command(out: Path, *words: str, work: Path, arch: Arch | None) -> Command:
    """The command that compiles a static program for a guest, or for this machine.

    words: its sources and more options. arch: the guest's; None: this machine's.
    """
    gcc = "gcc" if arch is None else arch.tool("gcc")
    return Command((gcc, *FLAGS, *words, "-o", str(out)), work, COMPILE_DEADLINE_S)


def build_workload(program: Workload, work: Path, arch: Arch | None = None) -> Path:
    """Compile a program into work; return it. It needs no libraries.

    arch: as in compile_command().

    Raises CannotRunHere without gcc, ReamError with the compiler's first error.
    """
    out = work / program.name
    run(compile_command(out, *HEADERS, *map(str, program.sources), work=work, arch=arch))
    return out


def run_workload(argv: Sequence[str], work: Path, deadline_s: float) -> str:
    """Run a workload to its end; return what it printed, which ends with its `end`.

    Raises by its exit code, with its last words; ReamError if it outlives its deadline. It dies
    with us even if we are killed, and so do its children: their parent's end is theirs.
    """
    command = Command(tuple(argv), work, deadline_s)
    code, out, said = finished(command, tied=True)
    return heard(Path(argv[0]).name, code, out, said)


def heard(name: str, code: int, out: str, said: str) -> str:
    """What a workload printed, wherever it ran; said: on standard error.

    Raises by its exit code, with its last words, unless it came to its end.
    """
    if code or not any(line.startswith(END_MARK) for line in out.splitlines()[-1:]):
        raise _failure(name, code, last_words(said))
    return out


def _failure(name: str, code: int, words: str) -> ReamError:
    words = words.removeprefix(f"{name}: ")
    if code == EXIT_NOT_VERIFIED:
        return VerificationFailed(words)
    if code == EXIT_CANNOT_RUN:
        return CannotRunHere(words)
    how = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with {code}"
    return ReamError(f"{name} {how}: {words}")
