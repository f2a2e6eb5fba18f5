# SPDX-License-Identifier: GPL-2.0-only
"""What is counted is what is executed: of known instructions, of planted ones, again and again."""

import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from ream.command import Command, run
from ream.count.counter import OF_MEMORY, QUANTITIES, LaunchCounter
from ream.count.emulator import build_plugin, plugin_to_count
from ream.experiment import named
from ream.kernel.arch import X86_64
from ream.paths import NATIVE
from ream.stage.native import launch_once

HERE = Path(__file__).parent
PATCHES = HERE / "patches"
LONG = pytest.mark.vm
"""Compiles kernel objects, or runs for minutes: for `make test-vm`."""

pytestmark = pytest.mark.xdist_group("count")


def under_plugin(plugin: Path, functions: Path, out: Path, *, runs: bool) -> tuple[str, ...]:
    return (*X86_64.emulated(None), *plugin_to_count(plugin, functions, out, runs=runs))


def assembled(source: Path, work: Path) -> Path:
    program = work / source.stem
    words = ("gcc", "-nostdlib", "-static", "-no-pie", f"-I{NATIVE / 'host'}")
    run(Command((*words, str(source), "-o", str(program)), work, 60))
    return program


def symbols(program: Path, names: Collection[str]) -> dict[str, tuple[int, int]]:
    """Where functions of a program begin and end."""
    lines = run(Command(("nm", "-S", str(program)), program.parent, 60)).splitlines()
    sized = [words for line in lines if len(words := line.split()) == 4 and words[3] in names]
    return {name: (int(at, 16), int(at, 16) + int(size, 16)) for at, size, _, name in sized}


def windows(argv: tuple[str, ...], out: Path) -> list[dict[str, Any]]:
    subprocess.run(argv, check=True, timeout=60, cwd=out.parent)
    return [json.loads(line) for line in out.read_text().splitlines()]


def test_every_kind_of_instruction_is_counted_as_what_it_is(cache: Path, tmp_path: Path) -> None:
    program = assembled(HERE / "count/known.S", tmp_path)
    ((start, end),) = symbols(program, ["known"]).values()
    functions, out = tmp_path / "functions.txt", tmp_path / "counts.jsonl"
    functions.write_text(f"{start:x} {end:x} 1 0\n")
    under = under_plugin(build_plugin(cache, print), functions, out, runs=True)
    (window,) = windows((*under, str(program)), out)
    ((_, *counts),) = window["functions"]
    found = dict(zip(QUANTITIES, counts, strict=True))
    assert found == {
        "instructions": 1 + 10 * 5 + 4 + 1 + 3 + 1 + 3 + 2 + 2,
        "loads": 10 * 2 + 3 + 1,
        "load_bytes": 10 * (4 + 1) + 4 + 8 + 2 + 8,
        "stores": 10 * 2 + 3 + 1,
        "store_bytes": 10 * (8 + 1) + 4 + 8 + 2 + 8,
        "locked": 3,
        "streaming": 1,
        "fences": 3,
        "prefetches": 1,
        "taken": 9 + 1 + 1,
        "repeated": found["repeated"],
    }
    assert found["repeated"] in (32, 33)  # QEMU may look once more whether anything is left
    assert {name: window[name] for name in OF_MEMORY} == {
        "lines_read": 5,
        "lines_written": 1 + 1 + 3 + 1 + 4,
        "lines_only_written": 1 + 1 + 4,
        "pages": 1,
    }
    executed = sum(nr for first, _, nr in window["runs"] if first == start)
    assert executed == 1


INSTRUCTIONS_OF_CALLS = {"top": 6, "middle": 5, "twice": 13, "leaf": 2, "jumps": 2, "leaves": 1}
"""Instructions of each function of calls.S with its callees, over all of its calls."""


