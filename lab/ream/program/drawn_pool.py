# SPDX-License-Identifier: GPL-2.0-only
"""Random steps on huge pages of the pool, of which there may be too few."""

from ream.program.drawing import FILE_PAGES, MOST_AREAS
from ream.program.drawn_spaces import ANON, SHARED, WRITABLE, Spaces
from ream.program.kinds import Place, Range, Value
from ream.program.scene import HUGE_PAGES

GIGABYTE_PAGES = 1 << 18
"""So many aligned pages have a table of huge pages for themselves, which mappings may share."""
MOST_USES = 10
POOL_FILES = ("t", "q")
LARGEST = "u"
"""A file of a gigabyte, of which most is never used."""
_POOL = "/proc/sys/vm/nr_hugepages"
_SETTINGS = (
    (_POOL, ("0", "1", "3", "4", "8", "20")),
    ("/proc/sys/vm/nr_overcommit_hugepages", ("0", "2", "6")),
    ("/proc/sys/vm/nr_hugepages_mempolicy", ("3", "8")),
    ("/sys/devices/system/node/node0/hugepages/hugepages-2048kB/nr_hugepages", ("0", "2", "5")),
    ("/sys/devices/system/node/node1/hugepages/hugepages-2048kB/nr_hugepages", ("0", "1", "5")),
    ("/sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages", ("0", "1", "1")),
    ("/sys/kernel/mm/hugepages/hugepages-1048576kB/demote", ("1",)),
    ("/sys/fs/cgroup/g/hugetlb.2MB.max", ("4M", "max")),
    ("/sys/fs/cgroup/g/hugetlb.2MB.rsvd.max", ("6M", "max")),
)
_ADVICE = ("dontneed", "dontneed", "remove", "dontneed-locked", "populate-write", "populate-read",
           "dontfork", "dofork", "willneed", "cold")  # fmt: skip


