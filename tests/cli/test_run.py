# SPDX-License-Identifier: GPL-2.0-only
"""What a run prints and keeps: table, object, record, letter; and how it stops."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ream.experiment import named
from ream.folders import names
from ream.paths import CHECKOUT, cache_dir
from ream.variants import choose_variants

SMALL = ("run", "--row", "small-256MB", "--launches", "2", "--rounds", "2", "--seed", "7")
PATCHES = CHECKOUT / "tests/native/patches"


@pytest.fixture
def records(tmp_path: Path) -> Path:
    return tmp_path / "data/ream/runs"


NOTHING_SEEN = ("equal", "undecided")


def test_a_run_prints_only_its_table_and_keeps_a_record_that_prints_the_same(
    ream, records: Path
) -> None:
    ran = ream(*SMALL)
    assert ran.code == 0, ran.err
    assert all(len(line) <= 100 for line in ran.out.splitlines())
    assert "small-256MB: 256 MiB, FS_DAX, order 0" in ran.out
    for name in ("before", "technique", "ours", "limit", "floor"):
        assert f"\n  {name}" in ran.out
    (record,) = records.iterdir()
    assert {file.name for file in record.iterdir()} == {
        *("run.json", "receipt.json", "samples.jsonl", "table.txt", "letter.txt"),
        *("plan.json", "noise.jsonl", "SHA256SUMS"),
    }
    assert (record / "table.txt").read_text() == ran.out
    assert ream("report", record.name).out == ran.out
    assert ream("report").out == ran.out
    letter = ream("report", "--letter").out
    assert letter == (record / "letter.txt").read_text()
    assert all(len(line) < 75 for line in letter.splitlines())


def test_json_is_one_object_as_documented(ream) -> None:
    device = ("--set", "order=9", "--set", "type=GENERIC", "--set", "altmap=true")
    ran = ream(*SMALL, *device, "--json")
    assert ran.code == 0, ran.err
    run = json.loads(ran.out)
    assert (run["schema"], run["experiment"], run["stage"]) == (1, "zone-device", "native")
    (row,) = run["rows"]
    assert (row["row"], row["unit"], row["better"]) == ("small-256MB", "ns", "lower")
    assert row["params"]["nr_pages"] == 65536
    assert row["params"]["order"] == 9
    assert row["params"]["type"] == "GENERIC"
    assert set(row["variants"]) == {"before", "before-again", "published", "ream"}
    assert all(variant["verified"] for variant in row["variants"].values())
    assert row["variants"]["before"]["ratio"] == 1.0
    assert row["limit"]["value"] > 0
    assert row["published_table"] is None
    for part in ("machine", "tree", "patches", "compiler", "ream"):
        assert run["receipt"][part]


def test_the_receipt_shows_where_every_timed_function_came_from(ream, records: Path) -> None:
    assert ream(*SMALL).code == 0
    (record,) = records.iterdir()
    receipt = json.loads((record / "receipt.json").read_text())
    for variant in ("before", "published", "ream"):
        objects = receipt["symbols"][variant]["objects"]
        assert "memmap_init_zone_device" in objects["mm/mm_init.o"]["functions"]
        assert "set_pageblock_migratetype" in objects["mm/page_alloc.o"]["functions"]
    assert receipt["stubs"]["calls"]["__cond_resched (stubbed)"]["before"] > 0
    text = (record / "receipt.json").read_text()
    assert str(Path.home()) not in text


@pytest.mark.vm
def test_a_wrong_series_ends_with_exit_5_and_no_record(ream, records: Path) -> None:
    wrong = str(PATCHES / "wrong-field.patch")
    ran = ream(
        "run",
        "--row",
        "small-256MB",
        "--set",
        "device_bytes=4GiB",
        "--launches",
        "1",
        "--rounds",
        "1",
        "--series",
        wrong,
    )
    assert (ran.code, ran.out) == (5, "")
    assert "wrong-field: the memory map differs from the oracle" in ran.err
    assert not list(records.iterdir())


def test_a_series_that_changes_nothing_makes_no_difference(ream) -> None:
    # By chance alone, one run in some fifty sees an effect; to be one, it must recur.
    words = (
        "run",
        "--row",
        "small-256MB",
        "--set",
        "device_bytes=1GiB",
        "--launches",
        "6",
        "--rounds",
        "5",
        "--json",
    )
    series = ("--measure-anyway", "--series", str(PATCHES / "no-change.patch"))
    effects = []
    for seed in ("1", "2"):
        run = json.loads(ream(*words, *series, "--seed", seed).out)
        effects.append(run["rows"][0]["variants"]["no-change"]["effect"])
        if effects[-1] in NOTHING_SEEN:
            break
    assert effects[-1] in NOTHING_SEEN or effects[0] != effects[1]


def test_per_patch_measures_every_prefix_of_a_series(ream, tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    shipped = sorted((CHECKOUT / "kernel/series/zone-device").glob("000[12]-*.patch"))
    for patch in shipped:
        (mine / patch.name).write_bytes(patch.read_bytes())
    # What they change is not executed on pages of order 0.
    ran = ream(*SMALL, "--measure-anyway", "--series", "mine", "--per-patch", "--json")
    assert ran.code == 0, ran.err
    variants = json.loads(ran.out)["rows"][0]["variants"]
    own = [name for name in variants if name.startswith("mine")]
    assert own == ["mine", "mine-1of2"]
    assert all(variant["verified"] for variant in variants.values())


STEPPED = [
    one for one in names() if any(len(its.patches) > 1 for its in choose_variants(named(one)))
]
"""Experiments of which a variant is made of several patches."""
STAGES = (("native",), ("vm", "--accel", "tcg"))


@pytest.mark.parametrize(
    ("experiment", "stage"),
    [(one, stage) for stage in STAGES for one in STEPPED if named(one).has(stage[0])],
)
def test_every_experiment_can_be_measured_patch_by_patch(ream, experiment: str, stage) -> None:
    words = ("run", experiment, "--stage", *stage, "--seed", "1")
    plain, steps = ream(*words, "--dry-run"), ream(*words, "--per-patch", "--dry-run")
    assert (plain.code, steps.code) == (0, 0), steps.err
    assert steps.out.count("\nvariant ") > plain.out.count("\nvariant ")
    more_than_one_program = "each of 2 programs" in steps.out
    # These two have more patches than a program has variants: MOST_VARIANTS,
    # lab/ream/measure/plan.py.
    assert more_than_one_program == (experiment in {"compact", "migrate"} and stage[0] == "native")


def test_dry_run_of_guests_prints_the_command_of_each(ream, tmp_path: Path) -> None:
    words = ("run", "--stage", "vm", "--accel", "tcg", "--dry-run", "--seed", "5")
    said = ream(*words, XDG_CACHE_HOME=str(tmp_path / "cache"), PATH="/nowhere")
    assert said.code == 0
    for name, map_words in (("fsdax", "device=fsdax map=dev"), ("private", "device=memremap")):
        (line,) = (line for line in said.out.splitlines() if line.startswith(f"{name} "))
        assert " qemu-system-x86_64 -name ream " in line
        assert "-icount shift=0,sleep=off,align=off" in line
        assert map_words in line
    assert "12 boots in all" in said.out
    assert not (tmp_path / "cache").exists()
    assert not (tmp_path / "data").exists()


def test_a_user_gives_a_boot_its_cpus_and_its_memory(ream, tmp_path: Path) -> None:
    words = ("run", "deferred-init", "--stage", "vm", "--accel", "tcg", "--row", "vm-boot-1g")
    more = ("--cpus", "8", "--set", "memory_bytes=2GiB", "--dry-run")
    said = ream(*words, *more, XDG_CACHE_HOME=str(tmp_path / "cache"))
    assert said.code == 0
    assert "row         vm-boot-1g: 2 GiB, 8 CPUs, all of the boot" in said.out
    (line,) = (line for line in said.out.splitlines() if line.startswith("2GiB-8-of-8-cpus "))
    assert " -smp 8 " in line
    assert " maxcpus=8 " in line
    assert "-icount" not in line


def test_a_value_that_a_row_cannot_have_is_told_with_the_row(ream) -> None:
    said = ream("run", "deferred-init", "--row", "2-threads", "--set", "memory_bytes=16GB")
    assert said.code == 2
    assert "ream: --set: row 2-threads: memory_bytes: not a size" in said.err


def test_dry_run_says_what_would_be_done_and_does_nothing(ream, tmp_path: Path) -> None:
    ran = ream("run", "--dry-run", "--seed", "5", XDG_CACHE_HOME=str(tmp_path / "cache"))
    assert ran.code == 0
    for words in ("variant     ours: zone-device (", "row         fsdax-100GB: 100 GiB", "seed 5"):
        assert words in ran.out
    # Paths may be as long as they are.
    own = [line for line in ran.out.splitlines() if not line.startswith(("cache ", "record "))]
    assert max(map(len, own)) <= 100
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("number", "code", "said"),
    [
        (signal.SIGINT, 130, "interrupted"),
        (signal.SIGTERM, 143, "ended by SIGTERM"),
        (signal.SIGHUP, 129, "ended by SIGHUP"),
    ],
)
def test_interrupting_leaves_nothing_behind(
    tmp_path: Path, number: signal.Signals, code: int, said: str
) -> None:
    with subprocess.Popen(
        [
            *("env", "--default-signal=HUP"),  # nohup may have the tests ignore it
            *(sys.executable, "-P", "-m", "ream", "run", "--launches", "50"),
            *("--row", "small-256MB", "--set", "device_bytes=8GiB"),
        ],
        env={
            **os.environ,
            "PYTHONPATH": str(CHECKOUT / "lab"),
            "XDG_DATA_HOME": str(tmp_path / "data"),
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        partial = _wait_for_samples(process, tmp_path / "data/ream/runs")
        runners = _children(process.pid)
        process.send_signal(number)
        out, err = process.communicate(timeout=300)
    assert process.returncode == code
    assert out == ""
    assert said in err
    assert "Traceback" not in err
    assert not partial.exists()
    assert not list((tmp_path / "data/ream/runs").iterdir())
    assert not list((cache_dir() / "run").glob(f"*{partial.name[1:-8]}*"))
    assert not [pid for pid in runners if Path(f"/proc/{pid}").exists()]


def _wait_for_samples(process: "subprocess.Popen[str]", runs: Path) -> Path:
    deadline = time.monotonic() + 1200  # its kernels may have to be compiled, beside others
    while time.monotonic() < deadline and process.poll() is None:
        for samples in runs.glob(".*.partial/samples.jsonl"):
            if samples.stat().st_size:
                return samples.parent
        time.sleep(0.05)
    raise AssertionError("it ended, or had no sample in twenty minutes")


def _children(pid: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def test_a_positive_control_is_measured_and_the_record_says_whether_it_was_found(
    ream, records: Path
) -> None:
    words = ("--launches", "4", "--rounds", "3", "--seed", "7", "--json")
    ran = ream("run", "fork", "--row", "fork-64k", "--control", "100%", *words)
    assert ran.code == 0, ran.err
    (row,) = json.loads(ran.out)["rows"]
    its = row["variants"]["control"]
    assert row["control"] == {"asked": 1.0, "found": its["effect"] == "slower"}
    # Whatever else the machine does: the control's own clock does not stop before.
    assert its["ratio"] > 1
    (record,) = records.iterdir()
    receipt = json.loads((record / "receipt.json").read_text())
    assert receipt["settings"]["options"]["control"] == 1.0
    variants = receipt["kernel"]["variants"]
    assert variants["control"] == variants["before"]