def test_a_function_is_counted_with_all_that_it_calls_and_jumps_to(
    cache: Path, tmp_path: Path
) -> None:
    program = assembled(HERE / "count/calls.S", tmp_path)
    places = sorted(symbols(program, INSTRUCTIONS_OF_CALLS).items(), key=lambda one: one[1])
    names = [name for name, _ in places]
    functions, out = tmp_path / "functions.txt", tmp_path / "counts.jsonl"
    functions.write_text(
        "".join(f"{at:x} {end:x} 1 {nr}\n" for nr, (_, (at, end)) in enumerate(places))
    )
    under = under_plugin(build_plugin(cache, print), functions, out, runs=False)
    (window,) = windows((*under, str(program)), out)
    own, whole = (
        {names[nr]: instructions for nr, instructions, *_ in window[which]}
        for which in ("functions", "inclusive")
    )
    assert own == INSTRUCTIONS_OF_CALLS
    assert whole == {
        "top": sum(own.values()),
        "middle": 5 + 13 + 2 + 1 + 1,  # the other leaf is called by what is not counted, from top()
        "twice": 13,
        "jumps": 2 + 1,
        "leaf": 2,
        "leaves": 1,
    }


def test_a_counted_run_repeats_to_the_last_digit_and_passes_the_gate(ream) -> None:
    runs = [ream("run", "null", "--count", "--json") for _ in range(2)]
    assert [one.code for one in runs] == [0, 0], runs[0].err
    first, second = (json.loads(one.out)["rows"] for one in runs)
    assert [row["counted"] for row in first] == [row["counted"] for row in second]
    assert all(row["unit"] == "instructions" and row["counted"]["repeats"] for row in first)
    checked = ream("check", "--counts", "--baseline", "last-1", "--json")
    assert checked.code == 0, checked.err
    cases = json.loads(checked.out)["cases"]
    assert cases
    assert {case["reason"] for case in cases} == {"counts equal"}


GIVES_UP = """
from collections import Counter
from ream.count.counter import LaunchCounter
from ream.errors import EmulatorGaveUp

completed, starts = LaunchCounter.completed, Counter()

def gives_up(counter, text):
    launch = counter.program.parent
    counter.nr_lines = getattr(counter, "nr_lines", 0) + 1
    if counter.nr_lines == 1:
        starts[launch] += 1
        with open("starts", "a") as file:
            print(launch.name, file=file)
    if starts[launch] <= {nr_times} and counter.nr_lines == 3:
        raise EmulatorGaveUp("the emulator gave up")
    return completed(counter, text)

LaunchCounter.completed = gives_up
"""
"""Stops an emulator in the middle of a launch, as one that finds itself at fault."""


@pytest.mark.parametrize(
    ("nr_times", "nr_starts", "code"),
    [pytest.param(1, 4, 0, marks=LONG), pytest.param(2, 6, 0, marks=LONG), (3, 3, 6)],
)
def test_a_launch_is_begun_again_when_its_emulator_gives_up(
    ream_process, tmp_path, nr_times, nr_starts, code
) -> None:
    """Each of two launches, three times at most."""
    words = ("run", "null", "--count", "--row", "bits-65536", "--json")
    said = ream_process(*words, changes=GIVES_UP.format(nr_times=nr_times))
    assert said.code == code, said.err
    starts = (tmp_path / "starts").read_text().split()
    if code:
        assert max(Counter(starts).values()) == nr_starts
        assert "the emulator gave up" in said.err
        return
    assert len(starts) == nr_starts
    first, second = (json.loads(one.out)["rows"] for one in (said, ream_process(*words)))
    assert [row["counted"] for row in first] == [row["counted"] for row in second]


WORDS_BEFORE_A_STACK = ("", "x" * 128)
"""Values of a variable in the environment: they shift where in a page the stack begins."""


def test_what_is_counted_does_not_depend_on_the_environment(ream) -> None:
    # Where channels copy, a part of the copies lies on the stack.
    row = ("migrate", "--row", "4k-4-channels", "--only", "published")
    found = []
    for words in WORDS_BEFORE_A_STACK:
        ran = ream("run", *row, "--count", "--json", REAM_TEST_WORDS=words)
        assert ran.code == 0, ran.err
        found.append(json.loads(ran.out)["rows"][0]["counted"])
    assert found == [found[0]] * len(found)


@LONG
def test_counts_are_equal_in_three_runs_beside_two_busy_loops(ream) -> None:
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2)]
    try:
        found = []
        for _ in range(3):
            ran = ream("run", "migrate", "--count", "--row", "64k-16-channels", "--json")
            assert ran.code == 0, ran.err
            found.append([row["counted"] for row in json.loads(ran.out)["rows"]])
    finally:
        for one in busy:
            one.kill()
            one.wait()
    assert found == [found[0]] * len(found)
    assert all(row["repeats"] for row in found[0])


