# SPDX-License-Identifier: GPL-2.0-only
"""A zone-device row that is all of memremap_pages() or memunmap_pages(), in a program of its own.

It hosts what these calls run, down to the page allocator: remap/objects.
"""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from ream.experiment.section import PAGES_PER_SECTION
from ream.experiment.shape import PAGE_BYTES, STRUCT_PAGE_BYTES
from ream.oracle.memmap import DeviceRange, MapPlace
from ream.stage.hosted import Batch, Hosted, Planned, drawn, some
from ream.stage.memory import Sized
from ream.stage.native import Build
from ream.stage.runner_plan import Memory, Value, plan_file

from .oracle.remap import Remapped, map_chunks, mapped, unmapped, usage_bytes
from .plan import (
    HEADS_LAST,
    START_PFN,
    SUPERBLOCK_BYTES,
    altmap_pages,
    device_range,
    extent_bytes,
    fill_words,
    halved,
)
from .rows import ZoneDeviceRow

FOLDER = Path(__file__).parent / "remap"

NODE_STEP = 1024
"""Frames of a block of the allocator's largest order; a node is made of these."""

SPARE_PAGES = 16 << 10
"""Frames of a node beside those of the map: page tables, objects, and what is kept free."""

SUBSECTION_PAGES = 512
CASES_A_LAUNCH = 20
MOST_SECTIONS = 6
TYPES = ("PRIVATE", "COHERENT", "FS_DAX", "GENERIC", "PCI_P2PDMA")
WITH_ALTMAP = ("FS_DAX", "GENERIC")


