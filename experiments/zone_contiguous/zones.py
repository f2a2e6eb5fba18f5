# SPDX-License-Identifier: GPL-2.0-only
"""What a zone is made of, and whether it is contiguous.

Source of the rule: zone->contiguous lets pageblock_pfn_to_page() take any page of the span without
a look at it (mm/internal.h). So it may be true only if every page of the span is there, online,
and of this zone.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ream.experiment.section import PAGES_PER_SECTION
from ream.oracle.dice import Dice
from ream.oracle.memmap import Facts

PAGES_PER_SUBSECTION = 512
ALL = (1 << PAGES_PER_SECTION // PAGES_PER_SUBSECTION) - 1
"""Every subsection of a section."""

PRESENT, ONLINE, EARLY = 1, 2, 4
"""Flags of a section, with the values of native/zone_contiguous.h."""

FIRST_PFN = 1 << 26
"""First frame of every zone: 256 GiB, above any RAM we host."""

MOST_SECTIONS = 6
"""The most sections of a zone in a random mixture."""


@dataclass(frozen=True)
class Section:
    flags: int = PRESENT | ONLINE
    subsections: int = ALL

    def has(self, page: int) -> bool:
        """Whether its page of that number is there and online."""
        there = self.flags & PRESENT and self.flags & ONLINE
        return bool(there and self.subsections >> page // PAGES_PER_SUBSECTION & 1)


@dataclass(frozen=True)
class Zone:
    """Frames from `skip` on, counted from the first section's first."""

    skip: int
    nr_pages: int
    sections: tuple[Section, ...]
    foreign: frozenset[int] = frozenset()
    """Frames, counted in the same way, whose pages are of another zone."""

    def is_contiguous(self) -> bool:
        """Whether every page of the span is there, online and its own."""
        end = self.skip + self.nr_pages
        if any(self.skip <= page < end for page in self.foreign):
            return False
        # Within a subsection all pages are alike.
        first = -(-self.skip // PAGES_PER_SUBSECTION) * PAGES_PER_SUBSECTION
        looked_at = [self.skip, *range(first, end, PAGES_PER_SUBSECTION)] if end > self.skip else []
        return all(
            self.sections[page // PAGES_PER_SECTION].has(page % PAGES_PER_SECTION)
            for page in looked_at
        )


def section_table(zone: Zone) -> NDArray[np.uint64]:
    """Flags and subsections of each section, as the runner reads them."""
    return np.array([(one.flags, one.subsections) for one in zone.sections], np.uint64)


def map_of(zone: Zone, facts: Facts, nr_pages: int) -> NDArray[np.uint8]:
    """The first `nr_pages` descriptors: nothing but the node and the zone of each page."""
    size = facts["sizeof.page"]
    words = np.zeros((nr_pages, size // 8), np.uint64)
    words[:, facts["page.flags"] // 8] = facts["ZONE_MOVABLE"] << facts["ZONES_PGSHIFT"]
    other = [page for page in zone.foreign if page < nr_pages]
    words[other, facts["page.flags"] // 8] = facts["ZONE_NORMAL"] << facts["ZONES_PGSHIFT"]
    return words.view(np.uint8).reshape(-1)


def edges(block_pages: int) -> Iterator[tuple[str, Zone]]:
    """Zones with one thing wrong, or just not: by name. block_pages: of a pageblock."""
    full, nr = Section(), 3 * PAGES_PER_SECTION
    three = (full,) * 3
    yield "whole", Zone(0, nr, three)
    yield "empty", Zone(0, 0, (full,))
    yield "early", Zone(0, nr, (Section(PRESENT | ONLINE | EARLY),) * 3)
    yield "one-page", Zone(7, 1, (full,))
    yield "one-block", Zone(block_pages, block_pages, (full,))
    yield "begins-in-a-block", Zone(3, nr - 3, three)
    yield "ends-in-a-block", Zone(0, nr - 5, three)
    for at, where in enumerate(("first", "middle", "last")):
        for what, its in _HOLES.items():
            sections = (*three[:at], its, *three[at + 1 :])
            yield f"{where}-{what}", Zone(0, nr, sections)
    for where, page in _places(nr, block_pages).items():
        yield f"foreign-{where}", Zone(0, nr, three, frozenset({page}))
    yield "foreign-last-of-a-part", Zone(0, nr - 5, three, frozenset({nr - 6}))
    # Just outside of the span nothing matters.
    yield "foreign-before", Zone(9, nr - 9, three, frozenset({8}))
    yield "foreign-behind", Zone(0, nr - 9, three, frozenset({nr - 9}))
    yield "absent-behind", Zone(0, nr - PAGES_PER_SECTION, (full, full, _HOLES["absent"]))


_HOLES: Mapping[str, Section] = {
    "absent": Section(0, 0),
    "offline": Section(PRESENT),
    "without-first-subsection": Section(subsections=ALL & ~1),
    "without-inner-subsection": Section(subsections=ALL & ~(1 << 9)),
    "without-last-subsection": Section(subsections=ALL >> 1),
}


def _places(nr_pages: int, block_pages: int) -> Mapping[str, int]:
    """Pages whose zone a pageblock is told by: first and last ones of blocks."""
    return {
        "first-page": 0,
        "end-of-first-block": block_pages - 1,
        "begin-of-a-block": 5 * block_pages,
        "end-of-a-block": 6 * block_pages - 1,
        "begin-of-last-block": nr_pages - block_pages,
        "last-page": nr_pages - 1,
    }


def mixture(seed: int, block_pages: int) -> Zone:
    """A zone of a few sections, with a hole or two, or none; the same for the same seed."""
    dice = Dice(seed)
    nr_sections = dice.number(1, MOST_SECTIONS)
    kinds = (Section(), Section(PRESENT | ONLINE | EARLY))
    sections = [dice.one_of(kinds) for _ in range(nr_sections)]
    most = nr_sections * PAGES_PER_SECTION
    skip = dice.one_of((0, 0, dice.number(0, PAGES_PER_SECTION - 1)))
    cut = dice.one_of((0, 0, dice.number(0, PAGES_PER_SECTION - 1)))
    if dice.happens(0.4):
        sections[dice.number(0, nr_sections - 1)] = dice.one_of([*_HOLES.values()])
    foreign = set()
    if dice.happens(0.4):
        block = dice.number(0, most // block_pages - 1) * block_pages
        foreign = {block + dice.one_of((0, block_pages - 1))}
    return Zone(skip, max(most - skip - cut, 1), tuple(sections), frozenset(foreign))
