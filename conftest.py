# SPDX-License-Identifier: GPL-2.0-only
"""What all tests share, the engine's and the experiments': plugins, markers, and the command.

The command is called in this process, or runs as users start it.
"""

import gc
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from in_process import Said, answer
from ream.paths import CHECKOUT

pytest_plugins = [f"fixtures.{name}" for name in ("guests", "hosted", "made_up", "settings")]
"""Modules of tests/fixtures: none knows an experiment."""

pytest.register_assert_rewrite("fake_boots", "promela")
"""Modules of tests that assert for others, and show what they compared."""

MARKED_BY_FOLDER = ("native", "vm", "live")
SLOW = frozenset((CHECKOUT / "tests" / "slow.txt").read_text(encoding="utf-8").split())
"""Test functions that `make check` leaves out; tests/slow.py says how they were found."""

# Thousands of tests are objects that stay: to look for cycles among them takes seconds.
gc.set_threshold(100_000, 50, 50)

# A shell starts what it does not wait for with SIGINT ignored, and our children inherit that:
# tests that send one would wait for ever.
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A test in a folder `native`, `vm` or `live` has its name as a marker; those of SLOW, slow."""
    for item in items:
        folder = item.path.parent.name
        if folder in MARKED_BY_FOLDER:
            item.add_marker(folder)
        if item.nodeid.partition("[")[0].partition("@")[0] in SLOW:
            item.add_marker("slow")


WAITS = re.compile(r"ream: waiting for another run that makes ").match

Ream = Callable[..., Said]

MAIN = "from ream.cli import main; raise SystemExit(main())"


def _argv(words: Iterable[str], changes: str = "") -> list[str]:
    return [sys.executable, "-P", *(("-c", changes + MAIN) if changes else ("-m", "ream")), *words]


def _environment(home: Path, more: Mapping[str, str]) -> dict[str, str]:
    return {
        **os.environ,
        "PYTHONPATH": str(CHECKOUT / "lab"),
        "XDG_DATA_HOME": str(home / "data"),
        "COLUMNS": "100",
        "NO_COLOR": "1",
        **more,
    }


def _without_waiting(said: Said) -> Said:
    """Tests that run side by side share a cache: that one waits for another is not its own word."""
    lines = said.err.splitlines(keepends=True)
    return replace(said, err="".join(line for line in lines if not WAITS(line)))


@pytest.fixture
def ream(tmp_path: Path) -> Ream:
    """Call ream in this process; records go to a directory of the test's, kernels to the cache."""

    def run(*words: str, fed: str = "", **environment: str) -> Said:
        variables = _environment(tmp_path, environment)
        return _without_waiting(answer(words, here=tmp_path, environment=variables, fed=fed))

    return run


@pytest.fixture
def ream_process(tmp_path: Path) -> Ream:
    """Run ream as users start it, to its end: for what only a process of its own shows.

    changes: Python that is run before it, to put something else in the place of a part.
    """

    def run(
        *words: str, fed: str = "", deadline_s: float = 600, changes: str = "", **environment: str
    ) -> Said:
        process = subprocess.run(
            _argv(words, changes),
            env=_environment(tmp_path, environment),
            cwd=tmp_path,
            input=fed,
            capture_output=True,
            text=True,
            timeout=deadline_s,
            check=False,
        )
        return _without_waiting(Said(process.returncode, process.stdout, process.stderr))

    return run


@pytest.fixture
def ream_started(tmp_path: Path) -> Iterator[Callable[..., "subprocess.Popen[bytes]"]]:
    """Start ream and go on; whatever the test leaves of it is killed."""
    started = []

    def start(*words: str) -> "subprocess.Popen[bytes]":
        process = subprocess.Popen(
            _argv(words),
            env=_environment(tmp_path, {}),
            cwd=tmp_path,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()