class Pool(Spaces):
    """Each mixture adds one step or a few."""

    def map_gigabyte(self) -> None:
        """Map so much of a file that its processes may share the table, before anything else."""
        self.add("mmap", 0, "noreserve", name="v", nr=GIGABYTE_PAGES, source=Place(LARGEST),
                 sharing="shared", protection="rw")  # fmt: skip
        self.put(0, self.scene.spaces[0].areas["v"], SHARED | WRITABLE)
        self.add("set", file=_POOL, value="8")
        self.add("write", 0, area=Range("v", 0, 1))

    def huge(self, process: int) -> None:
        """Map huge pages, and use them in ways that need or give back some of the pool."""
        dice = self.dice
        if dice.randrange(2):
            self.add("set", file=_POOL, value=dice.choice(("3", "4", "8", "20")))
        shared = Range("v", 0, 2 * HUGE_PAGES)
        if process in self.having(shared) and dice.randrange(2):
            area, file = shared, LARGEST
        elif len(self.scene.spaces[process].areas) >= MOST_AREAS:
            return self.munmap(process)
        else:
            area, file = self.map_huge(process)
        for _ in range(1 + dice.randrange(MOST_USES)):
            self.use_huge(process, area, file)
            having = self.having(area)
            if not having:
                break
            if process not in having or dice.randrange(4) == 0:
                process = dice.choice(sorted(having))
        return None

    def having(self, area: Range) -> list[int]:
        """The processes in which all of a range is in its area, which may have become smaller."""
        areas = ((one, its.areas.get(area.name)) for one, its in self.scene.spaces.items())
        return [one for one, its in areas if its is not None and its.nr >= (area.end or 0)]

    def map_huge(self, process: int) -> tuple[Range, str]:
        """Map one to three huge pages; which ones, and of which file, if any."""
        dice = self.dice
        nr, name = HUGE_PAGES * (1 + dice.randrange(3)), self.name(process)
        file = dice.choice([*(one for one in POOL_FILES if one in self.scene.files), ""])
        offset = HUGE_PAGES * dice.randrange((FILE_PAGES - nr) // HUGE_PAGES + 1)
        source: Value = Place(file, offset) if file else "anon"
        sharing = dice.choice(("shared", "private"))
        flags = (*(() if file else ("hugetlb",)), *self.maybe("noreserve", "populate", of=5))
        protection = "rw" if dice.randrange(8) else "r"
        self.add("mmap", process, *flags, name=name, nr=nr, source=source, sharing=sharing,
                 protection=protection)  # fmt: skip
        kind = SHARED if sharing == "shared" else ANON
        state = kind | (WRITABLE if protection == "rw" else 0)
        self.put(process, self.scene.spaces[process].areas[name], state)
        return Range(name, 0, nr), file

    def use_huge(self, process: int, area: Range, file: str) -> None:
        """One step or a few on one of these huge pages."""
        dice = self.dice
        begin = HUGE_PAGES * dice.randrange((area.end or 0) // HUGE_PAGES)
        whole = Range(area.name, begin, begin + HUGE_PAGES)
        page = Range(area.name, begin, begin + 1)
        match dice.randrange(24):
            case 0 | 1 | 2 | 3 | 4:
                self.add("write", process, area=page)
            case 5:
                self.add("read", process, area=page)
            case 6 | 7:
                self.add("madvise", process, area=whole, advice=dice.choice(_ADVICE))
            case 8 | 9 if file:
                self.change_huge(file, begin)
            case 10:
                self.add("munmap", process, area=whole)
                self.put(process, self.scene.spaces[process].pages(whole), 0)
            case 11:
                self.move_huge(process, whole)
            case 12 | 13 | 14 | 15 | 16 | 17 | 18:
                self.spoil_huge(process, whole, page)
            case 19 | 20:
                self.serve_huge(process, whole)
            case _:
                self.copy_huge(process, page)

    def spoil_huge(self, process: int, whole: Range, page: Range) -> None:
        """Something after which a huge page is another one, or can be had no more."""
        dice = self.dice
        match dice.randrange(8):
            case 0:
                self.add("mprotect", process, area=whole, protection=self.protection())
            case 1:
                self.add("move_pages", process, "all", area=page, node=dice.randrange(2))
            case 2:
                advice = dice.choice(("hwpoison", "soft-offline", "soft-offline"))
                self.add("madvise", process, area=page, advice=advice)
            case 3 | 4:
                where, values = dice.choice(_SETTINGS)
                self.add("set", file=where, value=dice.choice(values))
            case 5:
                self.add("pin", process, *self.maybe("write", "longterm"), area=page)
                self.pinned.append((process, page))
            case 6:
                self.add("fail", nr=1 + dice.randrange(3))
                self.add("write", process, area=page)
            case _:
                self.take_huge(process)

    def change_huge(self, file: str, begin: int) -> None:
        """Cut a file, or take pages out of it or put some into it."""
        pages = Range(file, begin, begin + HUGE_PAGES)
        match self.dice.randrange(5):
            case 0:
                self.add("truncate", file=file, nr=begin)
                nr = GIGABYTE_PAGES if file == LARGEST else FILE_PAGES
                self.add("truncate", file=file, nr=nr)
            case 1 | 2:
                self.add("fallocate", None, "punch", pages=pages)
            case _:
                self.add("fallocate", None, *self.maybe("keep"), pages=pages)

    def move_huge(self, process: int, whole: Range) -> None:
        """One huge page goes elsewhere, or the mapping of it; private ones go as a whole."""
        areas = self.scene.spaces[process].areas
        if len(areas) >= MOST_AREAS:
            return self.add("read", process, area=whole)
        if self.states(process, areas[whole.name])[0] & SHARED != SHARED:
            whole = Range(whole.name, 0, areas[whole.name].nr)  # what it is promised goes with it
        nr = (whole.end or 0) - (whole.begin or 0)
        states = bytes(self.states(process, self.scene.spaces[process].pages(whole)))
        target = self.name(process)
        flags = self.maybe("dontunmap", of=4)
        self.add("mremap", process, *flags, area=whole, target=Place(target), new_nr=nr)
        if not flags:
            self.put(process, self.scene.spaces[process].pages(whole), 0)
        return self.put(process, self.scene.spaces[process].areas[target], states)

    def serve_huge(self, process: int, whole: Range) -> None:
        """The process itself provides a huge page, or is told when it is written."""
        dice = self.dice
        mode = dice.choice((("missing",), ("missing", "wp"), ("minor",), ("wp",)))
        if mode != ("wp",):
            self.add("madvise", process, area=whole, advice=dice.choice(("dontneed", "remove")))
        self.add("uffd_register", process, area=whole, mode=mode)
        match dice.randrange(4):
            case 0:
                self.add("uffd_wp", process, area=whole, protects=dice.choice(("on", "off")))
            case 1:
                self.add("uffd_continue", process, area=whole)
            case 2:
                self.add("uffd_poison", process, area=whole)
            case _:
                self.add("uffd_copy", process, *self.maybe("wp", of=4), area=whole)
        if dice.randrange(3):
            self.add("uffd_unregister", process, area=whole)

    def take_huge(self, process: int) -> None:
        """Something else wants the memory in which huge pages are, or the pages of a file."""
        function, x, y = self.dice.choice((("alloc_contig", 0, 4096), ("offline", 1, 0),
                                           ("pin_file", 5, 20), ("unpoison", 0, 0)))  # fmt: skip
        self.add("call", process, function=function, x=x or None, y=y or None)

    def copy_huge(self, process: int, page: Range) -> None:
        """A child has the same pages until one of the two writes, which takes another one."""
        self.add("write", process, area=page)
        self.fork(process)
        if self.steps[-1].verb != "fork":
            return
        child = self.steps[-1].number("child")
        for one in self.dice.sample((process, child), 2):
            self.add("write", one, area=page)