@dataclass(frozen=True)
class RemapRow:
    """One row as the runner does it. unmaps: whether memunmap_pages() is timed."""

    name: str
    device: DeviceRange
    unmaps: bool = False
    calls_before: int = 0
    pre_state: str = "evicted"
    rounds: int = 1
    threads: int = 0

    @property
    def reserved_pages(self) -> int:
        """Frames of an altmap that hold the namespace's superblock."""
        return SUPERBLOCK_BYTES // PAGE_BYTES if self.device.skip_pages else 0

    @property
    def node_pages(self) -> int:
        """Frames of the node: enough for a map in RAM, and whole blocks."""
        wanted = self.device.nr_pages * STRUCT_PAGE_BYTES // PAGE_BYTES + SPARE_PAGES
        return -(-wanted // NODE_STEP) * NODE_STEP

    def remapped(self, addresses: Mapping[str, int]) -> Remapped:
        """What the oracle is asked about."""
        return Remapped(
            device=self.device,
            reserved_pages=self.reserved_pages,
            node_pfn=addresses["node_pfn"],
            node_pages=self.node_pages,
            calls_before=self.calls_before,
            ram=addresses["ram"],
        )

    def words(self, build: Build, memory: Memory) -> Mapping[str, Value]:
        """What its line says, and the oracle's images."""
        device, facts, addresses = self.device, build.facts, build.addresses
        at = addresses["map"] + device.start_pfn * facts["sizeof.page"]
        place = MapPlace(at, addresses["pgmap"], addresses["poison"])
        image, image_path = memory.file(self.name)
        with os.fdopen(image, "wb", closefd=False) as to:
            for chunk in map_chunks(device, facts, place, self.reserved_pages):
                to.write(chunk)
        usage = usage_bytes(device, facts, self.reserved_pages)
        asked = self.remapped(addresses)
        return {
            "name": self.name,
            "rounds": self.rounds,
            "threads": self.threads,
            "pre_state": self.pre_state,
            "unmaps": self.unmaps,
            "start_pfn": device.start_pfn,
            "nr_pages": device.nr_pages,
            "skip_pages": device.skip_pages,
            "reserved_pages": self.reserved_pages,
            "order": device.order,
            "type": facts[f"MEMORY_DEVICE_{device.type}"],
            "node_pages": self.node_pages,
            "calls_before": self.calls_before,
            "map_bytes": device.map_bytes(facts),
            **fill_words(device, facts),
            "image": image_path,
            "usage": memory.write(f"{self.name}-usage", (usage,)),
            "mapped": memory.array(mapped(asked, facts, addresses["map"])),
            "unmapped": memory.array(unmapped(asked, facts, addresses["map"])),
        }


def remap_row(row: ZoneDeviceRow, threads: int | None = None) -> RemapRow:
    """A row as the runner does it; threads caps the CPUs where the row itself does not."""
    return RemapRow(
        name=row.name,
        device=device_range(row),
        unmaps=row.call == "memunmap_pages",
        calls_before=row.calls_before,
        pre_state=row.pre_state,
        rounds=row.rounds,
        threads=min((n for n in (row.threads, threads) if n), default=0),
    )


def planned(rows: Iterable[RemapRow], build: Build, work: Path) -> Planned:
    """The plan of rows, with all that the oracle predicts of each."""

    def words(memory: Memory) -> Iterator[Mapping[str, Value]]:
        return (row.words(build, memory) for row in rows)

    return plan_file(FOLDER / "row.def", work, words)


def plan_of(
    rows: Sequence[ZoneDeviceRow], threads: int | None, build: Build, work: Path
) -> Planned:
    """planned() of an experiment's rows."""
    return planned([remap_row(row, threads) for row in rows], build, work)


def _words(device: DeviceRange) -> str:
    """Which one it is, in less than 64 characters."""
    skip = f"-{device.skip_pages:x}" if device.skip_pages else ""
    return f"{device.type}-order-{device.order}-{device.start_pfn:x}+{device.nr_pages:x}{skip}"


def edge_devices() -> Iterator[DeviceRange]:
    """Every type, order and place of the map, and ends within a section.

    All begin at the same frame: the runner maps their memory map there.
    """
    for order, kind in product((0, 4, 9), TYPES):
        nr_pages = 2 * PAGES_PER_SECTION
        yield DeviceRange(START_PFN, nr_pages, 0, order, kind)
        if kind in WITH_ALTMAP:
            yield DeviceRange(START_PFN, nr_pages, altmap_pages(nr_pages, order), order, kind)
    for nr_pages, order in ((512, 0), (512, 9), (PAGES_PER_SECTION + 1024, 0), (1536, 4)):
        yield DeviceRange(START_PFN, nr_pages, 0, order, "COHERENT")
    yield DeviceRange(START_PFN, 9 * PAGES_PER_SECTION, 0, 18, "GENERIC")
    yield DeviceRange(START_PFN, 130 * PAGES_PER_SECTION, 0, 0, "PRIVATE")


def _random_device(seed: int) -> DeviceRange:
    draw = drawn(seed)
    order = draw.choice((0, 1, 4, 9))
    nr_pages = draw.randint(1, MOST_SECTIONS * PAGES_PER_SECTION // SUBSECTION_PAGES)
    kind = draw.choice(TYPES)
    device = DeviceRange(START_PFN, nr_pages * SUBSECTION_PAGES, 0, order, kind)
    if kind not in WITH_ALTMAP or nr_pages % 64 or draw.random() < 1 / 2:
        return device
    skip = altmap_pages(device.nr_pages, order)
    return DeviceRange(START_PFN, device.nr_pages, skip, order, kind)


def cases(build: Build, work: Path, seeds: Iterable[int], *, edges: bool) -> Iterator[Batch]:
    """Devices at their edges and mixtures, as the first of a node and after others, twice each."""
    devices = [*edge_devices()] if edges else []
    devices += map(_random_device, seeds)
    rows = (
        RemapRow(
            _words(device),
            device,
            unmaps=drawn(_words(device)).random() < 1 / 2,
            calls_before=drawn(_words(device)).randrange(3),
            pre_state=drawn(_words(device)).choice(("evicted", "dirty")),
            rounds=2,
        )
        for device in devices
    )
    for its in some(rows, CASES_A_LAUNCH):
        yield planned(its, build, work), 0


def needed_bytes(rows: Sequence[ZoneDeviceRow], build: Build) -> int:
    """Memory a run takes: the largest map, descriptors of its node, and every predicted image."""
    each = [remap_row(row) for row in rows]
    arena = max(row.device.map_bytes(build.facts) for row in each)
    node = max(row.node_pages for row in each) * STRUCT_PAGE_BYTES + SPARE_PAGES * PAGE_BYTES
    return arena + node + sum(row.device.map_bytes(build.facts) for row in each)


def is_whole_call(row: ZoneDeviceRow) -> bool:
    """Whether a row is all of a call."""
    return row.call != "memmap_init_zone_device"


REMAP: Hosted[ZoneDeviceRow] = Hosted(
    FOLDER,
    plan_of,
    Sized(needed_bytes, extent_bytes, halved),
    cases,
    runs=is_whole_call,
    otherwise=(HEADS_LAST,),
    label="remap",
)
