# SPDX-License-Identifier: GPL-2.0-only
"""Huge pages by compaction on the running kernel: small, given way, and killed at any moment."""

import json
import os
import random
import re
import signal
import struct
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from experiments.compact.live import (
    free_in_blocks,
    plan_here,
    read_sample,
    why_not_compact,
)
from experiments.compact.programs import COMPACT_THP, HOG
from ream.command import run
from ream.errors import CannotRunHere, ReamError, VerificationFailed
from ream.paths import CHECKOUT
from ream.session.restore import restore_settings
from ream.stage.memory import available_bytes
from ream.stage.workload import HEADERS, build_workload, compile_command, run_workload

pytestmark = pytest.mark.xdist_group("settings")

HERE = Path(__file__).parent
WRAPPED = ("fault_block", "holes_verify", "counters_grown", "pread")
NR_HUGE = 4
HOLES = 16 << 20
BLOCK = 2 << 20
DEADLINE_S = 120.0
NR_INTERRUPTIONS = 25
LATEST_S = 0.4
NR_KILLED = 3
CANNOT_RUN = 3

EXPERIMENT = """
name = "compact"
question = "Does the live stage work here?"
launches = 1
variants = {}
rows = [
  { name = "busy", stage = "live", mode = "busy-baseline", nr_huge = 8, buffer_bytes = "64MiB" },
]
"""

