# SPDX-License-Identifier: GPL-2.0-only
"""A plan as a tree of tests: tmt runs a cell on a host over ssh, and merge reads what it keeps."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.xdist_group("machines")

TINY = ("zone-device", "--row", "small-256MB", "--launches", "1", "--rounds", "1", "--seed", "5")

NO_MASTER = "x" * 100
"""In a directory whose path is too long for a socket tmt does without a master connection, for
which it would wait 30 seconds, twice."""


@pytest.fixture
def tmt() -> str:
    program = Path(sys.executable).parent / "tmt"
    if not program.exists():
        reason = f"{program}: not installed; `make setup-test` installs it"
        pytest.fail(reason) if os.environ.get("CI") else pytest.skip(reason)
    return str(program)


@pytest.mark.vm
def test_tmt_does_a_cell_on_a_host_and_merge_reads_its_record(
    ream, network, tmt: str, tmp_path: Path
) -> None:
    directory, runs = tmp_path / "plan", tmp_path / NO_MASTER
    host = network.hosts[1]
    where = ("--hosts", f"root@127.0.0.1:{host.port}", "--ream", network.ream)
    assert ream("plan", *TINY, "--emit", "tmt", *where, "-o", str(directory)).code == 0
    words = ("--root", str(directory), "run", "--id", str(runs), "--all", "--skip", "prepare")
    ran = subprocess.run(
        (tmt, *words),
        env={**os.environ, "HOME": str(tmp_path), "TMT_SSH_IDENTITY_FILE": str(network.key)},
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert len(host.calls()) == 1
    merge = json.loads(
        ream("merge", str(runs), "--plan", str(directory / "cells.jsonl"), "--json").out
    )
    assert (merge["missing"], merge["damaged"], len(merge["machines"])) == ([], [], 1)
    assert [row["row"] for row in merge["rows"]] == ["small-256MB"]
