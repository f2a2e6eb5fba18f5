# SPDX-License-Identifier: GPL-2.0-only
"""A disk without room: one line, exit 3, and nothing half written."""

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

CANNOT_RUN = 3


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Callable[[str], Path]]:
    """A function that mounts a tmpfs of the given size."""
    if os.geteuid() != 0:
        pytest.skip("mounting a small disk needs root")
    mounted: list[Path] = []

    def mount(size: str) -> Path:
        place = tmp_path / f"disk-{len(mounted)}"
        place.mkdir()
        words = ("mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(place))
        answer = subprocess.run(words, capture_output=True, text=True, check=False)
        if answer.returncode:
            pytest.skip(f"this system does not let us mount a tmpfs: {answer.stderr.strip()}")
        mounted.append(place)
        return place

    yield mount
    for place in mounted:
        subprocess.run(("umount", str(place)), check=True)


def test_no_room_for_a_record_is_said_before_anything_is_built(ream, small_disk) -> None:
    disk = small_disk("1m")
    said = ream("run", "--output", str(disk / "runs"))
    assert (said.code, said.out) == (CANNOT_RUN, "")
    assert "MiB free, a record needs" in said.err
    assert len(said.err.strip().splitlines()) == 1
    assert not list((disk / "runs").iterdir())


def test_no_room_for_the_kernel_source_leaves_an_empty_cache(ream, small_disk) -> None:
    disk = small_disk("32m")
    said = ream("run", XDG_CACHE_HOME=str(disk))
    assert (said.code, said.out) == (CANNOT_RUN, "")
    assert "free" in said.err
    assert "Traceback" not in said.err
    kept = [path for path in disk.rglob("*") if path.is_file() and path.stat().st_size > 1 << 16]
    assert not kept
