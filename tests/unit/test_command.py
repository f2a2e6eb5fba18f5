# SPDX-License-Identifier: GPL-2.0-only
"""Ctrl-C while a program runs is Ctrl-C, also where the program ends in the same moment."""

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from ream.command import Command, lines, run, spawn, stream
from ream.errors import ReamError
from ream.paths import CHECKOUT


@pytest.mark.parametrize("way", [run, lambda command: list(stream(command))], ids=["run", "stream"])
def test_ctrl_c_stays_ctrl_c_where_the_program_ends_by_itself(way, tmp_path: Path) -> None:
    # Popen waits a quarter of a second for it then: it is reaped before it can be killed.
    waits = "exec >&- 2>&-; while [ ! -e interrupted ]; do sleep 0.02; done"
    command = Command(("sh", "-c", waits), tmp_path, 60.0)

    def interrupt() -> None:
        time.sleep(0.3)
        os.kill(os.getpid(), signal.SIGINT)
        (tmp_path / "interrupted").touch()

    thread = threading.Thread(target=interrupt)
    thread.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            way(command)
    finally:
        thread.join()


def test_a_program_that_prints_without_pause_meets_its_deadline(tmp_path: Path) -> None:
    command = Command(("yes",), tmp_path, 0.5)
    with pytest.raises(ReamError, match=r"yes\): still running after 0\.5 s"):
        list(stream(command))


def test_a_programs_children_end_with_it(tmp_path: Path) -> None:
    command = Command(("sh", "-c", "sleep 60 & echo $! > child; wait"), tmp_path, 0.5)
    with pytest.raises(ReamError, match="still running"):
        run(command)
    assert gone(int((tmp_path / "child").read_text()))


def test_what_is_left_before_its_end_is_ended(tmp_path: Path) -> None:
    with spawn(Command(("sleep", "60"), tmp_path, 60.0)) as process:
        pass
    assert process.returncode == -signal.SIGKILL


def test_a_silent_program_is_told_from_a_slow_one(tmp_path: Path) -> None:
    slow = Command(
        ("sh", "-c", "for i in 1 2 3; do sleep 0.2; echo $i; done; printf 4"), tmp_path, 9.0
    )
    with spawn(slow) as process:
        assert list(lines(process, silence_s=5.0)) == ["1\n", "2\n", "3\n", "4"]
    with spawn(Command(("sleep", "60"), tmp_path, 60.0)) as process, pytest.raises(TimeoutError):
        list(lines(process, silence_s=0.2))


PARENT = """
import sys, time
from pathlib import Path
from ream.command import Command, spawn
started = "echo $$ > started; exec sleep 60"
with spawn(Command(("sh", "-c", started), Path(sys.argv[1]), 60.0), tied=True):
    print("spawned", flush=True)
    time.sleep(60)
"""


@pytest.mark.parametrize("late_s", [0, 1])
def test_a_program_that_is_tied_to_us_ends_with_us_or_never_starts(
    tmp_path: Path, late_s: int
) -> None:
    """late_s: how long after our death setpriv asks for the signal that is to come with it."""
    slow = tmp_path / "setpriv"
    slow.write_text(f'#!/bin/sh\nsleep {late_s}\nexec {shutil.which("setpriv")} "$@"\n')
    slow.chmod(0o755)
    path = f"{tmp_path}:{os.environ['PATH']}"
    with subprocess.Popen(
        (sys.executable, "-c", PARENT, str(tmp_path)),
        env={**os.environ, "PATH": path, "PYTHONPATH": str(CHECKOUT / "lab")},
        stdout=subprocess.PIPE,
    ) as parent:
        assert parent.stdout is not None
        parent.stdout.readline()
        if not late_s:
            wait_for((tmp_path / "started").is_file)
        parent.kill()
    time.sleep(late_s + 0.5)
    started = tmp_path / "started"
    assert not started.exists() if late_s else gone(int(started.read_text()))


def wait_for(happened: Callable[[], bool]) -> None:
    for _ in range(1000):
        if happened():
            return
        time.sleep(0.05)
    pytest.fail("it never happened")


def gone(pid: int) -> bool:
    """Whether a process ends within a moment; nobody may have reaped it yet."""
    for _ in range(1000):
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return True
        if state == "Z":
            return True
        time.sleep(0.05)
    return False
