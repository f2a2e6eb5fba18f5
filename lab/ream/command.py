# SPDX-License-Identifier: GPL-2.0-only
"""A command is a value: planned by pure functions, performed here."""

import logging
import math
import os
import select
import shlex
import shutil
import signal
import subprocess
import tempfile
import time
from collections import deque
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from ream.errors import CannotRunHere, ReamError, StillRunning

log = logging.getLogger(__name__)

LAST_WORDS = 12
"""Lines of a failed program's output worth showing: a compiler's first error fits."""


@dataclass(frozen=True)
class Command:
    argv: tuple[str, ...]
    cwd: Path
    deadline_s: float
    env: Mapping[str, str] = field(default_factory=dict)
    pass_fds: tuple[int, ...] = ()
    """Descriptors of ours that it has, too."""

    def __str__(self) -> str:
        """A line to paste into a shell."""
        words = [f"{name}={shlex.quote(value)}" for name, value in sorted(self.env.items())]
        return f"(cd {shlex.quote(str(self.cwd))} && {' '.join([*words, shlex.join(self.argv)])})"


def perform(plan: Iterable[Command]) -> None:
    """Run every command of a plan, in order."""
    for command in plan:
        run(command)


def require(program: str) -> None:
    """Raise CannotRunHere if a program we drive is not installed."""
    if shutil.which(program) is None:
        raise CannotRunHere(f"{program}: not installed; `make setup` installs what ream drives")


@contextmanager
def spawn(
    command: Command,
    *,
    stdout: int | IO[Any] = subprocess.PIPE,
    stderr: int | IO[Any] = subprocess.PIPE,
    tied: bool = False,
) -> Iterator["subprocess.Popen[bytes]"]:
    """Run one program for as long as the `with` block, and never longer.

    Its standard input is empty, and its output is unbuffered pipes. If the block is left by an
    exception, its children are killed as well, since killing make alone leaves every cc1.
    stdout, stderr: files to use if the pipe is not read meanwhile. tied: the kernel kills it when
    this process is killed. Raises CannotRunHere if it is not installed.
    """
    log.debug("+ %s", command)
    for program in (*(("setpriv",) if tied else ()), command.argv[0]):
        require(program)
    with subprocess.Popen(
        (*(_tied_to(os.getpid()) if tied else ()), *command.argv),
        cwd=command.cwd,
        env={**os.environ, "LC_ALL": "C", **command.env},
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=stderr,
        bufsize=0,
        start_new_session=True,  # Ctrl-C is ours: it ends the child only through us
        pass_fds=command.pass_fds,
    ) as process:
        try:
            yield process
        except BaseException:
            _kill_group(process)
            process.wait()  # which Popen leaves out after a KeyboardInterrupt
            raise
        if process.poll() is None:
            _kill_group(process)


def _tied_to(pid: int) -> tuple[str, ...]:
    """Words before a program that is to end with us.

    The kernel sends the signal only for a death that comes after it was asked for. So the shell
    looks, after that, whether we are still there.
    """
    orphan = '[ "$PPID" = "$0" ] && exec "$@"'
    return "setpriv", "--pdeathsig=KILL", "sh", "-c", orphan, str(pid)


def _kill_group(process: "subprocess.Popen[bytes]") -> None:
    """Kill a program that leads a session of its own, and all of its children.

    Of Ctrl-C Popen gives it a moment to see it, too, and may have reaped it by then: there is
    nothing left to kill, and the cause is not to be hidden.
    """
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def finished(command: Command, *, tied: bool = False) -> tuple[int, str, str]:
    """Run one program to its end: its exit code, standard output and standard error.

    Raises CannotRunHere if it is not installed, ReamError if it outlives its deadline.
    """
    with still_running(command), spawn(command, tied=tied) as process:
        out, err = process.communicate(timeout=command.deadline_s)
    return process.returncode, out.decode(errors="replace"), err.decode(errors="replace")


@contextmanager
def still_running(command: Command) -> Iterator[None]:
    """Turn a deadline that has passed into a ReamError with the command."""
    try:
        yield
    except (TimeoutError, subprocess.TimeoutExpired) as cause:
        raise StillRunning(f"{command}: still running after {command.deadline_s:g} s") from cause


def run(command: Command) -> str:
    """Run one program to its end; return its standard output.

    Raises what `finished` raises, and ReamError with its last words if it fails.
    """
    code, out, err = finished(command)
    if code != 0:
        raise ReamError(f"{command}: exit {code}: {last_words(err or out)}")
    return out


def stream(command: Command) -> Generator[str, None, None]:
    """Run one program; yield each line of its standard output as it comes.

    Raises as `run` does. Close it (contextlib.closing) if it may not be read to its end: the
    program and its children go with it, and leave files half written.
    """
    last: deque[str] = deque(maxlen=LAST_WORDS)
    ends_at = time.monotonic() + command.deadline_s
    with (
        tempfile.TemporaryFile("w+", errors="replace") as said,
        still_running(command),
        spawn(command, stderr=said) as process,
    ):
        for line in lines(process, deadline_s=command.deadline_s):
            last.append(line.removesuffix("\n"))
            yield last[-1]
        process.wait(max(ends_at - time.monotonic(), 0))
        if process.returncode != 0:
            said.seek(0)
            words = last_words(said.read() or "\n".join(last))
            raise ReamError(f"{command}: exit {process.returncode}: {words}")


def lines(
    process: "subprocess.Popen[bytes]",
    *,
    deadline_s: float = math.inf,
    silence_s: float = math.inf,
) -> Iterator[str]:
    """Each line of a program's standard output; the last may lack its end.

    Raises TimeoutError if there is no end of it after deadline_s, or nothing for silence_s.
    """
    assert process.stdout is not None
    descriptor = process.stdout.fileno()
    partial = b""
    output = select.poll()  # for which no descriptor is too large
    output.register(descriptor, select.POLLIN)
    heard_at = time.monotonic()
    ends_at = heard_at + deadline_s
    while True:
        # Asked first: a program that prints without pause is always readable.
        left_s = min(ends_at, heard_at + silence_s) - time.monotonic()
        if left_s <= 0 or not output.poll(left_s * 1000):
            raise TimeoutError
        chunk = os.read(descriptor, 65536)
        heard_at = time.monotonic()
        *whole, partial = (partial + chunk).split(b"\n")
        yield from (line.decode(errors="replace") + "\n" for line in whole)
        if not chunk:
            yield from [partial.decode(errors="replace")] if partial else []
            return


def last_words(text: str) -> str:
    """What a failed program said: from its first error on if it names one, else its last lines."""
    lines = text.strip().splitlines() or ["it said nothing"]
    for number, line in enumerate(lines):
        if "error:" in line:
            return "\n".join(lines[number : number + LAST_WORDS])
    return "\n".join(lines[-LAST_WORDS:])
