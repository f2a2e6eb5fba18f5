# SPDX-License-Identifier: GPL-2.0-only
"""A zone-device row, as the native runner and the oracle need it."""

from collections.abc import Mapping
from pathlib import Path

from ream.experiment import PAGE_BYTES, STRUCT_PAGE_BYTES, Row
from ream.oracle.memmap import DeviceRange, Facts

START_PFN = 1 << 26
"""First frame of every device: 256 GiB, aligned to a 1 GiB page, above any RAM we host."""

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


def device_range(row: Row) -> DeviceRange:
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

    Whole compounds are one run; with shared tails, each compound is a block of its own.
    """
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


def plan_line(
    name: str,
    device: DeviceRange,
    facts: Facts,
    *,
    pre_state: str,
    rounds: int,
    threads: int,
    image: Path,
    usage: Path,
) -> str:
    """One line of the runner's plan; native/zone_device/plan.c reads it."""
    words: dict[str, str | int] = {
        "name": name,
        "rounds": rounds,
        "threads": threads,
        "pre_state": pre_state,
        "start_pfn": device.start_pfn,
        "nr_pages": device.nr_pages,
        "skip_pages": device.skip_pages,
        "order": device.order,
        "type": facts[f"MEMORY_DEVICE_{device.type}"],
        "early": int(device.early),
        "nid": device.nid,
        "map_bytes": device.map_bytes(facts),
        **fill_words(device, facts),
        "image": str(image),
        "usage": str(usage),
    }
    return " ".join(f"{key}={value}" for key, value in words.items()) + "\n"
