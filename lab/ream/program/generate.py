# SPDX-License-Identifier: GPL-2.0-only
"""Random programs from a seed.

Most ranges begin where something is mapped, and many are whole huge pages, since defects show
where steps meet.
"""

import random
from collections.abc import Callable, Mapping

from ream.program.drawing import FILE_PAGES, MOST_AREAS, NR_RECENT, Drawing
from ream.program.kinds import Place, Range, Value
from ream.program.knobs import CALLS, CALLS_ON_PAGES, FILES, PARAMETERS
from ream.program.scene import HUGE_PAGES, Area
from ream.program.step import Program

NR_PROCESSES = 4
NR_CPUS = 2
MOST_PINS = 12
MOVABLE_PAGES = 1536
"""So many pages are there from the beginning where little memory is free, to be moved and taken."""
HOLES = (2, 3, 4, 8)
"""One of so many pages is free where memory is in holes."""
MOST_FAILING = 16
"""One of the first so many allocations of a step fails."""
FOLIOS = ("16K", "32K", "64K", "128K", "256K", "512K", "1M", "2M")

ANON, PRIVATE_FILE, SHARED = 1, 2, 3
"""What a page is mapped as; 0: not at all."""
_KIND, _WRITABLE = 3, 4
_THP = "/sys/kernel/mm/transparent_hugepage/"
_MEGABYTE = 1 << 20


def generate(seed: int, nr_steps: int, weights: Mapping[str, int] | None = None) -> Program:
    """Draw a program of so many steps behind its declarations; the same seed gives the same one.

    weights: how often each of WEIGHTS is drawn; those that are left out are never drawn.
    """
    chosen = WEIGHTS if weights is None else weights
    drawn = _Drawn(random.Random(seed), chosen)  # noqa: S311
    drawn.declare()
    nr_declared = len(drawn.steps)
    mixtures = [_MIXTURES[name] for name in chosen]
    process = 0
    while len(drawn.steps) < nr_declared + nr_steps:
        # Several steps of one process behind one another: a CPU forgets what others leave alone.
        if drawn.dice.randrange(4) == 0 or process not in drawn.scene.spaces:
            process = drawn.dice.choice(sorted(drawn.scene.spaces))
        drawn.dice.choices(mixtures, list(chosen.values()))[0](drawn, process)
    return Program(tuple(drawn.steps[: nr_declared + nr_steps]))