RUNS = """
import os
import sys
from pathlib import Path
from experiments.compact import live as live_compact

programs, work, nr_huge, holes = sys.argv[1:]
live_compact.build_workload = lambda program, _work: Path(programs, program.name)
starter = os.getpid()
for _ in sys.stdin:  # a line asks for a run, in a process of its own that has all it imports
    if not (pid := os.fork()):
        break
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
else:
    sys.exit()
print(os.getpid(), flush=True)
while os.getppid() == starter:
    for _ in live_compact.measure_compactions(
        live_compact.MODES, nr_huge=int(nr_huge), buffer_bytes=int(holes), reserve=1 << 28,
        rounds=9, visits=live_compact.Visits(9, 1, Path(work), lambda _: None),
    ):
        pass
"""


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Folder of the journal: a temporary one, since the user may need the real journal."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state/ream"


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The hog, and the workload, whose machine is wrong where REAM_WRONG says so: their folder."""
    work = tmp_path_factory.mktemp("wrong")
    sources = (*COMPACT_THP.sources, HERE / "wrong.c")
    wraps = (f"-Wl,--wrap={name}" for name in WRAPPED)
    out = work / COMPACT_THP.name
    run(compile_command(out, *HEADERS, *map(str, sources), *wraps, work=work, arch=None))
    build_workload(HOG, work)
    return work


@pytest.fixture
def _measurable() -> None:
    """Skip if memory does not suffice now. `measure_compactions` makes the settings it needs."""
    if reason := why_not_compact(NR_HUGE, HOLES, 1 << 28):
        pytest.skip(reason)


def words(program: Path, *more: str, reserve: int = 1 << 28) -> tuple[str, ...]:
    argv = (str(program), "--huge", str(NR_HUGE), "--bytes", str(HOLES))
    return (*argv, "--reserve", str(reserve), *more)


def gone_wrong(programs: Path, monkeypatch: pytest.MonkeyPatch, what: str, *more: str) -> str:
    monkeypatch.setenv("REAM_WRONG", what)
    return run_workload(words(programs / COMPACT_THP.name, *more), programs, DEADLINE_S)


@pytest.mark.vm
@pytest.mark.usefixtures("settings_kept")
def test_huge_pages_are_had_by_compaction_or_the_reason_is_said(tmp_path: Path) -> None:
    """All that is free in huge pages is taken for it: on a machine in need that is refused."""
    (tmp_path / "compact.toml").write_text(EXPERIMENT)
    said = subprocess.run(
        (sys.executable, "-P", "-m", "ream", "run", "compact.toml", "--stage", "live", "--json"),
        env={
            **os.environ,
            "PYTHONPATH": f"{CHECKOUT / 'lab'}:{CHECKOUT}",
            "XDG_DATA_HOME": str(tmp_path / "data"),
        },
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    print(said.stderr)
    if said.returncode == CANNOT_RUN:
        assert said.stderr.splitlines()[-1].startswith("ream: ")
        return
    assert said.returncode == 0
    assert "of memory that are available" in said.stderr
    (row,) = json.loads(said.stdout)["rows"]
    assert row["variants"]["running"]["verified"]
    assert any("huge pages came from compaction" in remark for remark in row["remarks"])
    (samples,) = (tmp_path / "data").rglob("samples.jsonl")
    sample = json.loads(samples.read_text().splitlines()[0])
    assert 0 < sample["allocated"] <= sample["asked"] == 8
    assert sample["compact_stall"] > 0
    assert sample["hog_iterations"] is not None


@pytest.mark.usefixtures("_measurable", "door")
@pytest.mark.parametrize("busy", [False, True])
def test_a_sample_says_what_was_asked_and_what_came(
    programs: Path, monkeypatch: pytest.MonkeyPatch, busy: bool
) -> None:
    said = gone_wrong(
        programs, monkeypatch, "stalls", *(("--hog", str(programs / HOG.name)) * busy)
    )
    sample = read_sample(said)
    assert sample.asked == NR_HUGE
    assert sample.allocated == sample.compacted <= NR_HUGE
    assert sample.stalled == sample.allocated + sample.missed
    assert sample.resident_pages == HOLES // 4096 // 2
    assert sample.wrong_words == 0
    assert 0 < sample.longest_ns <= sample.time_ns < sample.elapsed_ns
    # So few faults may be over before it is the hog's turn.
    assert (sample.hog_iterations is not None) == busy


@pytest.mark.usefixtures("_measurable", "door")
@pytest.mark.parametrize(
    ("what", "complaint"),
    [
        ("word", "1 words are not as they were written, the first is word 7 of page 2"),
        ("counter", "faults gave huge pages, thp_fault_alloc counts 0"),
    ],
)
def test_memory_and_counters_that_are_wrong_are_noticed(
    programs: Path, monkeypatch: pytest.MonkeyPatch, what: str, complaint: str
) -> None:
    with pytest.raises(VerificationFailed, match=complaint):
        gone_wrong(programs, monkeypatch, f"stalls,{what}")


@pytest.mark.usefixtures("_measurable", "door")
@pytest.mark.parametrize(
    ("what", "complaint"),
    [
        ("pressure", "others wait for memory: .* all was given back"),
        ("taken", "7 MiB of memory are available, and 256 are to stay so; all was given back"),
    ],
)
def test_memory_is_given_back_at_the_first_sign_that_others_need_it(
    programs: Path, monkeypatch: pytest.MonkeyPatch, what: str, complaint: str
) -> None:
    """The program ends before or soon after it takes the ballast, which would be gigabytes."""
    began = time.monotonic()
    with pytest.raises(CannotRunHere, match=complaint):
        gone_wrong(programs, monkeypatch, what)
    assert time.monotonic() - began < 30


def test_a_reserve_that_is_not_there_is_refused(programs: Path) -> None:
    argv = words(programs / COMPACT_THP.name, reserve=1 << 50)
    with pytest.raises(CannotRunHere, match="are to stay so"):
        run_workload(argv, programs, DEADLINE_S)


@pytest.mark.usefixtures("_measurable", "door")
def test_ballast_ends_at_the_reserve_and_says_what_is_lacking(programs: Path) -> None:
    """`plan_memory` would refuse such a reserve, so the program is called without a plan."""
    if free_in_blocks() < HOLES + (1 << 30):
        pytest.skip("memory is too fragmented: there is hardly any ballast to take")
    reserve = available_bytes() - (256 << 20)
    with pytest.raises(CannotRunHere, match=r"in huge pages are free yet|are to stay so"):
        run_workload(words(programs / COMPACT_THP.name, reserve=reserve), programs, DEADLINE_S)


@pytest.mark.usefixtures("_measurable", "door")
def test_a_hog_that_does_not_count_is_noticed(
    programs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ReamError, match="it does not count"):
        gone_wrong(programs, monkeypatch, "stalls", "--hog", "/bin/true")
    with pytest.raises(CannotRunHere, match="No such file"):
        gone_wrong(programs, monkeypatch, "stalls", "--hog", "/nowhere/hog")


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ((), "--huge 0: 1 to"),
        (("--huge", "4"), "--bytes 0: not a multiple of 2 MiB"),
        (("--huge", "4", "--bytes", "4096"), "not a multiple of 2 MiB"),
        (("--huge", "4", "--bytes", "2097152"), "--reserve B: missing"),
        (("--huge", "x"), "not a number"),
        (("--huge", "4", "--bytes", "2097152", "--reserve", "1", "--cpu", "9999"), "--cpu 9999"),
        (("--huge",), "lacks its value"),
        (("--quux", "4"), "not an option"),
    ],
)
def test_wrong_words_are_refused_with_exit_2(
    programs: Path, options: tuple[str, ...], complaint: str
) -> None:
    said = subprocess.run(
        (str(programs / COMPACT_THP.name), *options),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert said.returncode == 2
    assert complaint in said.stderr
    assert said.stderr.count("\n") == 1


def held_bytes(pid: int) -> int:
    status = Path("/proc", str(pid), "status").read_text()
    lines = (line.split() for line in status.splitlines())
    return next((int(line[1]) << 10 for line in lines if line[0] == "VmRSS:"), 0)


@pytest.mark.usefixtures("_measurable", "door")
def test_memory_is_back_after_sigkill_at_a_random_moment(programs: Path) -> None:
    """Others use this machine, too: what it held comes back at once, whatever they do."""
    draw = random.Random(3)
    for _ in range(NR_KILLED):
        plan = plan_here(NR_HUGE, HOLES, None)
        argv = words(programs / COMPACT_THP.name, reserve=plan.reserve)
        with subprocess.Popen(
            argv, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        ) as process:
            time.sleep(draw.uniform(0.2, 2))
            held, before = held_bytes(process.pid), available_bytes()
            process.kill()
            process.wait()
            ends_at = time.monotonic() + 60  # a busy machine takes its time to take back memory
            while available_bytes() - before < held // 2:
                assert time.monotonic() < ends_at, f"{held >> 20} MiB did not come back"
                time.sleep(0.01)
        print(f"{held >> 20} MiB held when it was killed")


def frames_of_holes(pid: int) -> list[list[int]]:
    """Frames of each block in the mapping that is full of holes, by page; 0 for a hole."""
    place = Path("/proc", str(pid))
    at = rss = 0
    for line in (place / "smaps").read_text().splitlines():
        if found := re.match(r"([0-9a-f]+)-([0-9a-f]+) ", line):
            at, end = (int(number, 16) for number in found.groups())
        elif line.startswith("Rss:"):
            rss = int(line.split()[1]) << 10
            if end - at >= HOLES and abs(rss - HOLES // 2) <= 4096:
                break
    with (place / "pagemap").open("rb") as pagemap:
        at = -(-at // BLOCK) * BLOCK
        pagemap.seek(at // 4096 * 8)
        entries = struct.unpack(f"{HOLES // 4096}Q", pagemap.read(HOLES // 4096 * 8))
    frames = [entry & ((1 << 55) - 1) if entry >> 63 else 0 for entry in entries]
    return [frames[first : first + 512] for first in range(0, len(frames), 512)]


@pytest.mark.usefixtures("_measurable", "door")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root sees page frames")
def test_of_each_block_of_physical_memory_every_second_page_is_a_hole(programs: Path) -> None:
    argv = words(programs / COMPACT_THP.name)
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if "holes" in json.loads(line):
                break
        os.kill(process.pid, signal.SIGSTOP)
        blocks = frames_of_holes(process.pid)
        process.kill()
    good = 0
    for frames in blocks:
        assert not any(frames[1::2])
        assert all(frames[::2])
        good += frames[0] % 512 == 0 and frames[::2] == list(range(frames[0], frames[0] + 512, 2))
    # Others compact memory, too, or a fault of ours gave small pages.
    assert good >= len(blocks) * 3 // 4, f"{good} of {len(blocks)}"


def test_a_hog_ends_whose_starter_ended_before_it_could_look(
    programs: Path, tmp_path: Path
) -> None:
    hog = [programs / "hog", "--cpu", "0", "--count", tmp_path / "count"]
    nobody = "4194304"  # PID_MAX_LIMIT: no process has it
    ended = subprocess.run([*hog, "--parent", nobody], timeout=20, check=True, text=True, stdout=-1)
    assert '"iterations":0' in ended.stdout


def wait_until_gone(programs: Path) -> None:
    ends_at = time.monotonic() + 60  # a busy machine takes its time to take back memory
    while any(_runs(entry, programs) for entry in Path("/proc").iterdir()):
        assert time.monotonic() < ends_at, "the workload outlived its run"
        time.sleep(0.01)


def _runs(entry: Path, programs: Path) -> bool:
    try:
        return entry.name.isdecimal() and (entry / "exe").readlink().parent == programs
    except OSError:
        return False


@pytest.fixture
def runs(
    programs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator["subprocess.Popen[str]"]:
    """What starts a run for every line; says its pid as it begins, its exit code as it ends."""
    monkeypatch.setenv("REAM_WRONG", "stalls")
    monkeypatch.setenv("PYTHONPATH", f"{CHECKOUT / 'lab'}:{CHECKOUT}")
    argv = (sys.executable, "-c", RUNS, str(programs), str(tmp_path), str(NR_HUGE), str(HOLES))
    with (
        (tmp_path / "said").open("w") as said,
        subprocess.Popen(
            argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=said, text=True
        ) as process,
    ):
        yield process
        process.kill()


@pytest.mark.vm
@pytest.mark.usefixtures("_measurable")
def test_runs_that_are_killed_at_random_moments_leave_nothing_behind(
    runs: "subprocess.Popen[str]",
    programs: Path,
    state: Path,
    settings_kept: dict[str, str],
    settings_now: Callable[[], dict[str, str]],
) -> None:
    """Neither the workload nor the hog, and settings as they were; after SIGKILL, restored."""
    assert runs.stdin is not None
    assert runs.stdout is not None
    draw = random.Random(11)
    seen: Counter[str] = Counter()
    for nr in range(NR_INTERRUPTIONS):
        number = draw.choice((signal.SIGINT, signal.SIGTERM, signal.SIGKILL, signal.SIGKILL))
        print("another", file=runs.stdin, flush=True)
        pid = int(runs.stdout.readline())
        time.sleep(draw.uniform(0, LATEST_S))
        with suppress(ProcessLookupError):
            os.kill(pid, number)
        code = int(runs.stdout.readline())
        assert code in (-number, 128 + number), f"{number.name} led to exit {code}"
        seen[number.name] += 1
        wait_until_gone(programs)
        if number == signal.SIGKILL:
            seen["left changed"] += settings_now() != settings_kept
            assert restore_settings(lambda _: None) == 0
        assert settings_now() == settings_kept, f"interruption {nr} by {number.name}"
        assert not list(state.glob("*.json"))
    print(dict(seen))
