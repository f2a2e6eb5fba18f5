# SPDX-License-Identifier: GPL-2.0-only
"""The job array: its script, run as Slurm's batch step runs it, which itself is not here."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ream.paths import CHECKOUT

pytestmark = pytest.mark.xdist_group("machines")

TINY = ("zone-device", "--row", "small-256MB", "--launches", "1", "--rounds", "1", "--seed", "5")


def test_a_task_of_the_array_does_its_cell_once(ream, tmp_path: Path) -> None:
    directory, spool = tmp_path / "a plan", tmp_path / "spool"
    tool = tmp_path / "my tools/ream"
    tool.parent.mkdir()
    tool.write_text(
        f"#!/bin/sh\necho ran >>'{tmp_path}/calls'\nexec '{sys.executable}' -P -m ream \"$@\"\n"
    )
    tool.chmod(0o755)
    words = ("--emit", "sbatch", "--ream", str(tool), "-o", str(directory))
    assert ream("plan", *TINY, "--repeat", "2", *words).code == 0
    spool.mkdir()
    script = shutil.copy(directory / "run.sbatch", spool / "slurm_script")  # as slurmd does

    def task(number: int) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            ("bash", str(script)),
            env={
                **os.environ,
                "PYTHONPATH": str(CHECKOUT / "lab"),
                "SLURM_SUBMIT_DIR": str(directory),
                "SLURM_ARRAY_TASK_ID": str(number),
            },
            cwd=spool,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )

    first = task(2)
    assert first.returncode == 0, first.stderr
    assert "has its record" in task(2).stdout
    assert (tmp_path / "calls").read_text() == "ran\n"
    assert task(3).returncode == 2
    plan = str(directory / "cells.jsonl")
    merge = json.loads(ream("merge", str(directory), "--plan", plan, "--json").out)
    ids = (directory / "ids").read_text().split()
    assert [one["cell"] for one in merge["missing"]] == ids[:1]
    assert merge["again"] == f"(cd '{directory}' && sbatch --array=1 run.sbatch)"
