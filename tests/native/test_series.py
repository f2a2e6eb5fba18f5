# SPDX-License-Identifier: GPL-2.0-only
"""Each patch we ship is clean by itself: it applies, builds, and adds no warning of any judge."""

import os
import shutil
import subprocess

import pytest

from ream.kernel.source import Tree
from ream.paths import CHECKOUT, SERIES

SHIPPED = ("zone-device", "zone-device-parallel")


def test_each_patch_builds_and_adds_no_warning(kernel: Tree) -> None:
    """In one of the script's five configurations; all of them take five minutes."""
    if shutil.which("sparse") is None:
        if os.environ.get("CI"):
            pytest.fail("sparse: not installed; `make setup` as root installs it")
        pytest.skip("sparse is not installed")
    words = [CHECKOUT / "kernel/check-series.sh", kernel.path, *(SERIES / one for one in SHIPPED)]
    judged = subprocess.run(
        words, env={**os.environ, "CONFIGS": "native"}, capture_output=True, text=True, check=False
    )
    assert judged.returncode == 0, judged.stdout + judged.stderr
    patches = [path for one in SHIPPED for path in (SERIES / one).glob("000[1-9]-*.patch")]
    assert judged.stdout.count("\nok ") == len(patches)
