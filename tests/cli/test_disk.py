# SPDX-License-Identifier: GPL-2.0-only
"""A disk without room: one line, exit 3, and nothing half written."""

import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

CANNOT_RUN = 3
ROUND = '"whole": true'


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
    assert "MiB free, a record needs up to" in said.err
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


@pytest.mark.vm
def test_a_disk_that_fills_up_in_a_run_keeps_its_rounds_to_go_on_with(
    ream, ream_started, small_disk
) -> None:
    runs, filler = (disk := small_disk("18m")) / "runs", disk / "filler"
    words = (
        "run",
        "--row",
        "small-256MB",
        "--set",
        "device_bytes=1GiB",
        "--launches",
        "2",
        "--rounds",
        "3",
        "--seed",
        "7",
    )
    process = ream_started(*words, "--output", str(runs))
    deadline = time.monotonic() + 1200  # its kernels may have to be compiled, beside others
    while not any(ROUND in one.read_text() for one in runs.glob(".*/journal.jsonl")):
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.005)
    with suppress(OSError), filler.open("wb", buffering=0) as file:
        while file.write(b"\0" * 4096):
            pass
    assert process.wait(timeout=300) == CANNOT_RUN
    (partial,) = runs.iterdir()
    still_full = ream("run", "--resume", "last", "--output", str(runs))
    assert (still_full.code, still_full.out) == (CANNOT_RUN, "")
    assert "MiB free, a record needs up to" in still_full.err
    assert partial.exists()
    filler.unlink()
    done = ream("run", "--resume", "last", "--output", str(runs))
    assert done.code == 0, done.err
    (record,) = runs.iterdir()
    samples = [json.loads(line) for line in (record / "samples.jsonl").read_text().splitlines()]
    places = [(s["launch"], s["round"], s["subject"], s["threads"]) for s in samples]
    assert len(set(places)) == len(places)
    assert {launch for launch, *_ in places} == {0, 1}
