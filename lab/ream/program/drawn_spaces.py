# SPDX-License-Identifier: GPL-2.0-only
"""Random steps that change an address space, or use its pages."""

import random
from collections.abc import Mapping

from ream.program.drawing import FILE_PAGES, Drawing
from ream.program.kinds import Place, Range, Value
from ream.program.scene import HUGE_PAGES, Area

NR_PROCESSES = 4
ANON, PRIVATE_FILE, SHARED = 1, 2, 3
"""What a page is mapped as; 0: not at all."""
_KIND = 3
WRITABLE = 4


class Spaces(Drawing):
    """Each mixture adds one step or a few."""

    def __init__(self, dice: random.Random, weights: Mapping[str, int]) -> None:
        super().__init__(dice)
        self.weights = weights
        self.pinned: list[tuple[int, Range]] = []

    def map(self, process: int, nr: int, source: Value, sharing: str, *flags: str) -> None:
        protection = "rw" if flags else self.protection()
        name = self.name(process)
        self.add(
            "mmap", process, *flags,
            name=name, nr=nr, source=source, sharing=sharing, protection=protection,
            thp=self.dice.choice((None, None, "always", "always", "never")), **self.where(process),
        )  # fmt: skip
        kind = PRIVATE_FILE if isinstance(source, Place) else ANON
        state = SHARED if sharing == "shared" else kind
        area = self.scene.spaces[process].areas[name]
        self.put(process, area, state | (WRITABLE if protection == "rw" else 0))

    def map_anon(self, process: int, *flags: str) -> None:
        sharing = "private" if self.dice.randrange(8) else "shared"
        if self.dice.randrange(24) == 0:
            sharing = "droppable"
        self.map(process, self.size()[0], "anon", sharing, *flags)

    def map_some(self, process: int) -> None:
        self.map_anon(process)

    def map_file(self, process: int, sharing: str) -> None:
        nr = min(self.size()[0], FILE_PAGES)
        offset = self.dice.randrange(FILE_PAGES - nr + 1)
        if self.dice.randrange(2):
            offset -= offset % HUGE_PAGES
        place = Place(self.file(), offset)
        self.map(process, nr, place, sharing, *self.maybe("populate", of=3))

    def munmap(self, process: int) -> None:
        chosen = self.range(process)
        self.add("munmap", process, area=chosen)
        self.put(process, self.scene.spaces[process].pages(chosen), 0)

    def access(self, process: int, verb: str, *, single: bool = False, same: bool = False) -> None:
        chosen = self.range(process)
        if single and chosen.begin is not None:
            chosen = Range(chosen.name, chosen.begin, chosen.begin + 1)
        value = 0x5000 + self.dice.randrange(3) if same else None
        self.add(verb, process, area=chosen, **({"same": value} if same else {}))

    def mprotect(self, process: int) -> None:
        chosen, protection = self.range(process), self.protection()
        self.add("mprotect", process, area=chosen, protection=protection)
        area = self.scene.spaces[process].pages(chosen)
        writable = WRITABLE if protection == "rw" else 0
        kinds = bytes((one & _KIND) | writable if one else 0 for one in self.states(process, area))
        self.put(process, area, kinds)

    def mremap(self, process: int) -> None:
        chosen, space = self.range(process), self.scene.spaces[process]
        old = space.pages(chosen)
        flags = self.maybe("dontunmap", of=8)
        nr = old.nr if flags or self.dice.randrange(3) else 1 + self.dice.randrange(2 * old.nr)
        if nr != old.nr and self.dice.randrange(2):
            target = Place(chosen.name, chosen.begin or 0)
            self.add("mremap", process, "stay", area=chosen, target=target, new_nr=nr)
            moved = old.page
        else:
            where = self.where(process)
            if flags and self.dice.randrange(2):
                where = {"after": Place(chosen.name)}  # where the two may become one again
            target = Place(self.name(process))
            if "at" in where and isinstance(where["at"], Place):
                target, where = where["at"], {}
            self.add("mremap", process, *flags, area=chosen, target=target, new_nr=nr, **where)
            moved = space.page(target)
        states = self.states(process, old)
        if not flags:
            self.put(process, old, 0)
        self.put(process, Area(moved, nr), bytes(states[:1]) * nr)

    def madvise(self, process: int, advice: str) -> None:
        chosen = self.range(process, huge=advice == "collapse")
        self.add("madvise", process, area=chosen, advice=advice)
        match self.dice.randrange(3) if advice == "mergeable" else None:
            case 0:
                self.add("madvise", process, area=chosen, advice="unmergeable")
            case 1:
                self.add("wait", ms=11000)

    def fork(self, process: int) -> None:
        free = [one for one in range(NR_PROCESSES) if one not in self.scene.spaces]
        if not free:
            return self.exit(process)
        self.add("fork", process, child=free[0])
        self.mapped[free[0]] = bytearray(self.mapped[process])
        return None

    def exit(self, process: int) -> None:
        if len(self.scene.spaces) == 1:
            return self.fork(process)
        self.add("exit", process)
        self.pinned = [pin for pin in self.pinned if pin[0] != process]
        return None

    def on_range(self, process: int, verb: str, *flags: str, **values: Value | None) -> None:
        self.add(verb, process, *flags, area=self.range(process), **values)
