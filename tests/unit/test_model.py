# SPDX-License-Identifier: GPL-2.0-only
"""The models of kernel/model: spin finds no error in them, and each one that we put in."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from ream.paths import CHECKOUT

MODEL = CHECKOUT / "kernel" / "model" / "zone-device-parallel.pml"

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


def pan(here: Path, *options: str, mutation: str | None = None, flags: tuple[str, ...]) -> str:
    """Try every order of events, up to the first error; return what pan says."""
    run("spin", "-a", *([f"-D{mutation}"] if mutation else []), str(MODEL), cwd=here)
    run("gcc", "-O2", *flags, "-DMEMLIM=1024", "-o", "pan", "pan.c", cwd=here)
    return run(str(here / "pan"), *options, cwd=here)


def nr_errors(said: str) -> int:
    found = re.search(r"errors: (\d+)$", said, re.MULTILINE)
    assert found, said
    return int(found[1])


def test_no_order_of_events_breaks_the_parallel_memory_map(tmp_path: Path) -> None:
    said = pan(tmp_path, flags=SAFETY)
    assert nr_errors(said) == 0, said
    assert not INCOMPLETE.search(said), said
    assert re.search(r"assertion violations\s+\+", said)
    assert re.search(r"invalid end states\s+\+", said)
    # Where no order of events leads, nothing has been checked. The buffers have no end.
    unreached = re.findall(r"^\t.*:(\d+), state \d+, \"(.*)\"$", said, re.MULTILINE)
    assert [what for _, what in unreached] == ["-end-"], said


def test_every_order_of_events_comes_to_an_end(tmp_path: Path) -> None:
    said = pan(tmp_path, "-l", flags=CYCLES)
    assert nr_errors(said) == 0, said
    assert not INCOMPLETE.search(said), said
    assert re.search(r"non-progress cycles\s+\+", said)


@pytest.mark.parametrize(
    ("mutation", "error"),
    [
        pytest.param("NO_DRAIN", "not_in_memory", id="a chunk is not drained"),
        pytest.param(
            "NO_CANCEL",
            "not_at_rest|not_in_memory|helpers_are_freed|memmap_is_gone",
            id="helpers are not cancelled",
        ),
        pytest.param(
            "FLUSH_INSTEAD_OF_CANCEL",
            "invalid end state",
            id="the caller waits for a work that never starts",
        ),
        pytest.param("PLAIN_COUNTER", r"owner\[|page\[", id="two CPUs are handed one chunk"),
    ],
)
def test_the_model_tells_when(mutation: str, error: str, tmp_path: Path) -> None:
    said = pan(tmp_path, mutation=mutation, flags=SAFETY)
    assert nr_errors(said) == 1, said
    assert re.search(rf"^pan:1: .*({error})", said, re.MULTILINE), said