def test_an_annotated_function_has_each_of_its_instructions_counted(ream) -> None:
    words = ("run", "null", "--count", "--row", "bits-65536", "--only", "before")
    counted = ream(*words, "--json")
    listed = ream(*words, "--annotate", "__bitmap_complement")
    assert (counted.code, listed.code) == (0, 0), counted.err + listed.err
    (row,) = json.loads(counted.out)["rows"]
    of = row["counted"]["functions"]["before"]["__bitmap_complement"]
    _, listing = listed.out.split("before: __bitmap_complement()\n", 1)
    block = listing.split("\n\n", 1)[0].splitlines()
    assert sum(int(line[:12]) for line in block if line[:12].strip()) == of["instructions"]


def test_a_function_that_no_kernel_has_is_named_before_anything_is_counted(ream) -> None:
    said = ream("run", "null", "--count", "--annotate", "__bitmap_complemen")
    assert said.code == 2
    assert "--annotate __bitmap_complemen: no variant has a function" in said.err
    assert "did you mean __bitmap_complement" in said.err


def test_an_experiment_whose_file_says_another_stage_is_counted_natively(ream) -> None:
    ran = ream("run", "compact", "--count", "--row", "batch-32", "--only", "before", "--json")
    assert ran.code == 0, ran.err
    said = json.loads(ran.out)
    assert said["stage"] == "native"
    assert [row["counted"]["repeats"] for row in said["rows"]] == [True]


def _changes(counted: Mapping[str, Any], variant: str) -> dict[str, float]:
    ours, theirs = (counted["variants"][name] for name in (variant, "before"))
    return {
        name: round((ours.get(name, 0) - theirs.get(name, 0)) / counted["number"], 3)
        for name in (*QUANTITIES, *OF_MEMORY)
        if ours.get(name, 0) != theirs.get(name, 0)
    }


@LONG
def test_planted_operations_are_named_with_their_function_and_moved_code_counts_equal(
    ream,
) -> None:
    names = ("count-load", "count-locked", "count-moved")
    series = [word for name in names for word in ("--series", str(PATCHES / f"{name}.patch"))]
    row = ("zone-device", "--row", "small-256MB")
    ran = ream("run", *row, "--count", "--only", ",".join(names), *series, "--json")
    assert ran.code == 0, ran.err
    (found,) = json.loads(ran.out)["rows"]
    counted = found["counted"]
    assert counted["repeats"]
    changed = _changes(counted, "count-load")
    assert (changed["loads"], changed["load_bytes"]) == (1.0, 4.0)
    assert changed.keys() == {"instructions", "loads", "load_bytes"}
    changed = _changes(counted, "count-locked")
    assert (changed["locked"], changed["loads"], changed["stores"]) == (1.0, 1.0, 1.0)
    assert not _changes(counted, "count-moved")
    shown = ream("show", "last").out
    assert "count-load: __init_zone_device_page() +1.00 instr +1.00 load" in shown
    assert "+1.00 locked" in shown
    assert "count-moved: no function differs" in shown


@LONG
def test_counts_for_each_page_do_not_depend_on_how_many_there_are(ream) -> None:
    found = []
    for size in ("128MiB", "1GiB"):
        sized = ("--row", "small-256MB", "--set", f"device_bytes={size}", "--full")
        ran = ream("run", "zone-device", *sized, "--count", "--json")
        assert ran.code == 0, ran.err
        found.append(json.loads(ran.out)["rows"][0]["counted"])
    small, large = found
    assert large["number"] == 8 * small["number"]
    for name in ("before", "published", "ream"):
        for quantity in ("instructions", "loads", "stores"):
            each = [one["variants"][name][quantity] / one["number"] for one in found]
            assert each[1] == pytest.approx(each[0], rel=2e-3), (name, quantity)


def test_an_exit_executes_less_than_kernels_that_were_faster_at_it(ream) -> None:
    """Where others map the pages, too: a mapping and its reference are dropped at once."""
    rows = ("exit-4k", "exit-16k")
    chosen = [word for row in rows for word in ("--row", row)]
    asked = ("run", "fork", "--count", "--only", "before,published,ream", "--json")
    counted = ream(*asked, *chosen)
    assert counted.code == 0, counted.err
    for row in json.loads(counted.out)["rows"]:
        its = row["counted"]["variants"]
        ours, *others = (its[one]["instructions"] for one in ("ream", "before", "published"))
        assert ours < 0.95 * min(others), its


