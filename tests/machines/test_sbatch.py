# SPDX-License-Identifier: GPL-2.0-only
"""The job array: its script, run as Slurm's batch step runs it, which itself is not here."""

import json
import os
import shutil
import subprocess
from pathlib import Path

from history_world import written

TINY = ("zone-device", "--row", "small-256MB", "--launches", "1", "--rounds", "1", "--seed", "5")


def test_a_task_of_the_array_does_its_cell_once(ream, tmp_path: Path) -> None:
    directory, spool, made = tmp_path / "a plan", tmp_path / "spool", tmp_path / "made"
    tool = tmp_path / "my tools/ream"
    tool.parent.mkdir()
    # It measures nothing: what a cell does on a host, others test.
    tool.write_text(
        f"#!/bin/sh\nset -eu\necho \"$*\" >>'{tmp_path}/calls'\ncp -r '{made}/.' \"$5\"\n"
    )
    tool.chmod(0o755)
    words = ("--emit", "sbatch", "--ream", str(tool), "-o", str(directory))
    assert ream("plan", *TINY, "--repeat", "2", *words).code == 0
    ids = (directory / "ids").read_text().split()
    written(made, receipt={"settings": {"cell": ids[1]}})
    spool.mkdir()
    script = shutil.copy(directory / "run.sbatch", spool / "slurm_script")  # as slurmd does

    def task(number: int) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            ("bash", str(script)),
            env={
                **os.environ,
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
    asked = f"run --cell cells/{ids[1]}.json --output records/{ids[1]}\n"
    assert (tmp_path / "calls").read_text() == asked
    assert task(3).returncode == 2
    plan = str(directory / "cells.jsonl")
    merge = json.loads(ream("merge", str(directory), "--plan", plan, "--json").out)
    assert [one["cell"] for one in merge["missing"]] == ids[:1]
    assert merge["again"] == f"(cd '{directory}' && sbatch --array=1 run.sbatch)"
