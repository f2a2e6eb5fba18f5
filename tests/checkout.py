# SPDX-License-Identifier: GPL-2.0-only
"""The files of the checkout, and how a lint test ends that found something."""

import os
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import NoReturn

import pytest

from ream.paths import CHECKOUT


def files() -> list[Path]:
    """Files that are, or are about to be, in the repository."""
    words = ("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    listed = subprocess.run(words, cwd=CHECKOUT, capture_output=True, check=False)
    if listed.returncode == 0:
        found = [CHECKOUT / os.fsdecode(name) for name in listed.stdout.split(b"\0") if name]
    else:  # an unpacked release has no repository
        found = [path for path in CHECKOUT.rglob("*") if ".venv" not in path.parts]
    return sorted(path for path in found if path.is_file())


def named(path: Path) -> str:
    """A file's path relative to the checkout."""
    return str(path.relative_to(CHECKOUT))


def absent(reason: str) -> NoReturn:
    """Skip a test that lacks something; in CI it fails."""
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)


def none_of(faults: Iterable[str]) -> None:
    """Fail with a list of faults if there are any."""
    if listed := "\n".join(faults):
        pytest.fail(listed, pytrace=False)
