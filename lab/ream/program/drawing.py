# SPDX-License-Identifier: GPL-2.0-only
"""What a random program has mapped so far, and where its next step may work.

The model is light: it keeps most steps valid, and knows nothing of what the kernel does with them.
"""

import random
from abc import ABC, abstractmethod

from ream.program.kinds import Place, Range, Value
from ream.program.scene import HUGE_PAGES, Area, Scene
from ream.program.step import Step, new_step

MOST_AREAS = 24
"""Areas of a process. Once it has so many, new mappings replace parts of old ones."""
FILE_PAGES = 1536
NR_TRIES = 20
NR_RECENT = 6


class Drawing(ABC):
    """The steps so far, and what is mapped after them."""

    def __init__(self, dice: random.Random) -> None:
        self.dice = dice
        self.steps: list[Step] = []
        self.scene = Scene()
        self.mapped: dict[int, bytearray] = {0: bytearray()}
        self.nr_names = 0
        self.recent: list[Range] = []
        self.focus: Range | None = None

    def add(
        self, verb: str, process: int | None = None, *flags: str, **values: Value | None
    ) -> None:
        step = new_step(verb, process, *flags, **values)
        self.scene.calls(step)
        self.steps.append(step)

    def maybe(self, *flags: str, of: int = 2) -> tuple[str, ...]:
        """Each flag with a chance of one in `of`."""
        return tuple(flag for flag in flags if self.dice.randrange(of) == 0)

    def size(self) -> tuple[int, bool]:
        """How many pages, and whether they begin at a huge page."""
        dice = self.dice
        match dice.randrange(10):
            case 0 | 1 | 2 | 3:
                return 1 + dice.randrange(16), False
            case 4:
                return 1 + dice.randrange(200), False
            case 6:
                return HUGE_PAGES + dice.randrange(1024), False
            case _:
                return HUGE_PAGES << dice.randrange(2), True

    def states(self, process: int, area: Area) -> bytearray:
        """What the pages of an area are mapped as."""
        mapped = self.mapped[process]
        mapped.extend(bytes(max(0, area.page + area.nr - len(mapped))))
        return mapped[area.page : area.page + area.nr]

    def put(self, process: int, area: Area, state: int | bytes) -> None:
        """Note what the pages of an area are mapped as from now on."""
        self.states(process, area)
        its = bytes([state]) * area.nr if isinstance(state, int) else state
        self.mapped[process][area.page : area.page + area.nr] = its

    def range(self, process: int, *, huge: bool = False) -> Range:
        """Pages of some area, rather where something is mapped; those before a hole.

        Many overlap pages of the last steps, of this process or of one that it has forked from.
        huge: one whole huge page, if the area has one.
        """
        chosen, self.focus = self.focus, None
        if not chosen and not huge and self.dice.randrange(2):
            chosen = self.nearby(process)
        chosen = chosen or self.anywhere(process, huge=huge)
        self.recent = [*self.recent[1 - NR_RECENT :], chosen]
        return chosen

    def nearby(self, process: int) -> Range | None:
        """Pages of the last steps, as they were or a part of them."""
        areas = self.scene.spaces[process].areas
        known = [one for one in self.recent if one.name in areas and one.begin is not None]
        if not known:
            return None
        last = self.dice.choice(known)
        begin, end = last.begin or 0, min(last.end or 1, areas[last.name].nr)
        if begin >= end:
            return None
        if self.dice.randrange(3) == 0:
            begin += self.dice.randrange(end - begin)
            end = begin + 1 + self.dice.randrange(end - begin)
        return Range(last.name, begin, end)

    def anywhere(self, process: int, *, huge: bool) -> Range:
        """Pages of an area that is drawn, rather where something is mapped."""
        areas = self.scene.spaces[process].areas
        if not areas:
            self.map_some(process)
        chosen, states = Range(""), bytearray()
        for _ in range(NR_TRIES):
            name = self.dice.choice(list(areas))
            area = areas[name]
            nr, aligned = (HUGE_PAGES, True) if huge else self.size()
            begin = self.dice.randrange(area.nr)
            if aligned:
                begin = max(0, begin - (area.page + begin) % HUGE_PAGES)
            nr = min(nr, area.nr - begin)
            states = self.states(process, Area(area.page + begin, nr))
            chosen = Range(name, begin, begin + nr)
            if states[0]:
                break
        assert chosen.begin is not None
        run = states.find(0)
        return Range(chosen.name, chosen.begin, chosen.begin + run) if run > 0 else chosen

    def part(self, chosen: Range) -> Range:
        """Some of these pages."""
        assert chosen.begin is not None
        assert chosen.end is not None
        begin = chosen.begin + self.dice.randrange(chosen.end - chosen.begin)
        nr = min(1 + self.dice.randrange(16), chosen.end - begin)
        return Range(chosen.name, begin, begin + nr)

    def where(self, process: int) -> dict[str, Value | None]:
        """A place for a new mapping: behind all areas, next to one, or over a part of one."""
        areas = self.scene.spaces[process].areas
        if not areas or (len(areas) < MOST_AREAS and self.dice.randrange(2)):
            return {}
        name = self.dice.choice(list(areas))
        if len(areas) < MOST_AREAS and self.dice.randrange(2):
            return {"after": Place(name)}
        offset = self.dice.randrange(areas[name].nr)
        if self.dice.randrange(2):
            offset -= offset % HUGE_PAGES
        return {"at": Place(name, offset)}

    def protection(self) -> str:
        return self.dice.choice(("rw", "rw", "rw", "r", "none"))

    def name(self, process: int) -> str:
        """A new name, or one that a new mapping takes over."""
        areas = self.scene.spaces[process].areas
        if len(areas) >= MOST_AREAS:
            return self.dice.choice(list(areas))
        self.nr_names += 1
        return f"a{self.nr_names}"

    def file(self) -> str:
        return self.dice.choice(list(self.scene.files))

    def file_range(self, most: int) -> Range:
        nr = 1 + self.dice.randrange(most)
        begin = self.dice.randrange(FILE_PAGES - nr)
        return Range(self.file(), begin, begin + nr)

    @abstractmethod
    def map_some(self, process: int) -> None:
        """Map something, since nothing is mapped."""
