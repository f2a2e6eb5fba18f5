# SPDX-License-Identifier: GPL-2.0-only
"""Random steps on files, and on pages that the kernel merges or reads ahead."""

from ream.program.drawing import FILE_PAGES, MOST_AREAS
from ream.program.drawn_spaces import SHARED, WRITABLE, Spaces
from ream.program.kinds import Place, Range
from ream.program.scene import HUGE_PAGES


class Files(Spaces):
    """Each mixture adds one step or a few."""

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
                self.add("pwrite", pages=self.file_range(16))

    def huge(self, process: int) -> None:
        """Huge pages of the pool, of which there may be too few."""
        nr_pool = self.dice.choice(("4", "8", "20"))
        if len(self.scene.spaces[process].areas) >= MOST_AREAS:
            return self.munmap(process)
        self.add("set", file="/proc/sys/vm/nr_hugepages", value=nr_pool)
        name, nr = self.name(process), HUGE_PAGES * (1 + self.dice.randrange(3))
        source = Place("t") if self.dice.randrange(2) else "anon"
        flags = () if isinstance(source, Place) else ("hugetlb",)
        self.add("mmap", process, *flags, name=name, nr=nr, source=source, sharing="shared",
                 protection="rw")  # fmt: skip
        self.put(process, self.scene.spaces[process].areas[name], SHARED | WRITABLE)
        self.add("write", process, area=Range(name))
        return None

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
                self.add("pread", pages=self.file_range(8))
            case 3:
                self.add("munlockall", process)
            case 4:
                self.on_range(process, "mincore")
            case _:
                neutral = ("populate-read", "random", "sequential", "normal", "willneed")
                self.madvise(process, self.dice.choice(neutral))
