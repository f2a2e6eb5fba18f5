# SPDX-License-Identifier: GPL-2.0-only
"""Random steps on files, and on pages that the kernel merges or reads ahead."""

from ream.program.drawing import FILE_PAGES, MOST_AREAS
from ream.program.drawn_pool import Pool
from ream.program.drawn_spaces import SHARED, WRITABLE
from ream.program.kinds import Place, Range
from ream.program.scene import HUGE_PAGES

MOST_FAILING = 16
"""One of the first so many allocations of a step fails."""
_SHARED_FOLIOS = "/sys/kernel/mm/transparent_hugepage/hugepages-{}kB/shmem_enabled"
TO_SEAL = "m"
"""A file that is sealed, while others are spared."""


class Files(Pool):
    """Each mixture adds one step or a few."""

    def fail(self) -> None:
        """An allocation of the next step fails, or all large ones do as where memory is in bits."""
        if self.dice.randrange(3):
            self.add("fail", nr=1 + self.dice.randrange(MOST_FAILING))
        else:
            self.add("fail", nr=1, order=self.dice.choice((1, 3, 5, 9)))

    def swap(self) -> None:
        self.add("swap", size="off")
        self.add("swap", size="on")

    def swap_in_part(self, process: int) -> None:
        """Large folios of shared memory go to swap, and only some pages of each are used again."""
        dice = self.dice
        if len(self.scene.spaces[process].areas) >= MOST_AREAS:
            return self.munmap(process)
        for size in dice.sample((16, 64, 512, 2048), 1 + dice.randrange(2)):
            value = dice.choice(("always", "always", "always", "within_size", "never"))
            self.add("set", file=_SHARED_FOLIOS.format(size), value=value)
        nr, name = dice.choice((16, 100, HUGE_PAGES, 2 * HUGE_PAGES)), self.name(process)
        source: Place | str = "anon"
        if dice.randrange(2):
            source = Place(dice.choice(("f", "h")), dice.choice((0, HUGE_PAGES)))
            nr = max(nr, HUGE_PAGES)
            pages = Range(source.name, source.offset, source.offset + nr)
            self.add("fallocate", None, "punch", pages=pages)  # pages there would stay small
        self.add("mmap", process, name=name, nr=nr, source=source, sharing="shared",
                 protection="rw")  # fmt: skip
        self.put(process, self.scene.spaces[process].areas[name], SHARED | WRITABLE)
        if dice.randrange(4) == 0:
            self.fail()
        if dice.randrange(2):  # a page that is not the first one of its folio
            begin = dice.randrange(nr)
            self.add("write", process, area=Range(name, begin, begin + 1))
        self.add("write", process, area=Range(name))
        self.add("madvise", process, area=Range(name), advice="pageout")
        for _ in range(2 + dice.randrange(4)):
            begin = dice.randrange(nr)
            end = min(nr, begin + 1 + dice.randrange(dice.choice((1, 8, 40, nr))))
            if dice.randrange(3) == 0:
                self.add("fail", nr=1 + dice.randrange(2))
            self._use_some(process, Range(name, begin, end), source)
        self.add("read", process, area=Range(name))
        return None

    def _use_some(self, process: int, some: Range, source: Place | str) -> None:
        """Something on pages of shared memory that may be in swap."""
        begin, end = some.begin or 0, some.end or 1
        match self.dice.randrange(12):
            case 0 | 1:
                self.add(self.dice.choice(("read", "write")), process, area=some)
            case 10 | 11:  # entries beside these map the same folio
                self.add("madvise", process, area=some, advice="dontneed")
                self.add(self.dice.choice(("read", "write")), process, area=some)
            case 3:
                advice = self.dice.choice(("pageout", "populate-read"))
                self.add("madvise", process, area=some, advice=advice)
            case 4 | 5:
                advice = self.dice.choice(("pageout", "collapse"))
                self.add("madvise", process, area=Range(some.name), advice=advice)
            case 7:  # its first pages are read ahead, one by one
                self.add("madvise", process, area=some, advice="willneed")
                self.add("fail", nr=1 + self.dice.randrange(2))
                self.add("read", process, area=some)
            case 6:
                self.add("move_pages", process, "all", area=some, node=self.dice.randrange(2))
            case 2 if self.dice.randrange(4) == 0:
                self.swap()
            case 8 if isinstance(source, Place):
                self.add("truncate", file=source.name, nr=source.offset + begin)
                self.add("truncate", file=source.name, nr=FILE_PAGES)
            case 9 if isinstance(source, Place):
                pages = Range(source.name, source.offset + begin, source.offset + end)
                self.add("fallocate", None, "punch", pages=pages)
            case _:
                self.add("madvise", process, area=some, advice="remove")

    def change_file(self) -> None:
        dice = self.dice
        match dice.randrange(8):
            case 0 | 1:
                self.add("truncate", file=self.file(), nr=dice.randrange(FILE_PAGES + 1))
            case 2 | 3:
                self.add("fallocate", None, "punch", pages=self.file_range(600))
            case 4:
                self.add("fallocate", None, *self.maybe("keep"), pages=self.file_range(64))
            case 5:
                self.add("fsync", file=self.file())
            case _:
                flags = self.maybe("dontcache", "nowait", of=6)
                self.add("pwrite", None, *flags, pages=self.file_range(16))

    def large_folios(self, process: int) -> None:
        """Large folios of a file, of which a part is cut off while all are mapped."""
        dice, files = self.dice, [one for one in ("l", "b", "h") if one in self.scene.files]
        file, offset = dice.choice(files), HUGE_PAGES * dice.randrange(FILE_PAGES // HUGE_PAGES)
        if dice.randrange(2):
            self.add("pwrite", pages=Range(file, offset, offset + HUGE_PAGES))
        else:
            self.add("truncate", file=file, nr=FILE_PAGES)
        self.map(process, HUGE_PAGES, Place(file, offset), "shared" if dice.randrange(4) else
                 "private", *self.maybe("populate"))  # fmt: skip
        area = Range(self.steps[-1].word("name"), 0, HUGE_PAGES)
        for _ in range(1 + dice.randrange(4)):
            self.use_file(process, file, area)
        if dice.randrange(4) == 0:
            self.add("call", process, function="split", x=dice.choice((None, 2, 4)))
        self.cut(file, offset)
        self.add("read", process, area=area)
        if dice.randrange(3) == 0:  # folios that cross the end and are clean can be split
            self.add("fsync", file=file)
            self.add("read", process, area=area)
            self.add("call", process, function="split", area=area, x=dice.choice((None, 1, 2, 4)))

    def use_file(self, process: int, file: str, area: Range) -> None:
        """Something after which entries and folios of a file are others."""
        dice, part = self.dice, self.part(area)
        some = dice.choice((area, part))
        match dice.randrange(10):
            case 8:
                self.add("madvise", process, area=part, advice="dontneed")
                self.add(dice.choice(("read", "write")), process, area=part)
            case 0:
                self.add("write", process, area=some)
            case 1:
                self.add("read", process, area=some)
            case 2 | 3:
                self.add("fsync", file=file)
            case 4:
                self.add("mlock", process, area=part)
            case 5:
                self.add("madvise", process, area=area, advice=dice.choice(("cold", "pageout")))
            case 6:
                self.add("pin", process, "get", area=part)
                self.pinned.append((process, part))
            case 7:
                self.add("move_pages", process, area=area, node=dice.randrange(2))
            case _:
                self.add("migrating", process, area=part)

    def cut(self, file: str, offset: int) -> None:
        """Take pages of a huge one away from a file."""
        begin = offset + self.dice.randrange(HUGE_PAGES)
        if self.dice.randrange(3):
            self.add("truncate", file=file, nr=begin)
        else:
            self.add("fallocate", None, "punch",
                     pages=Range(file, begin, begin + 1 + self.dice.randrange(64)))  # fmt: skip

    def merge(self, process: int) -> None:
        """The kernel makes one page of those that are equal."""
        chosen = self.range(process)
        self.add("write", process, area=chosen, same=0x5000)
        self.add("madvise", process, area=chosen, advice="mergeable")
        self.add("set", file="/sys/kernel/mm/ksm/run", value="1")
        self.add("wait", ms=2000)

    def look(self, process: int) -> None:
        """Something after which memory holds what it held."""
        advice = self.dice.choice(("normal", "random", "sequential", "willneed", "dontneed"))
        match self.dice.randrange(7):
            case 6:
                self.add("mlockall", process, *self.maybe("current", "future", "onfault"))
            case 0:
                self.on_range(process, "msync", self.dice.choice(("sync", "async")))
            case 1:
                self.add("fadvise", pages=self.file_range(600), advice=advice)
            case 2:
                flags = self.maybe("nowait", "dontcache", of=3)
                self.add("pread", None, *flags, pages=self.file_range(8))
            case 3:
                self.add("munlockall", process)
            case 4:
                self.on_range(process, "mincore")
            case _:
                neutral = ("populate-read", "random", "sequential", "normal", "willneed")
                self.madvise(process, self.dice.choice(neutral))

    def seal(self, process: int) -> None:
        """A file may not be written any more, or not otherwise; it may be mapped to be written."""
        if self.dice.randrange(3):
            self.map(process, 1 + self.dice.randrange(16), Place(TO_SEAL), "shared")
        how = self.dice.choice(("write", "write", "future-write", "exec", "exec", "grow", "shrink"))
        self.add("seal", None, how, file=TO_SEAL)
