# SPDX-License-Identifier: GPL-2.0-only
"""Random steps by which the kernel itself does something, or is told how."""

import random
from collections.abc import Mapping

from ream.program.drawn_files import Files
from ream.program.kinds import Range, Value
from ream.program.knobs import CALLS, CALLS_ON_PAGES, FILES

NR_CPUS = 2
HOLES = (2, 3, 4, 8)
"""One of so many pages is free where memory is in holes."""
FOLIOS = ("16K", "32K", "64K", "128K", "256K", "512K", "1M", "2M")


class Kernel(Files):
    """Each mixture adds one step or a few."""

    def __init__(self, dice: random.Random, weights: Mapping[str, int]) -> None:
        super().__init__(dice, weights)
        self.is_hogged = False

    def hog(self) -> None:
        """Leave little memory, or memory of which no block is free, to users."""
        if self.is_hogged and self.dice.randrange(3) == 0:
            self.add("release")
            self.is_hogged = False
            return
        if self.dice.randrange(2):
            self.add("hog", nr=6000 + self.dice.randrange(20000))
        else:
            self.add("hog", nr=200 + self.dice.randrange(1000), every=self.dice.choice(HOLES))
            self.add("compact")
        self.is_hogged = True

    def mthp(self) -> None:
        sizes = [one for one in FOLIOS if self.dice.randrange(3) == 0]
        self.add("mthp", orders=tuple(sizes) or ("none",))

    def place(self, process: int) -> None:
        """Something that decides on which node or CPU pages are, or whose they are."""
        nodes = self.dice.choice(((0,), (1,), (0, 1)))
        mode = self.dice.choice(("preferred", "interleave", "weighted-interleave", "default"))
        policy: dict[str, Value | None] = {"mode": mode}
        policy["nodes"] = None if mode == "default" else nodes
        match self.dice.randrange(8):
            case 0 | 1:
                self.on_range(process, "mbind", *self.maybe("move"), **policy)
            case 2:
                self.add("set_mempolicy", process, **policy)
            case 3:
                first = self.dice.randrange(2)
                self.add("migrate_pages", process, from_=(first,), to=(1 - first,))
            case 4:
                self.add("run_on", process, cpu=self.dice.randrange(NR_CPUS))
            case _:
                flags = self.maybe("all")
                self.on_range(process, "move_pages", *flags, node=self.dice.randrange(2))

    def control(self) -> None:
        """A file of mm is written, if it can be, or read."""
        file = self.dice.choice(sorted(FILES))
        if FILES[file] and self.dice.randrange(4):
            self.add("set", file=file, value=self.dice.choice(FILES[file]))
        else:
            self.add("show", file=file)

    def call(self, process: int) -> None:
        """A function of mm that gives back what it takes."""
        table = self.dice.choice((CALLS, CALLS_ON_PAGES))
        name = self.dice.choice(sorted(table))
        area = self.range(process) if table is CALLS_ON_PAGES else None
        x, y = (int(self.dice.choice(numbers.split())) for numbers in table[name])
        self.add("call", process, function=name, area=area, x=x or None, y=y or None)

    def compress(self, process: int) -> None:
        """Pages are swapped to memory, and read back from there."""
        chosen = self.range(process)
        self.add("set", file="/sys/module/zswap/parameters/enabled", value="1")
        self.add("madvise", process, area=chosen, advice="pageout")
        self.add("read", process, area=chosen)

    def break_page(self, process: int) -> None:
        """A page is broken, or seems to become so."""
        chosen = self.range(process, huge=self.dice.randrange(2) == 0)
        begin = chosen.begin or 0
        advice = self.dice.choice(("hwpoison", "soft-offline", "soft-offline"))
        area = Range(chosen.name, begin, begin + 1)
        if self.dice.randrange(2):
            self.add("madvise", process, area=area, advice=advice)
            return
        self.add("pin", process, "get", area=area)  # so that its folio stays a large one
        self.add("madvise", process, area=area, advice=advice)
        self.add("unpin", process, area=area)
        self.add("call", process, function="split", area=chosen,
                 x=self.dice.choice((None, 2, 4)))  # fmt: skip
