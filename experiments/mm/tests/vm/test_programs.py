# SPDX-License-Identifier: GPL-2.0-only
"""Each program does the same hosted and in a guest that boots the same kernel, with swap."""

from dataclasses import replace
from pathlib import Path

import pytest

from fixtures.guests import Builder
from ream.kernel.image import Image
from ream.kernel.source import Tree
from ream.paths import cache_dir
from ream.program.compare import differences
from ream.program.elsewhere import guest_kernel, run_in_guest
from ream.program.generate import WEIGHTS, generate
from ream.program.ran import Rig
from ream.program.step import Program, new_step
from ream.program.text import parse

pytestmark = [pytest.mark.native, pytest.mark.xdist_group("computer")]


SWAP = new_step("swap", None, "synchronous", size=192 << 20)
SEEDS = range(1000, 1030)
NR_STEPS = 120
UNHOSTED = {"reclaim", "compact", "hog", "release", "vmalloc", "pin", "unpin", "join", "group",
            "mthp", "migrating"}  # fmt: skip
"""Steps that user space cannot perform, or that no guest is asked for."""
UNTIMED = {"wait", "swap", "run_on", "cpus"}
"""Steps that take long, or that change a guest for the programs behind this one."""
UNDRAWN = {"control", "call", "huge", "break", "shared-memory", "merge", "compress",
           "soft-dirty"}  # fmt: skip
"""Mixtures that change the kernel's settings, or of what a guest's configuration lacks."""


def drawn(seed: int) -> Program:
    """A random program of what a guest can do, with huge pages at no time but the program's."""
    steps = []
    weights = {name: nr for name, nr in WEIGHTS.items() if name not in UNDRAWN}
    for step in generate(seed, NR_STEPS, weights):
        if step.verb in UNHOSTED | UNTIMED:
            continue
        its_own = dict(step.values)
        if step.verb == "file":
            its_own["kind"] = "shmem"
        flags = tuple(flag for flag in step.flags if flag != "populate")
        steps.append(replace(step, values=tuple(its_own.items()), flags=flags))
    return parse("".join(f"{step}\n" for step in (*steps[:1], SWAP, *steps[1:])))


def unexplained(
    rig: Rig, image: Image, version: str, programs: dict[str, Program], work: Path
) -> list[str]:
    """What programs do in another way in a guest, without a rule."""
    its, log = list(programs.values()), work / "console.log"
    said = run_in_guest(its, image, cache=cache_dir(), work=work, log=log)
    theirs = guest_kernel(its, version)
    return [
        f"{name}: {one}"
        for (name, program), there in zip(programs.items(), said, strict=True)
        for one in differences(program, rig.run(program, shows=True).said, there, theirs)
        if not one.why
    ]


def test_all_programs_do_the_same_in_a_guest_of_the_same_kernel(
    rig: Rig, image: Builder, kernel: Tree, programs: dict[str, Program], tmp_path: Path
) -> None:
    assert unexplained(rig, image(), kernel.version, programs, tmp_path) == []


def test_random_programs_do_the_same_in_a_guest_of_the_same_kernel(
    rig: Rig, image: Builder, kernel: Tree, tmp_path: Path
) -> None:
    programs = {f"seed {seed}": drawn(seed) for seed in SEEDS}
    assert unexplained(rig, image(), kernel.version, programs, tmp_path) == []
