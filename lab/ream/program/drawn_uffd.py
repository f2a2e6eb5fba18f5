# SPDX-License-Identifier: GPL-2.0-only
"""Random steps on pages whose faults the process itself serves, or whose writes it is told of."""

from ream.program.drawing import MOST_AREAS, NR_RECENT
from ream.program.drawn_kernel import Kernel
from ream.program.drawn_spaces import ANON, SHARED, WRITABLE
from ream.program.kinds import Place, Range
from ream.program.scene import HUGE_PAGES

_THP = "/sys/kernel/mm/transparent_hugepage/"


class Uffd(Kernel):
    """Each mixture adds one step or a few."""

    def uffd_wp(self, process: int) -> None:
        chosen = self.range(process)
        if self.dice.randrange(8) == 0:
            self.add("uffd_unregister", process, area=chosen)
            return
        self.add("uffd_register", process, area=chosen, mode=("wp",))
        protects = "on" if self.dice.randrange(3) else "off"
        self.add("uffd_wp", process, area=chosen, protects=protects)

    def uffd_keep(self, process: int) -> None:
        """Write protection of pages for which the kernel then finds other places and entries."""
        chosen = self.sparse(process) if self.dice.randrange(3) else self.range(process, huge=True)
        self.add("uffd_register", process, area=chosen, mode=("wp",))
        self.add("uffd_wp", process, area=chosen, protects="on")
        for _ in range(1 + self.dice.randrange(3)):
            if not self.rearrange(process, chosen):
                return
        self.add("read", process, area=self.part(chosen))
        self.add("write", process, area=self.part(chosen))

    def sparse(self, process: int) -> Range:
        """A new huge page of which most is zero."""
        if len(self.scene.spaces[process].areas) >= MOST_AREAS:
            return self.range(process, huge=True)
        name = self.name(process)
        self.add("mmap", process, name=name, nr=HUGE_PAGES, source="anon", sharing="private",
                 protection="rw", thp="always")  # fmt: skip
        self.put(process, self.scene.spaces[process].areas[name], ANON | WRITABLE)
        whole = Range(name, 0, HUGE_PAGES)
        self.add("write", process, area=self.part(whole))
        self.recent = [*self.recent[1 - NR_RECENT :], whole]
        return whole

    def rearrange(self, process: int, chosen: Range) -> bool:
        """Something after which pages are elsewhere; whether all are still mapped."""
        some = self.dice.choice((chosen, self.part(chosen), self.part(chosen)))
        match self.dice.randrange(9):
            case 0 | 1 | 2:
                advice = self.dice.choice(("cold", "pageout", "free", "dontneed", "collapse"))
                area = chosen if advice == "collapse" else some
                self.add("madvise", process, area=area, advice=advice)
            case 3:
                self.add("move_pages", process, area=some, node=self.dice.randrange(2))
            case 4:
                for protection in ("none", "rw"):
                    self.add("mprotect", process, area=some, protection=protection)
            case 5:
                self.add("call", process, function="numa_hint", area=some)
                self.add("read", process, area=some)
            case 6:
                self.swap()
            case 7:
                self.add("set", file=_THP + "khugepaged/max_ptes_none", value="64")
                self.add("set", file="/proc/sys/vm/drop_caches", value="2")
            case _:
                self.focus = self.part(chosen)
                if self.dice.randrange(8):
                    self.munmap(process)
                else:
                    self.mremap(process)
                self.add("set", file="/proc/sys/vm/drop_caches", value="2")
                return False
        return True

    def uffd_fill(self, process: int) -> None:
        """Pages that the program itself provides, and none of which is touched before."""
        nr = self.dice.choice((1, 10, 64, HUGE_PAGES))
        for _ in range(2):
            self.map(process, nr, "anon", "private", "populate")
        areas = self.scene.spaces[process].areas
        names = [step.word("name") for step in self.steps[-2:]]
        if areas[names[0]].page + nr > areas[names[1]].page > areas[names[0]].page - nr:
            return  # one lies over the other
        filled, source = map(Range, names)
        self.add("madvise", process, area=filled, advice="dontneed")
        self.add("uffd_register", process, area=filled, mode=("missing", "wp"))
        match self.dice.randrange(4):
            case 0:
                self.add("uffd_copy", process, *self.maybe("wp", of=4), area=filled)
            case 1:
                self.add("uffd_zero", process, area=filled)
            case 2:
                poisoned = Range(filled.name, 0, 1 + self.dice.randrange(nr))
                self.add("uffd_poison", process, area=poisoned)
            case _:
                self.uffd_move(process, filled.name, Range(source.name, 0, nr))
        self.add("uffd_unregister", process, area=filled)

    def uffd_move(self, process: int, target: str, source: Range) -> None:
        """Pages in all states become those of another place."""
        dice, begin, end = self.dice, 0, source.end or 1
        self.add("write", process, area=source)
        if dice.randrange(2):
            self.add("call", process, function="clear_refs", x=4)
        for _ in range(dice.randrange(4)):
            some = dice.choice((source, self.part(source), self.part(source)))
            match dice.randrange(6):
                case 0 | 1 | 2:
                    advice = dice.choice(("pageout", "pageout", "cold", "free"))
                    self.add("madvise", process, area=some, advice=advice)
                case 3:
                    self.add("reclaim", nr=64)
                case 4:
                    self.add("call", process, function="split", area=some, x=2)
                case _:
                    self.add("read", process, area=some)
        if dice.randrange(3) == 0:
            begin = dice.randrange(end)
            end = begin + 1 + dice.randrange(end - begin)
        if dice.randrange(3) == 0:
            self.add("migrating", process, area=source)
        self.add("uffd_move", process, area=Range(target, begin, end),
                 from_=Place(source.name, begin))  # fmt: skip
        self.add("read", process, area=Range(target, begin, end))

    def shared_memory(self, process: int) -> None:
        """Pages of a file for which the process itself serves faults."""
        nr, name = 1 + self.dice.randrange(64), self.name(process)
        if len(self.scene.spaces[process].areas) >= MOST_AREAS:
            return self.munmap(process)
        source, area = Place(self.dice.choice(("f", "h"))), Range(name)
        self.add("pwrite", pages=Range(source.name, 0, nr))
        self.add("mmap", process, name=name, nr=nr, source=source, sharing="shared",
                 protection="rw")  # fmt: skip
        self.add("uffd_register", process, area=area, mode=("minor",))
        self.add("uffd_continue", process, area=area)
        self.add("read", process, area=area)
        self.add("uffd_unregister", process, area=area)
        self.put(process, self.scene.spaces[process].areas[name], SHARED | WRITABLE)
        return None
