# SPDX-License-Identifier: GPL-2.0-only
"""Guests of arm64: whole kernels, emulated, whose memory is verified and whose work is counted."""

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ream.command import run
from ream.experiment import named
from ream.kernel.arch import ARM64
from ream.kernel.image import build_image
from ream.kernel.series import load_series
from ream.kernel.setup import Setup
from ream.kernel.source import Tree
from ream.paths import KERNEL_MODULES, SERIES, cache_dir
from ream.progress import Reporter
from ream.session.guests import VM_CONFIG
from ream.stage.initramfs import build_init, guest_initramfs
from ream.stage.qemu import GuestMachine, GuestNode
from ream.stage.vm import BootableKernel, Start
from ream.stage.workload import compile_command

pytestmark = [pytest.mark.vm, pytest.mark.xdist_group("guests")]

KERNEL = ("--arch", "arm64", "--stage", "vm")


def ran(ream, *words: str) -> list[Mapping[str, Any]]:
    found = ream("run", *words, *KERNEL, "--json")
    assert found.code == 0, found.err
    document = json.loads(found.out)
    assert document["receipt"]["tree"].endswith("for arm64")
    return list(document["rows"])


def instructions(row: Mapping[str, Any], variant: str) -> float:
    its = row["counted"]
    return float(its["variants"][variant]["instructions"]) / its["number"]


def test_batches_of_fork_save_instructions(ream) -> None:
    rows = ran(ream, "fork", "--only", "before,published,ream", "--row", "vm-*-64k")
    names = {row["row"] for row in rows}
    assert {"vm-fork-64k", "vm-munmap-64k"} <= names
    for row in rows:
        assert row["counted"]["repeats"], row["row"]
        assert instructions(row, "ream") < instructions(row, "before"), row["row"]


def test_maps_of_devices_are_as_predicted(ream) -> None:
    words = ("--no-count", "--only", "before,ream", "--row", "private-memremap")
    (row,) = ran(ream, "zone-device", *words, "--set", "device_bytes=1GiB")
    # Each map is compared with the oracle's, all bytes, or the run ends with another status.
    assert row["variants"]["ream"]["ratio"] < 0.6


def test_rows_of_pmem_say_why_there_are_none(ream) -> None:
    said = ream("run", "zone-device", *KERNEL, "--row", "fsdax-bind")
    assert said.code == 3
    assert "arm64 has no word for the kernel that makes pmem of RAM" in said.err


GIB = 1 << 30
TAGGED = GuestMachine(
    *("tcg", False, 1, 3 * GIB),
    nodes=(GuestNode(2 * GIB, "0"), GuestNode(GIB)),
    options=("-machine", "mte=on"),
    arch="arm64",
    cpu="max",
)
MOVES = Path(__file__).with_name("mte_moves.c")
TAGS_LOST = Path(__file__).parent / "patches" / "mtcopy-tags-lost.patch"


def moved_with_tags(kernel: Tree, work: Path, *more: Path) -> tuple[int, str]:
    """The exit status of mte_moves.c in a guest of the series of migrate, and its console."""
    names = [SERIES / name for name in named("migrate").variants["ream"]]
    patches = [patch for path in (*names, *more) for patch in load_series(path).patches]
    image = build_image(
        replace(kernel, setup=Setup(arch=ARM64.name)),
        patches,
        cache=cache_dir(),
        fragments=[VM_CONFIG],
        modules=[KERNEL_MODULES / "swdma"],
        reporter=Reporter(),
    )
    program = work / "mte_moves"
    run(compile_command(program, "-march=armv8.5-a+memtag", str(MOVES), work=work, arch=ARM64))
    archive = guest_initramfs(
        image,
        "mte",
        init=build_init(work, arch=ARM64),
        work=work,
        modules=("swdma", "dcbm", "mtcopy"),
        programs={"/mte_moves": program},
    )
    log = work / "console.log"
    start = Start(TAGGED, BootableKernel(image.bootable, archive), log)
    words = ("experiment=selftests", "run=/mte_moves")
    messages = start.messages(words, deadline_s=1800.0, silence_s=900.0)
    (test,) = (message["test"] for message in messages if "test" in message)
    return int(test["exit"]), log.read_text()


def test_tags_of_memory_go_where_it_goes(kernel: Tree, tmp_path: Path) -> None:
    code, said = moved_with_tags(kernel, tmp_path)
    assert code == 0, said[-2000:]
    copied = re.search(r"mtcopy: 0 wrong granules, (\d+) folios copied by it", said)
    assert copied is not None
    # 16 MiB of folios of 64 KiB and of 2 MiB, there and back: no smaller ones.
    assert int(copied[1]) == 2 * (256 + 8)
    assert "# mte: dcbm: refused" in said


def test_tags_that_a_copier_forgets_are_missed(kernel: Tree, tmp_path: Path) -> None:
    code, said = moved_with_tags(kernel, tmp_path, TAGS_LOST)
    assert code == 1, said[-2000:]
    assert re.search(r"mtcopy: [1-9]\d* wrong granules", said)
