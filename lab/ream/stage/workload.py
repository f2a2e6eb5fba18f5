# SPDX-License-Identifier: GPL-2.0-only
"""Compiles user space programs for this machine or a guest, and runs them on this machine."""

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
    """A program and its sources."""

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
"""Options for the folders of shared headers."""
COMPILE_DEADLINE_S = 120.0

EXIT_CANNOT_RUN = 3
EXIT_NOT_VERIFIED = 5
"""Exit codes of workloads, from workloads/program.h."""

END_MARK = '{"end":{"ok":true'
"""Start of the line that a workload prints last if it is complete."""


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
    """Run a workload to its end; return its output, which ends with its `end`.

    Raises an error by its exit code, with its last output; ReamError if it exceeds its deadline. It
    ends with this process even if that is killed, and so do its children.
    """
    command = Command(tuple(argv), work, deadline_s)
    code, out, said = finished(command, tied=True)
    return heard(Path(argv[0]).name, code, out, said)


def heard(name: str, code: int, out: str, said: str) -> str:
    """Return a workload's output, wherever it ran; said: its standard error.

    Raises an error by its exit code, with its last output, unless it is complete.
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
