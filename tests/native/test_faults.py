# SPDX-License-Identifier: GPL-2.0-only
"""A kernel that crashes, or does not come back, is told: variant, row, function, line, registers.

Lines are those of the kernel source that the tests fetch, plus what a patch puts before them.
"""

import re
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from named_rows import row_of
from ream.errors import EmulatorGaveUp, ReamError, VerificationFailed, WrongVariant
from ream.experiment.section import SECTION_BYTES
from ream.paths import NATIVE
from ream.stage import native
from ream.stage.link import COMPILER_FLAGS, host_headers
from ream.stage.native import launch_once

# One worker has them all, so that each program is linked once.
pytestmark = pytest.mark.xdist_group("faults")

HOST = NATIVE / "host"
PATCHES = Path(__file__).parent / "patches"
NS_PER_S = 10**9

FORK = row_of(
    "fork",
    name="forks",
    folio_bytes=64 << 10,
    mapping_bytes=8 << 20,
    operation="fork",
    pre_state="warm",
    mm_users=1,
    rounds=1,
)
DEVICE = row_of(
    "zone-device",
    name="device",
    rounds=1,
    threads=1,
    device_bytes=SECTION_BYTES,
    order=0,
    type="FS_DAX",
)

REGISTERS = ("rip", "rsp", "rax", "rdi", "r15")


@pytest.fixture
def wrong_fork(patched_rig: Callable) -> Callable:
    """A function that links the base of fork with one of the patches beside this file."""
    return lambda name: patched_rig("fork", PATCHES / f"{name}.patch")


def fork_said(rig) -> str:
    with pytest.raises(VerificationFailed) as told:
        rig.run([FORK])
    return str(told.value)


def device_said(rig, kind: type[ReamError] = VerificationFailed) -> str:
    with pytest.raises(kind) as told:
        rig.run([DEVICE])
    return str(told.value)


def first_line(said: str) -> str:
    head, *rest = said.splitlines()
    for name in REGISTERS:
        assert re.search(rf" {name} [0-9a-f]{{16}}\b", "\n".join(rest)), said
    return head


def line_of(rig, variant: str, file: str, words: str) -> int:
    """The number of the one line of a variant's source that has these words."""
    lines = (rig.bench.roots[variant].parent / file).read_text().splitlines()
    (number,) = (number for number, line in enumerate(lines, start=1) if words in line)
    return number


def test_a_crash_is_told_with_row_variant_function_line_and_registers(wrong_fork: Callable) -> None:
    rig = wrong_fork("fork-null")
    line = line_of(rig, "fork-null", "mm/memory.c", "folio_ref_add(*prealloc, nr)")
    head = first_line(fork_said(rig))
    assert head.startswith("forks: fork-null: SIGSEGV at address 0x34, in copy_present_ptes()")
    assert f"(mm/memory.c:{line}) inlined into copy_page_range(); inlined there: " in head


def test_a_crash_of_one_of_several_kernels_is_its_own(patched: Callable) -> None:
    rig = patched("zone-null")
    head = first_line(device_said(rig))
    assert head.startswith("device: zone-null: SIGSEGV at address 0x")
    line = line_of(rig, "zone-null", "mm/mm_init.c", "start_pfn = altmap->base_pfn")
    assert re.search(rf"in memmap_init_zone_device\(\) \(mm/mm_init\.c:({line}|{line + 1})\)", head)


@pytest.mark.vm  # test_stops.py has one of another experiment
def test_a_bug_is_told_with_row_variant_and_registers(wrong_fork: Callable) -> None:
    rig = wrong_fork("fork-stops")
    line = line_of(rig, "fork-stops", "mm/memory.c", "BUG_ON(nr > 1)")
    head = first_line(fork_said(rig))
    assert head.startswith(f"forks: fork-stops: BUG at mm/memory.c:{line}, in copy_present_ptes()")


