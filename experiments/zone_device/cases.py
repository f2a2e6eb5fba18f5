# SPDX-License-Identifier: GPL-2.0-only
"""Devices of every type, order and place of the map, and of random ranges."""

from collections.abc import Iterable, Iterator
from itertools import product
from pathlib import Path

from ream.experiment.section import PAGES_PER_SECTION
from ream.oracle.memmap import DeviceRange, Facts
from ream.stage.hosted import Batch, drawn, some
from ream.stage.native import Build

from .plan import NativeRow, altmap_pages, predicted_plan

DEVICES_A_LAUNCH = 40
START_PFN = 1 << 20
FAR_PFN = 1 << 33
"""No 32 bits hold it."""
PAGEBLOCK_ORDER = 9
OLD_BLOCKS = 0xAA
"""Bits of two pageblocks: another migratetype, and the skip bit, which has to stay."""
ORDERS = (0, 1, 4, 9, 10, 18)
TYPES = ("PRIVATE", "COHERENT", "FS_DAX", "GENERIC", "PCI_P2PDMA")
MOST_SECTIONS = 6


def cases(build: Build, work: Path, seeds: Iterable[int], *, edges: bool) -> Iterator[Batch]:
    devices = [*edge_devices()] if edges else []
    devices += map(_random_device, seeds)
    devices = [one for one in devices if _can_be_looked_at(one, build.facts)]
    rows = (
        NativeRow(words, device, _held_before(words), 1, 0, old_blocks=OLD_BLOCKS)
        for device, words in ((device, _words(device)) for device in devices)
    )
    for its in some(rows, DEVICES_A_LAUNCH):
        yield predicted_plan(its, build, work), 0


def _can_be_looked_at(device: DeviceRange, facts: Facts) -> bool:
    """Whether a kernel with DEBUG_VM finds the zone of every pageblock's first page.

    A kernel maps all tails that a compound page shares to the same page, so each has a descriptor.
    Here those beyond the first page are memory that nothing was written to: no first page of a
    pageblock may be among them.
    """
    shares = any(part.written_per_compound(facts) < 1 << part.order for part in device.parts())
    heads_alone = device.order <= PAGEBLOCK_ORDER and not device.start_pfn % (1 << PAGEBLOCK_ORDER)
    return heads_alone or not (facts["DEBUG_VM"] and shares)


def _held_before(words: str) -> str:
    return drawn(words).choice(("evicted", "bound"))


def _words(device: DeviceRange) -> str:
    """Which one it is, in less than 64 characters."""
    early = f"-early-{device.early_pages:x}" if device.early_pages else ""
    node = f"-node-{device.nid}" if device.nid else ""
    pages = f"{device.start_pfn:x}+{device.nr_pages:x}-{device.skip_pages:x}"
    return f"{device.type}-order-{device.order}-pfn-{pages}{node}{early}"


def edge_devices() -> Iterator[DeviceRange]:
    """Every type, order and place of the map; lengths and starts that are no whole section."""
    for order, kind, altmap, early in product(ORDERS, TYPES, (False, True), (False, True)):
        nr_pages = max(2 * PAGES_PER_SECTION, 2 << order)
        skip = altmap_pages(nr_pages, order) if altmap else 0
        yield DeviceRange(START_PFN, nr_pages, skip, order, kind, nr_pages * early, 0)
    for nr_pages, order in ((PAGES_PER_SECTION + 512, 0), (1, 0), (513, 0), (1024, 9), (512, 4)):
        yield DeviceRange(START_PFN, nr_pages, 0, order, "FS_DAX", 0, 0)
    for offset, order in ((512, 0), (PAGES_PER_SECTION - 512, 0), (2048, 9), (512, 4), (100, 9)):
        yield DeviceRange(START_PFN + offset, 3 * PAGES_PER_SECTION, 0, order, "GENERIC", 0, 0)
    for early_pages, order in product((PAGES_PER_SECTION, 2 * PAGES_PER_SECTION), (0, 4, 9)):
        yield DeviceRange(START_PFN, 3 * PAGES_PER_SECTION, 0, order, "PRIVATE", early_pages, 0)
    for order in (0, 9):
        yield DeviceRange(FAR_PFN, 2 * PAGES_PER_SECTION, 0, order, "FS_DAX", 0, 0)
    for order in (0, 9):
        yield DeviceRange(START_PFN, 2 * PAGES_PER_SECTION, 0, order, "COHERENT", 0, 1)


def _random_device(seed: int) -> DeviceRange:
    draw = drawn(seed)
    order = draw.choice(ORDERS[:-1])
    size = 1 << order
    nr_pages = draw.randint(1, MOST_SECTIONS * PAGES_PER_SECTION // size) * size
    start = START_PFN + draw.randrange(PAGES_PER_SECTION // size) * size
    skip = draw.randrange(nr_pages // size) * size if draw.random() < 1 / 2 else 0
    kind = draw.choice(TYPES)
    early_pages = nr_pages if draw.random() < 1 / 2 else 0
    return DeviceRange(start, nr_pages, skip, order, kind, early_pages, draw.randrange(2))
