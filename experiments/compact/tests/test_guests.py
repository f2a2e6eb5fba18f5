# SPDX-License-Identifier: GPL-2.0-only
"""A boot of the compact experiment without a guest, and its programs on this machine."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from experiments.compact.boot import (
    SYSTEM_BYTES,
    CompactPlan,
    CompactSample,
    compact_nodes,
    run_compact_boot,
    wrong_counters,
)
from experiments.compact.columns import CpuTimes
from experiments.compact.guests import CompactBoot
from experiments.compact.programs import FRAGMENT, HOG
from fake_boots import assert_says_again
from ream.errors import CannotRunHere, ReamError, VerificationFailed
from ream.paths import CHECKOUT, EXPERIMENTS
from ream.stage import vm
from ream.stage.qemu import GuestMachine
from ream.stage.vm import BootableKernel, Start
from ream.stage.workload import build_workload

FAKE = CHECKOUT / "tests" / "console" / "fake_qemu.py"
KERNEL = BootableKernel(Path("bzImage"), Path("compact.cpio"))
PLAN = CompactPlan("dma", 64, buffer_bytes=0, node_bytes=512 << 20, channels=2, seed=9)
MACHINE = GuestMachine(
    "tcg", icount=True, memory_bytes=PLAN.least_bytes, nodes=compact_nodes(1, PLAN)
)
COUNTERS = {
    "pgmigrate_success": 16400,
    "pgmigrate_fail": 2,
    "compact_stall": 66,
    "compact_success": 64,
    "compact_fail": 2,
}
OF_ENGINE = {
    "dcbm_folios_migrated": 16400,
    "dcbm_folios_failures": 0,
    "swdma_descriptors": 16400,
    "swdma_bytes": 16400 * 4096,
    "swdma_faults": 0,
}

Run = Callable[..., CompactSample]


def sample(**other: Any) -> dict[str, Any]:
    fields = {"mode": "dma", "asked": 64, "allocated": 64, "ballast": 9, "time_ns": 90_000_000}
    fields |= {"page_copy_ns": 1600, "longest_ns": 4_000_000, "resident_pages": 60672}
    fields |= {"wrong_words": 0, "user_ns": 0, "system_ns": 90_000_000, "idle_ns": 0}
    machine = {"user_ns": 1, "system_ns": 95_000_000, "idle_ns": 80_000_000, "steal_ns": 0}
    fields |= {"machine": machine}
    fields |= {"hog_iterations": None, "counters": COUNTERS | OF_ENGINE, "verified": True}
    return {"compact": fields | other}


def said(**counters: int) -> CompactSample:
    fields = sample()["compact"]
    return CompactSample.model_validate(fields | {"counters": fields["counters"] | counters})


def ends(code: int) -> dict[str, Any]:
    return {"workload": {"step": "fragment", "exit": code}}


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """A function that has a guest say these messages and power off."""

    def boot(*messages: dict[str, Any]) -> CompactSample:
        def plan(*_: object, work: Path, **__: object) -> tuple[str, ...]:
            all_ = (*messages, {"end": {"ok": True}})
            steps = [word for one in all_ for word in ("tell", json.dumps(one))]
            return (sys.executable, str(FAKE), str(work / "port"), str(work / "qmp"), *steps)

        monkeypatch.setattr(vm, "boot_command", plan)
        return run_compact_boot(Start(MACHINE, KERNEL, tmp_path / "console.log"), PLAN)

    return boot


# --- Plans -----------------------------------------------------------------------------


def test_a_guest_is_told_all_of_the_plan() -> None:
    assert replace(PLAN, words=("adaptive=0",)).init_words() == (
        "experiment=compact",
        "mode=dma",
        "huge=64",
        "size=0",
        "seed=9",
        "channels=2",
        "adaptive=0",
    )


def test_of_the_law_nobody_asks_for_huge_pages() -> None:
    words = CompactPlan("law", 0, 0, 512 << 20).init_words()
    assert words == ("experiment=compact", "mode=law", "size=0", "seed=1")


@pytest.mark.parametrize("cpus", [1, 2])
def test_one_node_has_all_cpus_and_the_other_one_the_memory(cpus: int) -> None:
    first, second = compact_nodes(cpus, PLAN)
    assert (first.memory_bytes, first.cpus) == (SYSTEM_BYTES, f"0-{cpus - 1}")
    assert (second.memory_bytes, second.cpus) == (512 << 20, "")
    GuestMachine("tcg", cpus=cpus, memory_bytes=PLAN.least_bytes, nodes=(first, second))


def test_the_modes_are_the_guests() -> None:
    source = (EXPERIMENTS / "compact" / "guest.c").read_text()
    named = set(re.findall(r'^\t\{ "([a-z-]+)", (?:true|false),', source, re.MULTILINE))
    assert named == {"baseline", "dma", "busy-baseline", "busy-dma", "law"}
    assert [CompactPlan(name, 1, 0, 0).busy for name in ("dma", "busy-dma")] == [False, True]


# --- What a guest says -----------------------------------------------------------------


def test_a_boot_gives_its_sample(run: Run) -> None:
    given = run(sample(), ends(0))
    assert (given.allocated, given.ballast, given.hog_iterations) == (64, 9, None)
    assert given.counters["pgmigrate_success"] == 16400


def test_a_boot_without_a_sample_is_noticed(run: Run) -> None:
    with pytest.raises(ReamError, match="gave no sample"):
        run(ends(0))


@pytest.mark.parametrize(
    ("code", "error", "words"),
    [
        (5, VerificationFailed, "compacting, fragment.*not as it must be"),
        (3, CannotRunHere, "compacting, fragment.*cannot"),
        (137, ReamError, "the workload ended with 137"),
    ],
)
def test_the_workloads_end_is_the_guests(
    code: int, error: type[ReamError], words: str, run: Run
) -> None:
    with pytest.raises(error, match=words):
        run(ends(code))


@pytest.mark.parametrize("fields", [{"wrong_words": 3}, {"verified": False}])
def test_what_is_not_verified_is_no_sample(fields: dict[str, Any], run: Run) -> None:
    with pytest.raises(VerificationFailed, match="dma.*words are not as they were written"):
        run(sample(**fields), ends(0))


def test_what_is_no_sample_is_refused(run: Run) -> None:
    with pytest.raises(ReamError, match="no sample: .*time_ns"):
        run(sample(time_ns="soon"))


def test_a_counter_that_is_not_as_it_must_be_is_no_sample(run: Run) -> None:
    counters = COUNTERS | OF_ENGINE | {"swdma_bytes": 0}
    with pytest.raises(VerificationFailed, match="dma.*swdma 0 bytes"):
        run(sample(counters=counters), ends(0))


# --- Counters --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("counters", "words", "wrong"),
    [
        ({}, (), None),
        ({"compact_fail": 3}, (), "compact_stall is 66, .* 67 together"),
        ({"pgmigrate_success": 16397}, (), "16400 pages were given .* 16397 were moved, 2 were"),
        ({"pgmigrate_success": 16398}, (), None),
        ({"pgmigrate_success": 16401}, (), "16401 pages were moved, and only 16400 given"),
        ({"pgmigrate_success": 17000, "dcbm_batches_declined": 3}, (), None),
        ({"pgmigrate_success": 17000, "dcbm_batches_declined": 3}, ("adaptive=0",), "only 16400"),
        ({"pgmigrate_success": 17000, "swdma_faults": 1}, ("fault=vanish_at:9",), None),
        ({"pgfree": 16000}, (), "moved, and pgfree has grown by only 16000"),
        ({"swdma_bytes": 4096}, (), "copied 16400 pages, and swdma 4096 bytes"),
        ({"swdma_bytes": 4096, "swdma_faults": 1}, (), None),
    ],
)
def test_counters_are_as_they_must_be(
    counters: dict[str, int], words: tuple[str, ...], wrong: str | None
) -> None:
    found = wrong_counters(said(**counters), replace(PLAN, words=words))
    assert (found is None) == (wrong is None), found
    if wrong:
        assert re.search(wrong, str(found))


def test_a_kernel_without_an_engine_counts_nothing_of_it() -> None:
    plain = sample(mode="baseline", counters=COUNTERS)["compact"]
    assert wrong_counters(CompactSample.model_validate(plain), replace(PLAN, channels=0)) is None


def test_the_counters_are_the_workloads() -> None:
    source = (CHECKOUT / "workloads" / "counters.c").read_text()
    assert all(f'{{ "{name}", NULL }}' in source for name in COUNTERS if name[0] == "c")
    for name in (*OF_ENGINE, "dcbm_batches_declined"):
        assert f"PARAMETER({name.replace('_', ', ', 1)})" in source


# --- The programs ----------------------------------------------------------------------


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    work = tmp_path_factory.mktemp("programs")
    for name in (FRAGMENT, HOG):
        build_workload(name, work)
    return work


def fragment(
    programs: Path, *options: str, words: str = ""
) -> tuple[int, list[dict[str, Any]], str]:
    done = subprocess.run(
        [programs / FRAGMENT.name, *options],
        input=words,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()], done.stderr


def test_fragment_holds_what_it_wrote_until_it_is_told_to_quit(programs: Path) -> None:
    code, lines, _ = fragment(programs, "--bytes", str(8 << 20), words="verify\nquit\nverify\n")
    assert code == 0
    assert lines == [
        {"ready": {"resident_pages": 1024, "bytes": 8 << 20}},
        {"verify": {"wrong_words": 0, "pages": 1024, "first_wrong": None}},
        {"end": {"ok": True, "resident_pages": 1024}},
    ]


def test_fragment_makes_as_many_holes_as_it_is_told(programs: Path) -> None:
    _, lines, _ = fragment(programs, "--bytes", str(2 << 20), "--hole-every", "5", words="verify")
    assert lines[0]["ready"]["resident_pages"] == 512 - 512 // 5
    assert lines[1]["verify"]["wrong_words"] == 0


@pytest.mark.parametrize("every", ["2", "5"])
def test_scattered_holes_are_as_many(every: str, programs: Path) -> None:
    options = ("--bytes", str(2 << 20), "--hole-every", every, "--scattered")
    _, lines, _ = fragment(programs, *options, words="verify")
    assert lines[0]["ready"]["resident_pages"] == 512 - 512 // int(every)
    assert lines[1]["verify"]["wrong_words"] == 0


@pytest.mark.parametrize("options", [(), ("--scattered",)])
def test_of_few_used_pages_one_of_so_many_stays(options: tuple[str, ...], programs: Path) -> None:
    said = ("--bytes", str(2 << 20), "--used-every", "5", *options)
    _, lines, _ = fragment(programs, *said, words="verify\npoke\nverify")
    assert lines[0]["ready"]["resident_pages"] == 512 // 5
    assert [line["verify"]["wrong_words"] for line in lines if "verify" in line] == [0, 1]


def test_fragment_sees_a_word_that_is_changed(programs: Path) -> None:
    code, lines, errors = fragment(programs, "--bytes", str(2 << 20), words="poke\nverify\n")
    assert code == 5
    assert lines[-1]["verify"] == {
        "wrong_words": 1,
        "pages": 256,
        "first_wrong": {"page": 510, "word": 256},
    }
    assert "the first is word 256 of page 510" in errors


def test_fragment_says_how_counters_grow(programs: Path) -> None:
    _, lines, _ = fragment(programs, "--bytes", str(2 << 20), words="counters\ncounters\n")
    first, second = (line["counters"] for line in lines[1:3])
    assert first.keys() == second.keys()
    assert {"pgmigrate_success", "compact_stall"} <= first.keys()


@pytest.mark.parametrize(
    ("options", "words", "code", "complaint"),
    [
        (("--bytes", "4096"), "", 2, "--bytes 4096: not a multiple of 2 MiB"),
        (("--bytes", "0"), "", 2, "--bytes 0: of which node"),
        (("--node", "65"), "", 2, "--node 65: nodes are below 64"),
        (("--hole-every", "1", "--bytes", "2097152"), "", 2, "--hole-every 1: at least 2"),
        (("--used-every", "1", "--bytes", "2097152"), "", 2, "--used-every 1: at least 2"),
        (("--oom-score", "-1001"), "", 2, "--oom-score -1001: -1000 to 1000"),
        (("--oom-score", "soon"), "", 2, "--oom-score soon: not a number"),
        (("--bytes",), "", 2, "--bytes: unknown, or lacks its value"),
        (("--what", "1"), "", 2, "--what: not an option of ours"),
        (("--bytes", "2097152"), "dance\n", 2, "dance: not a word of ours"),
        (("--bytes", str(1 << 50), "--node", "0"), "", 3, f"--bytes {1 << 50}: of node 0"),
        (("--bytes", "2097152", "--node", "63"), "", 3, "of node 63 0 bytes are free"),
    ],
)
def test_fragment_says_what_it_cannot_do(
    options: tuple[str, ...], words: str, code: int, complaint: str, programs: Path
) -> None:
    found, _, errors = fragment(programs, *options, words=words)
    assert (found, complaint in errors) == (code, True), errors
    assert errors.count("\n") == 1


def read_count(path: Path) -> int:
    return int.from_bytes(path.read_bytes(), sys.byteorder)


def test_a_hog_counts_until_it_is_told_to_end(programs: Path, tmp_path: Path) -> None:
    count = tmp_path / "count"
    cpu = str(min(os.sched_getaffinity(0)))
    command = [programs / HOG.name, "--cpu", cpu, "--count", count]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        deadline = time.monotonic() + 60
        while not (count.exists() and count.stat().st_size and read_count(count)):
            assert time.monotonic() < deadline
            time.sleep(0.01)
        before = read_count(count)
        while read_count(count) <= before:  # others may have its CPU for a while
            assert time.monotonic() < deadline
            time.sleep(0.01)
        process.send_signal(signal.SIGTERM)
        out, _ = process.communicate(timeout=30)
    assert process.returncode == 0
    assert json.loads(out) == {"end": {"ok": True, "iterations": read_count(count)}}


def test_a_hog_ends_with_who_has_started_it(programs: Path, tmp_path: Path) -> None:
    cpu = str(min(os.sched_getaffinity(0)))
    start = '"$@" >/dev/null & echo $!; while ! [ -s count ]; do :; done'
    done = subprocess.run(
        ["sh", "-c", start, "sh", programs / HOG.name, "--cpu", cpu, "--count", "count"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    status = Path("/proc", done.stdout.strip(), "status")
    deadline = time.monotonic() + 30
    while status.exists() and "State:\tZ" not in status.read_text():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (("--count", "/dev/null"), "--cpu N: missing"),
        (("--cpu", "0"), "--count FILE: missing"),
        (("--cpu", "5000", "--count", "x"), "--cpu 5000: below 1024 here"),
    ],
)
def test_a_hog_says_what_it_needs(
    options: tuple[str, ...], complaint: str, programs: Path, tmp_path: Path
) -> None:
    done = subprocess.run(
        [programs / HOG.name, *options],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert (done.returncode, complaint in done.stderr) == (2, True), done.stderr


def test_a_boot_that_is_done_says_again_what_it_said(tmp_path: Path) -> None:
    event = CompactSample(
        mode="dma",
        asked=2,
        allocated=1,
        ballast=0,
        time_ns=9,
        page_copy_ns=1,
        longest_ns=2,
        resident_pages=3,
        wrong_words=0,
        user_ns=0,
        system_ns=1,
        idle_ns=2,
        machine=CpuTimes(user_ns=1, system_ns=2, idle_ns=3, steal_ns=4),
        hog_iterations=None,
        counters={"compact_stall": 1},
        verified=True,
    )
    assert_says_again(CompactBoot, event, tmp_path)
