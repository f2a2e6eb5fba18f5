# SPDX-License-Identifier: GPL-2.0-only
"""Runs that are ended in the middle, by whatever stage."""

import subprocess
import time
from collections.abc import Callable
from pathlib import Path

ROUND = '"whole": true'
PATIENCE_S = 1800
"""A kernel may have to be built first."""

Started = Callable[..., "subprocess.Popen[bytes]"]


def wait_for_rounds(runs: Path, number: int, process: "subprocess.Popen[bytes]") -> Path:
    """The unfinished record, as soon as it holds so many rounds: of guests boots, live visits."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline and process.poll() is None:
        for journal in runs.glob(".*.partial/journal.jsonl"):
            if journal.read_text().count(ROUND) >= number:
                return journal.parent
        time.sleep(0.005)
    raise AssertionError("it ended, or had no such round in time")


def interrupt(start: Started, runs: Path, words: tuple[str, ...], *, rounds: int, by: int) -> Path:
    """Begin a run and end it by a signal; its unfinished record."""
    process = start(*words)
    partial = wait_for_rounds(runs, rounds, process)
    process.send_signal(by)
    process.wait(timeout=60)
    return partial
