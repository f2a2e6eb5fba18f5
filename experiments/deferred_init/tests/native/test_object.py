# SPDX-License-Identifier: GPL-2.0-only
"""What no run can show of the deferred-init series, shown by its compiled mm/mm_init.o."""

import re
import subprocess

import pytest

from ream.kernel.build import build_objects
from ream.kernel.series import load_series
from ream.kernel.source import Tree
from ream.kernel.variant import assemble
from ream.paths import SERIES, cache_dir
from ream.stage.bench import NATIVE_CONFIG

FUNCTION = re.compile(r"^[0-9a-f]+ <(\w+)>:$")
INSIDE = re.compile(r"\t(?:call|jmp)\s+[0-9a-f]+ <(\w+)>$")
OUTSIDE = re.compile(r"R_X86_64_(?:PLT32|PC32)\s+(\w+)-0x4$")


@pytest.fixture(scope="module")
def functions(kernel: Tree) -> dict[str, list[str]]:
    """Instructions and relocations of every function in the object, by name."""
    patches = [
        patch
        for name in ("zone-device", "deferred-init")
        for patch in load_series(SERIES / name).patches
    ]
    variant = assemble(
        kernel, patches, cache=cache_dir(), fragments=[NATIVE_CONFIG], homes=(), step=print
    )
    built = build_objects(variant, ["mm/mm_init.o"], step=print)["mm/mm_init.o"]
    listing = subprocess.run(
        ["objdump", "-dr", "--no-show-raw-insn", built], capture_output=True, text=True, check=True
    ).stdout
    found: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in listing.splitlines():
        if match := FUNCTION.match(line):
            lines = found.setdefault(match[1], [])
        else:
            lines.append(line)
    return found


def reached(functions: dict[str, list[str]], name: str) -> set[str]:
    """Everything that a function calls or jumps to, itself included, in this object or not."""
    seen: set[str] = set()
    waiting = [name]
    while waiting:
        one = waiting.pop()
        if one in seen:
            continue
        seen.add(one)
        waiting.extend(
            match[1]
            for line in functions.get(one, ())
            if (match := INSIDE.search(line) or OUTSIDE.search(line))
        )
    return seen


def test_the_zone_grows_without_giving_up_the_cpu(functions: dict[str, list[str]]) -> None:
    """deferred_grow_zone() holds a spinlock, and interrupts are off."""
    called = reached(functions, "deferred_grow_zone")
    assert "__free_fresh_pages" in called
    assert not {name for name in called if "resched" in name or "schedule" in name}


def test_the_threads_let_others_run(functions: dict[str, list[str]]) -> None:
    assert "__cond_resched" in reached(functions, "deferred_init_memmap_chunk")


def test_streamed_descriptors_are_drained_before_their_pages_are_free(
    functions: dict[str, list[str]],
) -> None:
    """There is no order between MOVNTI and what follows but that of SFENCE."""
    where = [
        functions[name]
        for name in reached(functions, "deferred_init_memmap_chunk") & functions.keys()
        if any("movnti" in line for line in functions[name])
    ]
    assert len(where) == 1
    events = [
        match[0]
        for line in where[0]
        if (match := re.search(r"movnti|sfence|__free_fresh_pages|set_pageblock", line))
    ]
    drain = events.index("sfence")
    assert events.count("sfence") == 1
    assert {"movnti"} == set(events[:drain])
    assert "__free_fresh_pages" in events[drain:]
    assert "movnti" not in events[drain:]
