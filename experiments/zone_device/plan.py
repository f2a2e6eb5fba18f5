# SPDX-License-Identifier: GPL-2.0-only
"""A zone-device row, as the native runner and the oracle need it."""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ream.experiment.section import SECTION_BYTES
from ream.experiment.shape import PAGE_BYTES, STRUCT_PAGE_BYTES
from ream.oracle.memmap import DeviceRange, Facts, MapPlace, is_periodic, usage_bytes, write_map
from ream.stage.hosted import Otherwise, Planned
from ream.stage.memory import Sized
from ream.stage.native import Build
from ream.stage.runner_plan import Memory, Value, plan_file

from .rows import ALSO, ZoneDeviceRow

FOLDER = Path(__file__).parent / "native"
"""This experiment's glue and runner."""

HEADS_LAST = Otherwise(
    "HEADS_COME_LAST",
    1,
    "prepares the head of a compound page when all its tails are, as kernels since 6.18 do",
)
"""Until then the list head in the second tail page was initialised and then overwritten."""

START_PFN = 1 << 26
"""First frame of every device: 256 GiB, aligned to a 1 GiB page, above any RAM we host."""

JUST_WRITTEN = ("dirty", "bound")
"""States before which the kernel is told init_on_alloc=1, for which it stores a small map instead
of streaming it. That leaves a map dirty; bound is not so, but has cases store, too."""

SUPERBLOCK_BYTES = 8 << 10
MAP_ALIGN_BYTES = 2 << 20


def altmap_pages(nr_pages: int, order: int) -> int:
    """Frames at a namespace's start that hold its own map, with `map=dev`.

    The superblock and a descriptor for every frame, rounded up to the namespace's alignment.
    Source: nd_pfn_init(), drivers/nvdimm/pfn_devs.c.
    """
    align = max(MAP_ALIGN_BYTES, PAGE_BYTES << order)
    used = SUPERBLOCK_BYTES + STRUCT_PAGE_BYTES * nr_pages
    return -(-used // align) * align // PAGE_BYTES


def device_range(row: ZoneDeviceRow) -> DeviceRange:
    """The frames of a row's device."""
    return DeviceRange(
        start_pfn=START_PFN,
        nr_pages=row.nr_pages,
        skip_pages=altmap_pages(row.nr_pages, row.order) if row.altmap else 0,
        order=row.order,
        type=row.type,
    )


def fill_words(device: DeviceRange, facts: Facts) -> Mapping[str, int]:
    """The bytes that initialising a range writes, for the fills that bound it.

    Whole compounds are one run; with shared tails, each compound is a block of its own. Nothing
    bounds a range whose compounds are not all alike.
    """
    if len(device.parts()) > 1:
        return dict.fromkeys(("fill_offset", "block_bytes", "stride_bytes", "nr_blocks"), 0)
    size = facts["sizeof.page"]
    written = device.written_per_compound(facts) * size
    stride = size << device.order
    if written == stride:
        written = stride = stride * device.nr_compounds
        nr_blocks = 1
    else:
        nr_blocks = device.nr_compounds
    return {
        "fill_offset": device.skip_pages * size,
        "block_bytes": written,
        "stride_bytes": stride,
        "nr_blocks": nr_blocks,
    }


@dataclass(frozen=True)
class NativeRow:
    """One row as the runner does it."""

    name: str
    device: DeviceRange
    pre_state: str
    rounds: int
    threads: int
    chunk_pages: int = 0
    also: tuple[str, ...] = ()
    old_blocks: int = 0
    """What each byte of the pageblocks' bits held before."""

    def place(self, addresses: Mapping[str, int]) -> MapPlace:
        """Where its map lies, and what memory holds before it is written."""
        held = {"untouched": 0, "bound": addresses["pgmap"]}
        poison = held.get(self.pre_state, addresses["poison"])
        return MapPlace(addresses["map"], addresses["pgmap"], poison)


def native_row(row: ZoneDeviceRow, threads: int | None = None) -> NativeRow:
    """A row as the runner does it; threads caps the CPUs where the row itself does not."""
    return NativeRow(
        name=row.name,
        device=device_range(row),
        pre_state="untouched" if row.first_touch else row.pre_state,
        rounds=row.rounds,
        threads=min((n for n in (row.threads, threads) if n), default=0),
        chunk_pages=(row.chunk_bytes or 0) // PAGE_BYTES,
        also=row.also,
    )


def image_bytes(row: NativeRow, facts: Facts) -> int:
    """Memory that a row's predicted image takes; base pages repeat and take one descriptor's."""
    return 2 << 20 if is_periodic(row.device) else row.device.map_bytes(facts)


def _words(row: NativeRow, build: Build, memory: Memory) -> Mapping[str, Value]:
    device, facts = row.device, build.facts
    image, image_path = memory.file(row.name)
    with os.fdopen(image, "wb", buffering=0, closefd=False) as to:
        write_map(device, facts, row.place(build.addresses), to)
    usage = usage_bytes(device, facts, row.old_blocks)
    return {
        "name": row.name,
        "rounds": row.rounds,
        "threads": row.threads,
        "pre_state": row.pre_state,
        "start_pfn": device.start_pfn,
        "nr_pages": device.nr_pages,
        "skip_pages": device.skip_pages,
        "order": device.order,
        "type": facts[f"MEMORY_DEVICE_{device.type}"],
        "early_pages": device.early_pages,
        "old_blocks": row.old_blocks,
        "nid": device.nid,
        "chunk_pages": row.chunk_pages,
        "init_on_alloc": row.pre_state in JUST_WRITTEN or "zero" in row.also,
        **{what: what in row.also for what in ALSO},
        "map_bytes": device.map_bytes(facts),
        **fill_words(device, facts),
        "image": image_path,
        "usage": memory.write(f"{row.name}-usage", (usage,)),
    }


def predicted_plan(rows: Iterable[NativeRow], build: Build, work: Path) -> Planned:
    """The plan of rows, with the image that the oracle predicts of each."""
    return plan_file(
        FOLDER / "row.def", work, lambda memory: (_words(row, build, memory) for row in rows)
    )


def plan_of(
    rows: Sequence[ZoneDeviceRow], threads: int | None, build: Build, work: Path
) -> Planned:
    """predicted_plan() of an experiment's rows."""
    return predicted_plan([native_row(row, threads) for row in rows], build, work)


def needed_bytes(rows: Sequence[ZoneDeviceRow], build: Build) -> int:
    """Memory a run takes: the arena of the largest map, and every predicted image."""
    native = [native_row(row) for row in rows]
    arena = max(row.device.map_bytes(build.facts) for row in native)
    return arena + sum(image_bytes(row, build.facts) for row in native)


def extent_bytes(row: ZoneDeviceRow) -> int:
    """What makes a row large."""
    return row.device_bytes


def halved(row: ZoneDeviceRow) -> ZoneDeviceRow | None:
    """The row with half its device; None if no such device can exist."""
    compound = PAGE_BYTES << row.order
    unit = max(SECTION_BYTES, compound)
    half = row.device_bytes // 2 // unit * unit
    least = compound if row.altmap else 0  # which the map itself takes
    return row.model_copy(update={"device_bytes": half}) if half > least else None


SIZED: Sized[ZoneDeviceRow] = Sized(needed_bytes, extent_bytes, halved)
