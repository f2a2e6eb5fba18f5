# SPDX-License-Identifier: GPL-2.0-only
"""Finds the records of runs that have not finished."""

import fcntl
import os
import re
import shlex
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ream.errors import BadUsage
from ream.record.journal import holds_a_round
from ream.record.packed import lines_of
from ream.record.record import (
    PARTIAL,
    PLAN,
    SAMPLES,
    elsewhere,
    is_ours,
    is_record,
    read_object,
    remove_if_dead,
    resume_line,
)

_RUN_ID = re.compile(r"\d{8}T\d{6}Z-(?P<experiment>[\w.-]+)-(?P<stage>[a-z]+)-[0-9a-f]{4}")


@dataclass(frozen=True)
class Interrupted:
    """A run that has not finished: it is still running, or it was interrupted."""

    run: str
    path: Path
    """The hidden directory of the unfinished record."""
    experiment: str
    stage: str
    command: str
    """The command line of the run; empty if it is unknown."""
    nr_samples: int
    """Number of samples on disk; those of an incomplete round are measured again."""
    running: bool
    """Whether a process is measuring for it."""

    @property
    def resume(self) -> str:
        """The command that resumes the run."""
        return resume_line(self.path)

    @property
    def discard(self) -> str:
        """The command that removes the unfinished record."""
        return self.resume.replace(" --resume ", " --discard ", 1)

    @property
    def history(self) -> str:
        """The command that lists the run, along with all others of its directory."""
        return shlex.join(["ream", "history", *elsewhere(self.path.parent, "--runs")])


def interrupted(runs: Path) -> tuple[Interrupted, ...]:
    """Runs that are running and those that can be resumed, the oldest first.

    Nothing is changed, and records that vanish meanwhile are left out.
    """
    return tuple(_look(runs))


def _look(runs: Path) -> Iterator[Interrupted]:
    for path in sorted(runs.glob(f".[0-9]*{PARTIAL}")):
        name = run_of(path)
        match = _RUN_ID.fullmatch(name)
        if match is None or not is_ours(path):
            continue
        running = _is_running(path)
        if running or holds_a_round(path):
            yield Interrupted(
                run=name,
                path=path,
                experiment=match["experiment"],
                stage=match["stage"],
                command=_command(path),
                nr_samples=_nr_lines(path / SAMPLES),
                running=running,
            )


def run_of(partial: Path) -> str:
    """The run id of an unfinished record."""
    return partial.name[1 : -len(PARTIAL)]


def find_partial(asked: str, runs: Path) -> Path:
    """The unfinished record of a run id, of the beginning or the end of one, or of "last".

    Raises BadUsage, with the names of those that exist, if there is none or more than one.
    """
    there = interrupted(runs)
    with suppress(OSError):  # a name too long for a file
        if is_record(runs / asked):
            raise BadUsage(f"{asked} is finished; `ream report {asked}` shows it")
    if asked == "last":
        found = [one for one in there if not one.running][-1:] or there[-1:]
    else:
        known = [one for one in there if asked in (one.run, str(one.path), one.path.name)]
        found = known or [
            one
            for one in there
            if asked and (one.run.startswith(asked) or one.run.endswith(f"-{asked}"))
        ]
    if len(found) == 1:
        return found[0].path
    names = ", ".join(one.run for one in found or there) or "none"
    what = f"{len(found)} interrupted runs are" if found else "no interrupted run is"
    raise BadUsage(f"{what} called {asked!r} in {runs}; there: {names}")


def discard(asked: str, runs: Path) -> str:
    """Remove an unfinished record and return its run id; raises BadUsage if its run is running."""
    path = find_partial(asked, runs)
    if not remove_if_dead(path):
        raise BadUsage(f"{run_of(path)}: another process is measuring for it; wait for its end")
    return run_of(path)


def read_plan(partial: Path) -> Mapping[str, Any]:
    """The contents of an unfinished record's plan.json; raises BadUsage if it cannot be read."""
    way_out = f"the run cannot go on; `ream run --discard {run_of(partial)}` removes it"
    return read_object(partial / PLAN, way_out=way_out)


def _is_running(partial: Path) -> bool:
    with suppress(FileNotFoundError):
        own = os.open(partial, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(own, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(own)
    return False


def _command(partial: Path) -> str:
    with suppress(BadUsage):
        command = read_plan(partial).get("command")
        return command if isinstance(command, str) else ""
    return ""


def _nr_lines(path: Path) -> int:
    with suppress(OSError):
        return sum(line.endswith(b"\n") for line in lines_of(path))
    return 0
