# SPDX-License-Identifier: GPL-2.0-only
"""Random steps that split VMAs, merge them, and let that fail."""

from abc import abstractmethod

from ream.program.drawing import MOST_AREAS
from ream.program.drawn_spaces import ANON, WRITABLE
from ream.program.drawn_uffd import Uffd
from ream.program.kinds import Place, Range
from ream.program.scene import HUGE_PAGES, Area

ROW_PAGES = 12
ROW = range(3, ROW_PAGES + 1)
"""Pages of an area in which VMAs are many and small."""
_IN_ROW = "x"
"""The name of what was mapped last in such an area ends so."""
MOST_IN_ROW = 10
"""Steps on such pages behind one another."""
_MAX_MAP_COUNT = "/proc/sys/vm/max_map_count"
_VMA_ADVICE = ("dontfork", "dofork", "dontdump", "dodump", "wipeonfork", "keeponfork", "random",
               "normal", "nohugepage", "mergeable", "unmergeable", "dontneed")  # fmt: skip
"""Advice that splits or merges VMAs, or makes them empty."""
OF_DEVICES = {"i": "frames", "j": "faulted", "k": "mixed"}
_UNCOMMON = ("z", "e", "s", *OF_DEVICES)
"""Files that some programs have."""


class Vmas(Uffd):
    """Each mixture adds one step or a few."""

    def row(self, process: int) -> Range:
        """A small area, rather a new one, which has no page yet."""
        areas = self.scene.spaces[process].areas
        names = (name for name in areas if not name.endswith(_IN_ROW))
        small = [name for name in names if areas[name].nr in ROW]
        if small and (len(areas) >= MOST_AREAS or self.dice.randrange(2)):
            return Range(name := self.dice.choice(small), 0, areas[name].nr)
        if len(areas) >= MOST_AREAS:
            return self.range(process)
        self.map(process, ROW_PAGES, "anon", "private", *self.maybe("noreserve", "stack", of=8))
        name = self.steps[-1].word("name")
        return Range(name, 0, ROW_PAGES)

    def arrange(self, process: int) -> None:
        """Many small VMAs side by side, which become one and are parted again."""
        row, is_limited = self.row(process), self.dice.randrange(10) == 0
        if is_limited:
            self.add("set", file=_MAX_MAP_COUNT, value=str(4 + self.dice.randrange(20)))
        for _ in range(3 + self.dice.randrange(MOST_IN_ROW - 2)):
            if process not in self.scene.spaces:
                break
            self.in_row(process, row)
        if is_limited:
            self.add("set", file=_MAX_MAP_COUNT, value="65530")

    def in_row(self, process: int, row: Range) -> None:
        """One step on some pages of a small area."""
        dice, part = self.dice, self.part(row) if self.dice.randrange(4) else row
        if dice.randrange(12) == 0:
            self.fail()
        match dice.randrange(14):
            case 0 | 1:
                self.map_in_row(process, part)
            case 2:
                self.add("munmap", process, area=part)
                self.put(process, self.scene.spaces[process].pages(part), 0)
            case 3 | 4:
                self.add("mprotect", process, area=part, protection=self.protection())
            case 5 | 6:
                flags = dice.choice(((), ("onfault",), ("onfault",)))
                self.add("mlock", process, *flags, area=part)
            case 7 | 8:
                self.add("madvise", process, area=part, advice=dice.choice(_VMA_ADVICE))
            case 9 | 10 | 11:
                self.move_in_row(process, row, part)
            case 12:
                self.fork(process)
            case _:
                self.or_so(process, part)

    def or_so(self, process: int, part: Range) -> None:
        """A step after which the VMAs are the same, or almost."""
        dice = self.dice
        match dice.randrange(6):
            case 0:
                self.add("call", process, function="name", area=part, x=dice.randrange(3))
            case 1:
                nr = 1 + dice.randrange(ROW_PAGES)
                self.add("call", process, function="map_low", x=dice.randrange(nr), y=nr)
            case 2:
                self.add("munlock", process, area=part)
            case _:
                self.add(dice.choice(("write", "write", "read")), process, area=part)

    def map_in_row(self, process: int, part: Range) -> None:
        """New pages in the place of some."""
        area, protection = self.scene.spaces[process].pages(part), self.protection()
        self.add("mmap", process, *self.maybe("noreserve", "stack", of=12),
                 name=f"{part.name}{_IN_ROW}", nr=area.nr, source="anon", sharing="private",
                 protection=protection, at=Place(part.name, part.begin or 0))  # fmt: skip
        self.put(process, area, ANON | (WRITABLE if protection == "rw" else 0))

    def move_in_row(self, process: int, row: Range, part: Range) -> None:
        """Some pages go to others of the same area, or right behind it."""
        dice, space = self.dice, self.scene.spaces[process]
        old, whole = space.pages(part), space.area(row.name)
        nr = old.nr if dice.randrange(3) else 1 + dice.randrange(old.nr)
        flags = self.maybe("dontunmap", of=2) if nr == old.nr else ()
        choices = [0, whole.nr - nr, old.page - whole.page - nr, old.page - whole.page + old.nr]
        target = Place(row.name, min(whole.nr, max(0, dice.choice(choices))))
        self.add("mremap", process, *flags, area=part, target=target, new_nr=nr)
        if not flags:
            self.put(process, old, 0)
        self.put(process, Area(space.page(target), nr), ANON | WRITABLE)

    def lock_all(self, process: int) -> None:
        """All that is mapped is locked, or what will be, as far as it can be; seldom for long."""
        self.add("mlockall", process, "future", *self.maybe("current", "onfault"))
        match self.dice.randrange(5):
            case 0:
                self.map(process, ROW_PAGES, "anon", "droppable")
            case 1:
                self.huge(process)
            case 2:
                self.uncommon_file(process)
            case _:
                self.map_anon(process)
        if process in self.scene.spaces:
            self.arrange(process)
        if process in self.scene.spaces and self.dice.randrange(4):
            self.add("munlockall", process)

    def fail_early(self, process: int) -> None:
        """The same step fails at one allocation after another until it has all it needs."""
        chosen = self.row(process) if self.dice.randrange(2) else self.range(process)
        self.then(process, chosen)
        last = self.steps[-1]
        if last.process != process or last.verb in {"fork", "exit"}:
            return
        for nr in range(1, 2 + self.dice.randrange(6)):
            self.add("fail", nr=nr)
            self.steps.append(last)

    def uncommon_file(self, process: int) -> None:
        """A huge page of a file that is not just any, as the process's own or not."""
        files = [name for name in _UNCOMMON if name in self.scene.files]
        if not files or len(self.scene.spaces[process].areas) >= MOST_AREAS:
            return self.map_file(process, "private")
        file = self.dice.choice(files)
        is_device = file in OF_DEVICES
        sharing = "shared" if is_device else self.dice.choice(("private", "private", "shared"))
        self.map(process, HUGE_PAGES, Place(file, 0), sharing)
        chosen = Range(self.steps[-1].word("name"), 0, HUGE_PAGES)
        self.add("madvise", process, area=chosen, advice="hugepage")
        self.add("write", process, area=self.part(chosen))
        return self.then(process, chosen)

    def free_hint(self, process: int) -> None:
        """Addresses that are free between others are wished for."""
        chosen = self.range(process, huge=self.dice.randrange(2) == 0)
        self.add("munmap", process, area=chosen)
        self.put(process, self.scene.spaces[process].pages(chosen), 0)
        self.add("call", process, function="mmap_anywhere", area=chosen)

    @abstractmethod
    def then(self, process: int, chosen: Range) -> None:
        """Go on with something that changes the entries of these pages."""