def test_an_endless_loop_is_ended_and_told_with_its_function(
    wrong_fork: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(native, "FIRST_SAMPLE_S", 2)
    rig = wrong_fork("fork-loop")
    head = first_line(fork_said(rig))
    assert head.startswith("forks: fork-loop: no end after 2 s")
    assert "in copy_present_ptes() (mm/memory.c:" in head


@pytest.mark.vm
def test_an_endless_loop_that_calls_others_is_told_with_who_calls(
    patched: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Which is first in a round is drawn: a fill may have been.
    monkeypatch.setattr(native, "FIRST_SAMPLE_S", 2)
    monkeypatch.setattr(native, "LEAST_SAMPLE_S", 2)
    said = device_said(patched("zone-loop"))
    assert first_line(said).startswith("device: zone-loop: no end after 2 s")
    assert "memmap_init_zone_device()" in said


def test_what_the_stage_lacks_and_warnings_name_row_and_variant(patched: Callable) -> None:
    for patch, said in (
        ("missing-function", "device: missing-function: the kernel reached `mem_init`, which "),
        ("missing-variable", "device: missing-variable: the kernel reached `totalcma_pages`"),
        ("warns", "kernel: device: warns: WARNING at mm/mm_init.c:"),
    ):
        told = device_said(patched(patch), ReamError)
        assert said in told
        assert "memmap_init_zone_device() (mm/mm_init.c:" in told or patch == "warns"


def test_no_round_is_whole_in_which_the_kernel_warned(patched: Callable) -> None:
    """What a run that is resumed replays are whole rounds, and nothing there would tell."""
    rig = patched("warns")
    heard: list[str] = []
    with (
        rig.planned([DEVICE]) as (plan, descriptors),
        pytest.raises(WrongVariant) as told,
    ):
        list(launch_once(rig.program, rig.launch, plan, descriptors, heard=heard.append))
    assert told.value.variant == "warns"
    assert not any("whole" in line or '"warns"' in line for line in heard)


class GivesUp:
    """Counts nothing: it ends as an emulator does that finds itself at fault."""

    argv = ("sh", "-c", "echo 'ERROR: a plugin: should not be reached'; kill -ABRT $$")
    loads = ()

    def completed(self, text: str) -> str:
        return text


def test_an_emulator_that_gives_up_is_named(patched: Callable) -> None:
    rig = patched("warns")
    with (
        rig.planned([DEVICE]) as (plan, descriptors),
        pytest.raises(
            EmulatorGaveUp, match="^launch 0: the emulator gave up: ERROR: a plugin: should"
        ),
    ):
        list(launch_once(rig.program, rig.launch, plan, descriptors, counter=GivesUp()))


@pytest.fixture(scope="module")
def watch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program that has samples of given lengths, and no kernel."""
    program = tmp_path_factory.mktemp("watch") / "watch"
    sources = [str(Path(__file__).parent / "watch/main.c"), str(HOST / "watch.c")]
    places = [f"-I{place}" for place in host_headers()]
    subprocess.run(
        ["gcc", *COMPILER_FLAGS, "-no-pie", *places, "-o", str(program), *sources], check=True
    )
    return program


def allowed_s(watch: Path, *samples: str) -> list[float]:
    said = subprocess.check_output([watch, "5", "1", *samples], text=True)
    return [int(line) / NS_PER_S for line in said.splitlines()]


def test_the_first_sample_of_every_row_may_take_what_first_ones_may(watch: Path) -> None:
    assert allowed_s(watch, "a:0", "a:0", "b:0", "b:0", "a:0") == [5, 1, 5, 1, 5]


def test_later_samples_may_take_as_long_as_the_slowest_suggests(watch: Path) -> None:
    first, second, third = allowed_s(watch, "a:100", "a:0", "a:0")
    assert first == 5
    assert 20 * 0.1 <= second == third


def test_a_sample_that_does_not_end_is_ended(watch: Path) -> None:
    ran = subprocess.run([watch, "9", "1", "a:0", "a:stuck"], check=False)
    assert ran.returncode == -signal.SIGALRM