class _Drawn(Drawing):
    """Mixtures: each adds one step or a few."""

    def __init__(self, dice: random.Random, weights: Mapping[str, int]) -> None:
        super().__init__(dice)
        self.weights = weights
        self.pinned: list[tuple[int, Range]] = []
        self.is_hogged = False

    def declare(self) -> None:
        dice = self.dice
        self.add("memory", node0=512 * _MEGABYTE, node1=256 * _MEGABYTE)
        self.add("cpus", nr=NR_CPUS)
        if dice.randrange(6) == 0:
            name = dice.choice(sorted(PARAMETERS))
            self.add("boot", name=name, value=dice.choice(PARAMETERS[name].split()))
        self.add("group", group="g", size=dice.choice((64, 256)) * _MEGABYTE)
        for name, kind in (("f", "shmem"), ("h", "huge"), ("d", "disk")):
            self.add("file", file=name, size=FILE_PAGES * 4096, kind=kind)
        self.add("file", file="t", size=FILE_PAGES * 4096, kind="hugetlb")
        for name, kind in (("z", "zero"), ("e", "readonly"), ("s", "secret")):
            if dice.randrange(4) == 0:
                self.add("file", file=name, size=FILE_PAGES * 4096, kind=kind)
        holes = self.maybe("holes", of=4)
        self.add("swap", None, *self.maybe("synchronous"), *holes, size=192 * _MEGABYTE)
        if dice.randrange(2):
            self.add("join", 0, group="g")
        if dice.randrange(4):
            self.mthp()
        if dice.randrange(2):
            self.add("hog", nr=12000 + dice.randrange(16000))
            self.is_hogged = True
            self.map(0, MOVABLE_PAGES, "anon", "private", "populate")
        if dice.randrange(2):
            self.add("device", 0)

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
        self.put(process, area, state | (_WRITABLE if protection == "rw" else 0))

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
        writable = _WRITABLE if protection == "rw" else 0
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

    def then(self, process: int, chosen: Range) -> None:
        """Go on with something that changes the entries of these pages."""
        self.focus = chosen
        weights = [self.weights.get(name, 1) for name in _ON_ENTRIES]
        _MIXTURES[self.dice.choices(_ON_ENTRIES, weights)[0]](self, process)
        self.focus = None
        if self.dice.randrange(3) == 0 and process in self.scene.spaces:
            self.again(process)

    def again(self, process: int) -> None:
        """The last step once more, which often finds nothing left to do."""
        if (last := self.steps[-1]).verb in _REPEATED:
            self.steps.append(last)
        else:
            self.access(process, "read")

    def migrating(self, process: int) -> None:
        chosen = self.range(process)
        self.add("migrating", process, area=chosen)
        self.then(process, chosen)

    def hint(self, process: int) -> None:
        """Faults are to show who uses pages."""
        chosen = self.range(process)
        self.add("call", process, function="numa_hint", area=chosen, x=self.dice.randrange(2))
        self.then(process, chosen)

    def clear_soft_dirty(self, process: int) -> None:
        """From now on entries note what is written, and must keep it when they are changed."""
        self.add("call", process, function="clear_refs", x=4)
        chosen = self.range(process)
        self.add("write", process, area=self.part(chosen))
        self.then(process, chosen)

    def share_in_part(self, process: int) -> None:
        """A child gets some pages of a folio, while the others stay exclusive to its parent."""
        chosen = self.range(process, huge=True)
        self.add("write", process, area=chosen)
        part = self.part(chosen)
        self.add("madvise", process, area=part, advice="dontfork")
        if len(self.scene.spaces) == NR_PROCESSES:
            self.exit(self.dice.choice(sorted(self.scene.spaces.keys() - {process})))
        self.fork(process)
        self.add("madvise", process, area=part, advice="dofork")
        self.then(process, chosen)

    def age(self, process: int) -> None:
        """Some of the pages were used since all of them were last found to be."""
        chosen = self.range(process)
        self.add("madvise", process, area=chosen, advice="cold")
        self.add("read", process, area=self.part(chosen))
        self.then(process, chosen)

    def split_entry(self, process: int) -> None:
        """A huge page that entries of a table map, all in one VMA."""
        chosen = self.range(process, huge=True)
        first = Range(chosen.name, chosen.begin, (chosen.begin or 0) + 1)
        for area, protection in ((first, "r"), (chosen, "rw")):
            self.add("mprotect", process, area=area, protection=protection)
        self.then(process, chosen)

    def on_range(self, process: int, verb: str, *flags: str, **values: Value | None) -> None:
        self.add(verb, process, *flags, area=self.range(process), **values)

    def pin(self, process: int) -> None:
        chosen = self.range(process)
        first = self.part(chosen)
        area = self.scene.spaces[process].pages(first)
        if self.states(process, area)[0] & _WRITABLE and len(self.pinned) < MOST_PINS:
            how = self.maybe("longterm") if self.dice.randrange(3) else ("get",)
            self.add("pin", process, "write", *how, area=first)
            self.pinned.append((process, first))
            match self.dice.randrange(3):
                case 0:  # which what is pinned must not do
                    self.add("move_pages", process, area=chosen, node=self.dice.randrange(2))
                case 1:
                    self.then(process, first)
        elif self.pinned:
            process, first = self.pinned.pop(self.dice.randrange(len(self.pinned)))
            # Another area may have taken the name over.
            if (first.end or 0) <= self.scene.spaces[process].areas[first.name].nr:
                self.add("unpin", process, area=first)
        else:
            self.access(process, "write")

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
        self.put(process, self.scene.spaces[process].areas[name], ANON | _WRITABLE)
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
                self.add("write", process, area=source)
                if self.dice.randrange(2):
                    advice = self.dice.choice(("pageout", "pageout", "cold", "free"))
                    self.add(
                        "madvise", process, area=self.part(Range(source.name, 0, nr)), advice=advice
                    )
                self.add("uffd_move", process, area=filled, from_=Place(source.name))
                self.add("read", process, area=filled)
        self.add("uffd_unregister", process, area=filled)

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

    def swap(self) -> None:
        self.add("swap", size="off")
        self.add("swap", size="on")

    def place(self, process: int) -> None:
        """Something that decides on which node or CPU pages are, or whose they are."""
        nodes = self.dice.choice(((0,), (1,), (0, 1)))
        mode = self.dice.choice(("preferred", "interleave", "default"))
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
        self.put(process, self.scene.spaces[process].areas[name], SHARED | _WRITABLE)
        self.add("write", process, area=Range(name))
        return None

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
        self.put(process, self.scene.spaces[process].areas[name], SHARED | _WRITABLE)
        return None

    def merge(self, process: int) -> None:
        """The kernel makes one page of those that are equal."""
        chosen = self.range(process)
        self.add("write", process, area=chosen, same=0x5000)
        self.add("madvise", process, area=chosen, advice="mergeable")
        self.add("set", file="/sys/kernel/mm/ksm/run", value="1")
        self.add("wait", ms=2000)

    def compress(self, process: int) -> None:
        """Pages are swapped to memory, and read back from there."""
        chosen = self.range(process)
        self.add("set", file="/sys/module/zswap/parameters/enabled", value="1")
        self.add("madvise", process, area=chosen, advice="pageout")
        self.add("read", process, area=chosen)

    def break_page(self, process: int) -> None:
        """A page is broken, or seems to become so."""
        chosen = self.range(process)
        begin = chosen.begin or 0
        advice = self.dice.choice(("hwpoison", "soft-offline", "soft-offline"))
        area = Range(chosen.name, begin, begin + 1)
        self.add("madvise", process, area=area, advice=advice)

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


