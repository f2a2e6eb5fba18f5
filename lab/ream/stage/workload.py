# SPDX-License-Identifier: GPL-2.0-only
"""Programs of workloads/: compiled for this machine or a guest, and run on this machine."""

import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from ream.command import Command, kill_group, last_words, require, run
from ream.errors import CannotRunHere, ReamError, VerificationFailed
from ream.paths import WORKLOADS

FORK_FOLIOS = "fork_folios"
MOVE_FOLIOS = "move_folios"
MIGRATE_SOAK = "migrate_soak"
FRAGMENT = "fragment"
HOG = "hog"
HOLD_FOLIOS = "hold_folios"
COMPACT_THP = "compact_thp"

SOURCES: Mapping[str, tuple[str, ...]] = {
    FORK_FOLIOS: ("fork_folios.c", "folios.c", "program.c"),
    MOVE_FOLIOS: ("move_folios.c", "folios.c", "nodes.c", "counters.c", "cpu_time.c", "program.c"),
    MIGRATE_SOAK: ("migrate_soak.c", "soak_worker.c", "soak_kernel.c", "nodes.c", "program.c"),
    FRAGMENT: ("fragment.c", "counters.c", "holes.c", "nodes.c", "program.c"),
    HOG: ("hog.c", "program.c"),
    HOLD_FOLIOS: ("hold_folios.c", "nodes.c", "program.c"),
    COMPACT_THP: (
        *("compact_thp.c", "faults.c", "busy.c", "holes.c"),
        *("pressure.c", "counters.c", "cpu_times.c", "program.c"),
    ),
}
"""What each program is compiled of."""

COMPILER = ("gcc", "-std=gnu11", "-O2", "-Wall", "-Wextra", "-Wshadow", "-Werror", "-static")
COMPILE_DEADLINE_S = 120.0

EXIT_CANNOT_RUN = 3
EXIT_NOT_VERIFIED = 5
"""The workloads' own exit codes; workloads/program.h."""

END_MARK = '{"end":{"ok":true'
"""Begins the line that a workload prints last, if it came to its end."""


def build_workload(name: str, work: Path) -> Path:
    """Compile a program of SOURCES into work; return it. It needs no libraries.

    Raises CannotRunHere without gcc, ReamError with the compiler's first error.
    """
    out = work / name
    sources = (str(WORKLOADS / source) for source in SOURCES[name])
    run(Command((*COMPILER, *sources, "-o", str(out)), work, COMPILE_DEADLINE_S))
    return out


def run_workload(argv: Sequence[str], work: Path, deadline_s: float) -> str:
    """Run a workload to its end; return what it printed, which ends with its `end`.

    Raises by its exit code, with its last words; ReamError if it outlives its deadline. It dies
    with us even if we are killed, and so do its children: their parent's end is theirs.
    """
    require("setpriv")
    with subprocess.Popen(
        ("setpriv", "--pdeathsig", "KILL", *argv),
        cwd=work,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
    ) as process:
        try:
            out, said = process.communicate(timeout=deadline_s)
        except BaseException as cause:  # Ctrl-C too: the new session shields it from that
            kill_group(process)
            process.wait()  # which Popen leaves out after a KeyboardInterrupt
            if isinstance(cause, subprocess.TimeoutExpired):
                raise ReamError(f"{argv[0]}: still running after {deadline_s:g} s") from cause
            raise
    if process.returncode or not any(line.startswith(END_MARK) for line in out.splitlines()[-1:]):
        raise _failure(Path(argv[0]).name, process.returncode, last_words(said))
    return out


def _failure(name: str, code: int, words: str) -> ReamError:
    for program in SOURCES:
        words = words.removeprefix(f"{program}: ")
    if code == EXIT_NOT_VERIFIED:
        return VerificationFailed(words)
    if code == EXIT_CANNOT_RUN:
        return CannotRunHere(words)
    how = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with {code}"
    return ReamError(f"{name} {how}: {words}")