def test_flags_that_a_migrating_folio_does_not_have_are_not_cleared(ream) -> None:
    """Active, unevictable and private: an atomic operation each, and a test finds them clear."""
    asked = ("run", "migrate", "--row", "4k-metadata", "--only", "before,published,ream")
    counted = ream(*asked, "--count", "--json")
    assert counted.code == 0, counted.err
    (row,) = json.loads(counted.out)["rows"]
    its, number = row["counted"]["variants"], row["counted"]["number"]
    ours, *others = (its[one]["locked"] / number for one in ("ream", "before", "published"))
    assert ours == pytest.approx(min(others) - 3, abs=0.01), its


def test_a_small_map_is_streamed_unless_the_kernel_has_just_zeroed_it(ream) -> None:
    rows = ("--row", "small-256MB", "--row", "small-256MB-dirty", "--set", "device_bytes=128MiB")
    ran = ream("run", "zone-device", *rows, "--only", "ream", "--count", "--json")
    assert ran.code == 0, ran.err
    counted = {row["row"]: row["counted"] for row in json.loads(ran.out)["rows"]}
    streamed = {
        row: its["variants"]["ream"].get("streaming", 0) / its["number"]
        for row, its in counted.items()
    }
    assert streamed == {
        "small-256MB": pytest.approx(8, rel=1e-2),
        "small-256MB-dirty": pytest.approx(0, abs=1e-2),
    }


@pytest.mark.vm
def test_counted_launches_can_run_side_by_side(ream_started) -> None:
    """Pinned to one CPU they would take as long as one after the other."""
    process = ream_started("run", "deferred-init", "--row", "1g-2-threads", "--count")
    may_run_on = set()
    while process.poll() is None:
        may_run_on |= {mask for pid in _children(process.pid) for mask in _masks(pid)}
        time.sleep(0.05)
    assert process.returncode == 0
    assert may_run_on == {frozenset(os.sched_getaffinity(0))}


def _children(pid: int) -> list[int]:
    """Process IDs of the children of pid that run the emulator at this moment."""
    found = []
    for entry in Path("/proc").iterdir():
        with suppress(OSError):
            if entry.name.isdecimal() and (entry / "exe").readlink().name == X86_64.emulator:
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                found += [int(entry.name)] * (parent == pid)
    return found


def _masks(pid: int) -> Iterator[frozenset[int]]:
    """CPUs that each thread of a process may run on."""
    with suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            yield frozenset(os.sched_getaffinity(int(task.name)))


@LONG
def test_callgrind_counts_the_same(cache: Path, rig_of, tmp_path: Path) -> None:
    rig = rig_of("zone-device").only("before")
    row = named("zone-device").row("small-256MB").model_copy(update={"rounds": 1})
    counter = LaunchCounter.of(build_plugin(cache, print), rig.program)
    with rig.planned([row]) as (plan, descriptors):
        said = launch_once(rig.program, rig.launch, plan, descriptors, cpus=2, counter=counter)
        (sample, *_) = said
        out = tmp_path / "callgrind.out"
        argv = (
            *(
                "valgrind",
                "--tool=callgrind",
                "--collect-atstart=no",
                f"--callgrind-out-file={out}",
            ),
            "--toggle-collect=memmap_init_zone_device",
            *(str(rig.program.path), "--variants", "before"),
            *("--forbidden", str(rig.program.forbidden), "--plan", str(plan)),
            *("--launch", "0", "--seed", "1", "--cpus", "2", "--count", "--patience", "300:300"),
        )
        run(Command(argv, tmp_path, 600, pass_fds=tuple(descriptors)))
    (summary,) = (line for line in out.read_text().splitlines() if line.startswith("summary:"))
    # Twice: it has warmed up before.
    theirs = int(summary.split()[1]) / 2
    ours = sum(
        numbers.get("instructions", 0) + numbers.get("repeated", 0)
        for its in (sample.functions, sample.stand_ins)
        for numbers in its.values()
    )
    assert ours == pytest.approx(theirs, rel=1e-3)
