# SPDX-License-Identifier: GPL-2.0-only
"""Spin tries every order of events of a model, and what it says is read."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

DEADLINE_S = 120

SAFETY = ("-DSAFETY",)
CYCLES = ("-DNP",)  # what pan -l, a search for cycles without progress, is compiled with

# With no error found, pan tells from these words only whether it has been everywhere.
INCOMPLETE = re.compile(r"Search not completed|max search depth too small|out of memory")


def need(program: str) -> None:
    if shutil.which(program) is None:
        reason = f"{program}: not installed; `make setup-test` as root installs it"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)


def run(*words: str, cwd: Path) -> str:
    need(words[0])
    done = subprocess.run(
        words, cwd=cwd, capture_output=True, text=True, timeout=DEADLINE_S, check=False
    )
    assert done.returncode == 0, f"{words}:\n{done.stdout}{done.stderr}"
    return done.stdout


def pan(
    model: Path, here: Path, *options: str, defines: tuple[str, ...] = (), flags: tuple[str, ...]
) -> str:
    """Try every order of events, up to the first error; return what pan says."""
    run("spin", "-a", *(f"-D{name}" for name in defines), str(model), cwd=here)
    # Optimising takes the compiler longer than pan takes without it.
    run("gcc", "-O0", *flags, "-DMEMLIM=1024", "-o", "pan", "pan.c", cwd=here)
    return run(str(here / "pan"), *options, cwd=here)


def nr_errors(said: str) -> int:
    found = re.search(r"errors: (\d+)$", said, re.MULTILINE)
    assert found, said
    return int(found[1])


def assert_error(said: str, error: str) -> None:
    assert nr_errors(said) == 1, said
    assert re.search(rf"^pan:1: .*({error})", said, re.MULTILINE), said


def assert_no_error(said: str, *, endless: tuple[str, ...] = ()) -> None:
    """Pan went everywhere and found nothing; only the processes named `endless` have no end."""
    assert nr_errors(said) == 0, said
    assert not INCOMPLETE.search(said), said
    assert re.search(r"assertion violations\s+\+", said)
    assert re.search(r"invalid end states\s+\+", said)
    # Where no order of events leads, nothing has been checked.
    unreached = re.findall(r"^unreached in \w+ ?(\w*)\n((?:\t.*, state .*\n)*)", said, re.MULTILINE)
    assert unreached, said
    for process, states in unreached:
        what = re.findall(r", state \d+, \"(.*)\"$", states, re.MULTILINE)
        assert what == (["-end-"] if process in endless else []), said
