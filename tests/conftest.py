# SPDX-License-Identifier: GPL-2.0-only
"""The command as users start it: a process, its two channels and its exit code."""

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from ream.paths import CHECKOUT


@dataclass(frozen=True)
class Said:
    code: int
    out: str
    err: str


Ream = Callable[..., Said]


@pytest.fixture
def ream(tmp_path: Path) -> Ream:
    """Run ream to its end; records go to a directory of the test's, kernels to the user's cache."""

    def run(*words: str, **environment: str) -> Said:
        process = subprocess.run(
            [sys.executable, "-P", "-m", "ream", *words],
            env={
                **os.environ,
                "PYTHONPATH": str(CHECKOUT / "lab"),
                "XDG_DATA_HOME": str(tmp_path / "data"),
                "COLUMNS": "100",
                "NO_COLOR": "1",
                **environment,
            },
            cwd=tmp_path,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        return Said(process.returncode, process.stdout, process.stderr)

    return run
