# SPDX-License-Identifier: GPL-2.0-only
"""Each patch we ship is clean by itself: it applies, builds, and adds no warning of any judge."""

import os
import shutil
import subprocess
from collections.abc import Sequence

import pytest

from ream.kernel.series import load_series
from ream.kernel.source import Tree
from ream.kernel.variant import rehearse
from ream.paths import CHECKOUT, EXPERIMENTS, SERIES

STACKS = (
    ("zone-device", "zone-device-parallel"),
    # What these change is included everywhere: minutes for each, so for `make test-vm`.
    pytest.param(("before/large-mapcount", "before/fork"), marks=pytest.mark.vm),
    pytest.param(("rmap-exclusive", "fork"), marks=pytest.mark.vm),
    pytest.param(("before/deferred-init",), marks=pytest.mark.vm),
    pytest.param(("zone-device", "deferred-init"), marks=pytest.mark.vm),
    pytest.param(
        ("migrate-offload", "migrate-beyond", "rmap-exclusive", "migrate-faster"),
        marks=pytest.mark.vm,
    ),
    pytest.param(("compact",), marks=pytest.mark.vm),
    # Of an experiment's own folder.
    *(
        pytest.param((str(one),), marks=pytest.mark.vm, id=one.name)
        for one in sorted(EXPERIMENTS.glob("*/series/*"))
    ),
)
"""Series that are applied one after another."""


def test_all_of_ream_applies_on_one_base(kernel: Tree) -> None:
    """In the order of kernel/series/all: each series but those that take something out."""
    every = load_series(SERIES / "all")
    rehearse(every.patches, kernel)
    folders = {path.name for path in SERIES.iterdir()} - {"all", "before"}
    ours = {one.diff_sha256 for name in folders for one in load_series(SERIES / name).patches}
    assert {one.diff_sha256 for one in every.patches} == ours
    assert len(every.patches) == len(ours)


@pytest.mark.parametrize("stack", STACKS, ids="+".join)
def test_each_patch_builds_and_adds_no_warning(stack: Sequence[str], kernel: Tree) -> None:
    """In one of the script's configurations; all of them take five minutes and more."""
    if shutil.which("sparse") is None:
        if os.environ.get("CI"):
            pytest.fail("sparse: not installed; `make setup` as root installs it")
        pytest.skip("sparse is not installed")
    words = [CHECKOUT / "kernel/check-series.sh", kernel.path, *(SERIES / one for one in stack)]
    judged = subprocess.run(
        words, env={**os.environ, "CONFIGS": "native"}, capture_output=True, text=True, check=False
    )
    assert judged.returncode == 0, judged.stdout + judged.stderr
    patches = {path for one in stack for path in (SERIES / one).glob("0*.patch")}
    letters = {path for one in stack for path in (SERIES / one).glob("0000-*")}
    assert judged.stdout.count("\nok ") == len(patches - letters)
    assert all(f" {one}/0001-" in judged.stdout for one in stack)
