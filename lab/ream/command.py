# SPDX-License-Identifier: GPL-2.0-only
"""A command is a value: planned by pure functions, performed here."""

import logging
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
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ream.errors import CannotRunHere, ReamError

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


def run(command: Command) -> str:
    """Run one program to its end; return its standard output.

    Raises CannotRunHere if it is not installed, ReamError with its last words if it fails
    or outlives its deadline. Its children go with it: killing make alone leaves every cc1.
    """
    log.debug("+ %s", command)
    require(command.argv[0])
    with subprocess.Popen(
        command.argv,
        cwd=command.cwd,
        env={**os.environ, "LC_ALL": "C", **command.env},
        stdin=subprocess.DEVNULL,
        text=True,
        errors="replace",
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        pass_fds=command.pass_fds,
    ) as process:
        try:
            out, err = process.communicate(timeout=command.deadline_s)
        except BaseException as cause:  # Ctrl-C too: the new session shields the child from it
            kill_group(process)
            if isinstance(cause, subprocess.TimeoutExpired):
                raise ReamError(
                    f"{command}: still running after {command.deadline_s:g} s"
                ) from cause
            raise
    if process.returncode != 0:
        raise ReamError(f"{command}: exit {process.returncode}: {last_words(err or out)}")
    return out


def kill_group(process: "subprocess.Popen[Any]") -> None:
    """Kill a program that leads a session of its own, and all of its children.

    Of Ctrl-C Popen gives it a moment to see it, too, and may have reaped it by then: there is
    nothing left to kill, and the cause is not to be hidden.
    """
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def stream(command: Command) -> Generator[str, None, None]:
    """Run one program; yield each line of its standard output as it comes.

    Raises as `run` does. Close it (contextlib.closing) if it may not be read to its end: the
    program and its children go with it, and leave files half written.
    """
    log.debug("+ %s", command)
    require(command.argv[0])
    with (
        tempfile.TemporaryFile("w+", errors="replace") as said,
        subprocess.Popen(
            command.argv,
            cwd=command.cwd,
            env={**os.environ, "LC_ALL": "C", **command.env},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=said,
            start_new_session=True,
        ) as process,
    ):
        assert process.stdout is not None
        last: deque[str] = deque(maxlen=LAST_WORDS)
        ends_at = time.monotonic() + command.deadline_s
        try:
            for line in _lines(process.stdout.fileno(), ends_at):
                last.append(line)
                yield line
            process.wait(max(ends_at - time.monotonic(), 0))
        except (TimeoutError, subprocess.TimeoutExpired) as cause:
            kill_group(process)
            raise ReamError(f"{command}: still running after {command.deadline_s:g} s") from cause
        except BaseException:  # Ctrl-C too: the new session shields the child from it
            kill_group(process)
            raise
        if process.returncode != 0:
            said.seek(0)
            words = last_words(said.read() or "\n".join(last))
            raise ReamError(f"{command}: exit {process.returncode}: {words}")


def _lines(descriptor: int, ends_at: float) -> Iterator[str]:
    partial = b""
    output = select.poll()  # for which no descriptor is too large
    output.register(descriptor, select.POLLIN)
    while True:
        left_s = ends_at - time.monotonic()  # asked first: a chatty program is always readable
        if left_s <= 0 or not output.poll(left_s * 1000):
            raise TimeoutError
        chunk = os.read(descriptor, 65536)
        *whole, partial = (partial + chunk).split(b"\n")
        yield from (line.decode(errors="replace") for line in whole)
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