_Mixture = Callable[[_Drawn, int], None]


def _advice(advice: str) -> _Mixture:
    return lambda drawn, process: drawn.madvise(process, advice)


_WEIGHTED: Mapping[str, tuple[int, _Mixture]] = {
    "map-anon": (6, _Drawn.map_anon),
    "map-populated": (3, lambda drawn, process: drawn.map_anon(process, "populate")),
    "map-shared": (4, lambda drawn, process: drawn.map_file(process, "shared")),
    "map-private": (3, lambda drawn, process: drawn.map_file(process, "private")),
    "munmap": (6, _Drawn.munmap),
    "write-one": (10, lambda drawn, process: drawn.access(process, "write", single=True)),
    "write": (12, lambda drawn, process: drawn.access(process, "write")),
    "write-same": (4, lambda drawn, process: drawn.access(process, "write", same=True)),
    "read-one": (8, lambda drawn, process: drawn.access(process, "read", single=True)),
    "read": (8, lambda drawn, process: drawn.access(process, "read")),
    "mprotect": (8, _Drawn.mprotect),
    "mremap": (8, _Drawn.mremap),
    "dontneed": (5, _advice("dontneed")),
    "free": (3, _advice("free")),
    "cold": (2, _advice("cold")),
    "pageout": (5, _advice("pageout")),
    "collapse": (3, _advice("collapse")),
    "hugepage": (3, _advice("hugepage")),
    "nohugepage": (1, _advice("nohugepage")),
    "mergeable": (3, _advice("mergeable")),
    "dontfork": (2, _advice("dontfork")),
    "dofork": (1, _advice("dofork")),
    "willneed": (2, _advice("willneed")),
    "fork": (4, _Drawn.fork),
    "exit": (3, _Drawn.exit),
    "mlock": (3, lambda drawn, process: drawn.on_range(process, "mlock", *drawn.maybe("onfault"))),
    "munlock": (3, lambda drawn, process: drawn.on_range(process, "munlock")),
    "place": (8, _Drawn.place),
    "pin": (4, _Drawn.pin),
    "migrating": (3, _Drawn.migrating),
    "hint": (4, _Drawn.hint),
    "soft-dirty": (3, _Drawn.clear_soft_dirty),
    "share-in-part": (4, _Drawn.share_in_part),
    "age": (4, _Drawn.age),
    "split-entry": (3, _Drawn.split_entry),
    "again": (4, _Drawn.again),
    "device": (1, lambda drawn, process: drawn.add("device", process)),
    "mthp": (1, lambda drawn, _: drawn.mthp()),
    "uffd-wp": (4, _Drawn.uffd_wp),
    "uffd-fill": (2, _Drawn.uffd_fill),
    "uffd-keep": (2, _Drawn.uffd_keep),
    "file": (7, lambda drawn, _: drawn.change_file()),
    "look": (4, _Drawn.look),
    "compact": (3, lambda drawn, _: drawn.add("compact")),
    "wait": (2, lambda drawn, _: drawn.add("wait", ms=11000)),
    "reclaim": (2, lambda drawn, _: drawn.add("reclaim", nr=32 + drawn.dice.randrange(400))),
    "hog": (3, lambda drawn, _: drawn.hog()),
    "fail": (2, lambda drawn, _: drawn.add("fail", nr=1 + drawn.dice.randrange(MOST_FAILING))),
    "vmalloc": (1, lambda drawn, _: drawn.add("vmalloc", nr=1 + drawn.dice.randrange(40))),
    "swap": (1, lambda drawn, _: drawn.swap()),
    "control": (6, lambda drawn, _: drawn.control()),
    "call": (6, _Drawn.call),
    "huge": (2, _Drawn.huge),
    "shared-memory": (1, _Drawn.shared_memory),
    "merge": (1, _Drawn.merge),
    "compress": (1, _Drawn.compress),
    "break": (1, _Drawn.break_page),
}
_ON_ENTRIES = (
    *("mprotect", "mremap", "fork", "munmap", "dontneed", "free", "pageout", "cold"),
    *("hint", "place", "uffd-wp", "read", "write", "mlock", "collapse"),
)
"""Mixtures that change entries of the page table."""
_REPEATED = frozenset(
    ("mprotect", "madvise", "mlock", "munlock", "call", "uffd_wp", "move_pages", "mbind", "read")
)
"""Steps that can be done twice."""
_MIXTURES = {name: mixture for name, (_, mixture) in _WEIGHTED.items()}
WEIGHTS: Mapping[str, int] = {name: weight for name, (weight, _) in _WEIGHTED.items()}
"""How often each mixture is drawn, relative to the others."""
