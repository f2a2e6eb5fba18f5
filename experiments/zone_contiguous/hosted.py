# SPDX-License-Identifier: GPL-2.0-only
"""What the native stage asks of zone-contiguous: plans, images, and cases."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from ream.experiment.section import PAGES_PER_SECTION, SECTION_BYTES
from ream.experiment.shape import PAGE_BYTES, STRUCT_PAGE_BYTES
from ream.stage.hosted import Batch, Hosted, Planned
from ream.stage.memory import Sized
from ream.stage.native import Build
from ream.stage.runner_plan import Memory, Value, plan_file

from .rows import ZoneContiguousRow
from .zones import FIRST_PFN, PRESENT, Section, Zone, map_of, mixture, section_table
from .zones import edges as all_edges

FOLDER = Path(__file__).parent / "native"


def zone_of(row: ZoneContiguousRow) -> Zone:
    """The zone of a row; a hole is in its middle."""
    sections = [Section()] * (row.nr_pages // PAGES_PER_SECTION)
    middle = len(sections) // 2
    if row.hole in {"absent", "offline"}:
        sections[middle] = Section(0, 0) if row.hole == "absent" else Section(PRESENT)
    foreign = {middle * PAGES_PER_SECTION} if row.hole == "foreign" else set[int]()
    return Zone(0, row.nr_pages, tuple(sections), frozenset(foreign))


def nr_contiguous(row: ZoneContiguousRow, zone: Zone) -> int:
    """How many calls must find the zone contiguous.

    A block that is plugged is not online yet when the zone is looked at, so no call may.
    """
    if row.block_bytes is None:
        return int(zone.is_contiguous())
    return 0 if row.operation == "plug" else row.nr_calls - 1


def _words(
    name: str, zone: Zone, build: Build, memory: Memory, **own: Value
) -> Mapping[str, Value]:
    nr_pages = len(zone.sections) * PAGES_PER_SECTION
    # Where all pages are alike, one section's map stands for all of them.
    image_pages = nr_pages if zone.foreign else PAGES_PER_SECTION
    return {
        "name": name,
        "rounds": 1,
        "map_bytes": nr_pages * build.facts["sizeof.page"],
        "first_pfn": FIRST_PFN,
        "start_pfn": FIRST_PFN + zone.skip,
        "nr_pages": zone.nr_pages,
        "block_pages": 0,
        "shrinks": False,
        "nr_contiguous": int(zone.is_contiguous()),
        "sections": memory.array(section_table(zone)),
        "map": memory.array(map_of(zone, build.facts, image_pages)),
        **own,
    }


def _of_row(row: ZoneContiguousRow, build: Build, memory: Memory) -> Mapping[str, Value]:
    zone = zone_of(row)
    return _words(
        row.name,
        zone,
        build,
        memory,
        rounds=row.rounds,
        block_pages=(row.block_bytes or 0) // PAGE_BYTES,
        shrinks=row.operation == "unplug",
        nr_contiguous=nr_contiguous(row, zone),
    )


def plan_of(
    rows: Sequence[ZoneContiguousRow], threads: int | None, build: Build, work: Path
) -> Planned:
    """A line for each row."""
    del threads
    return plan_file(
        FOLDER / "row.def", work, lambda memory: (_of_row(row, build, memory) for row in rows)
    )


def cases(build: Build, work: Path, seeds: Iterable[int], *, edges: bool) -> Iterator[Batch]:
    block_pages = build.facts["pageblock_nr_pages"]
    zones = dict(all_edges(block_pages)) if edges else {}
    zones |= {f"mixture-{seed}": mixture(seed, block_pages) for seed in seeds}

    def words(memory: Memory) -> Iterator[Mapping[str, Value]]:
        for name, zone in zones.items():
            yield _words(name, zone, build, memory)

    yield plan_file(FOLDER / "row.def", work, words), 0


def needed_bytes(rows: Sequence[ZoneContiguousRow], build: Build) -> int:
    """The largest map, and the image of each that is not made of equal sections."""
    del build
    images = sum(row.written_bytes for row in rows if row.hole == "foreign")
    return max(row.written_bytes for row in rows) + images


def halved(row: ZoneContiguousRow) -> ZoneContiguousRow | None:
    unit = row.block_bytes or SECTION_BYTES
    half = row.zone_bytes // 2 // unit * unit
    return row.model_copy(update={"zone_bytes": half}) if half else None


COUNTED_BYTES = 4 << 20
"""Size of a counted row's map: small, since each hot-plugged block scans all of it."""

SIZED: Sized[ZoneContiguousRow] = Sized(
    needed_bytes, lambda row: row.nr_pages * STRUCT_PAGE_BYTES, halved, COUNTED_BYTES
)
HOSTED: Hosted[ZoneContiguousRow] = Hosted(FOLDER, plan_of, SIZED, cases)
