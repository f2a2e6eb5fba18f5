# SPDX-License-Identifier: GPL-2.0-only
"""Random programs from a seed.

Most ranges begin where something is mapped, and many are whole huge pages, since defects show
where steps meet.
"""

import random
from collections.abc import Callable, Mapping

from ream.program.drawing import FILE_PAGES, MOST_AREAS
from ream.program.drawn_files import TO_SEAL
from ream.program.drawn_kernel import HOLES, NR_CPUS
from ream.program.drawn_pool import GIGABYTE_PAGES, LARGEST
from ream.program.drawn_spaces import ANON, NR_PROCESSES, SHARED, WRITABLE
from ream.program.drawn_vmas import OF_DEVICES, Vmas
from ream.program.kinds import Place, Range, Value
from ream.program.knobs import PARAMETERS
from ream.program.scene import HUGE_PAGES
from ream.program.step import Program

MOST_PINS = 12
MOVABLE_PAGES = 1536
"""So many pages are there from the beginning where little memory is free, to be moved and taken."""
DEVICE_PAGES = 1024
LARGEST_PART = 6
"""The largest order of the parts into which a folio is split before it is deformed."""
_FILES = (
    ("f", "shmem", 1), ("h", "huge", 1), ("d", "disk", 1), (TO_SEAL, "shmem", 1),
    ("l", "large", 1), ("t", "hugetlb", 1), ("b", "blocks", 2), ("z", "zero", 4),
    ("e", "readonly", 4), ("s", "secret", 4), ("q", "limited", 3),
    *((name, kind, 4) for name, kind in OF_DEVICES.items()),
)  # fmt: skip
"""Files, their kinds, and of how many programs one has the file."""
_MEGABYTE = 1 << 20


def generate(seed: int, nr_steps: int, weights: Mapping[str, int] | None = None) -> Program:
    """Draw a program of so many steps behind its declarations; the same seed gives the same one.

    weights: how often each of WEIGHTS is drawn; those that are left out are never drawn.
    """
    chosen = WEIGHTS if weights is None else weights
    drawn = Drawn(random.Random(seed), chosen)  # noqa: S311
    drawn.declare()
    nr_declared = len(drawn.steps)
    mixtures = [MIXTURES[name] for name in chosen]
    process = 0
    while len(drawn.steps) < nr_declared + nr_steps:
        # Several steps of one process behind one another: a CPU forgets what others leave alone.
        if drawn.dice.randrange(4) == 0 or process not in drawn.scene.spaces:
            process = drawn.dice.choice(sorted(drawn.scene.spaces))
        drawn.dice.choices(mixtures, list(chosen.values()))[0](drawn, process)
    return Program(tuple(drawn.steps[: nr_declared + nr_steps]))


class Drawn(Vmas):
    """The declarations, and mixtures that go on with any other."""

    def declare_computer(self) -> None:
        dice = self.dice
        node0 = 1536 if dice.randrange(16) == 0 else 512
        self.add("memory", node0=node0 * _MEGABYTE, node1=256 * _MEGABYTE)
        self.add("cpus", nr=NR_CPUS)
        if dice.randrange(5) == 0:
            self.add("dma32", nr=dice.choice((128, 256)) * _MEGABYTE)
        if dice.randrange(6) == 0:
            self.add("slow", nodes=(1,))
        if dice.randrange(6) == 0:
            name = dice.choice(sorted(PARAMETERS))
            self.add("boot", name=name, value=dice.choice(PARAMETERS[name].split()))
        self.add("group", group="g", size=dice.choice((64, 256)) * _MEGABYTE)

    def declare_files(self) -> None:
        for name, kind, of in _FILES:
            if self.dice.randrange(of) == 0:
                nr = DEVICE_PAGES if name in OF_DEVICES else FILE_PAGES
                self.add("file", file=name, size=nr * 4096, kind=kind)
        if self.dice.randrange(5) == 0:
            self.add("file", file=LARGEST, size=GIGABYTE_PAGES * 4096, kind="hugetlb")

    def declare(self) -> None:
        dice = self.dice
        self.declare_computer()
        self.declare_files()
        how = *self.maybe("synchronous", "device"), *self.maybe("holes", of=4)
        self.add("swap", None, *how, size=dice.choice((24, 192, 192)) * _MEGABYTE)
        if dice.randrange(2):
            self.add("join", 0, group="g")
        if LARGEST in self.scene.files:
            self.map_gigabyte()
        if dice.randrange(4):
            self.mthp()
        if dice.randrange(2):
            self.add("hog", nr=12000 + dice.randrange(16000))
            self.is_hogged = True
            self.map(0, MOVABLE_PAGES, "anon", "private", "populate")
        if dice.randrange(2):
            self.add("device", 0)
        if dice.randrange(4) == 0:
            self.add("call", 0, function=dice.choice(("uffd_events", "uffd_present")))

    def then(self, process: int, chosen: Range) -> None:
        """Go on with something that changes the entries of these pages."""
        if self.dice.randrange(10) == 0:
            self.fail()
        self.focus = chosen
        weights = [self.weights.get(name, 1) for name in _ON_ENTRIES]
        MIXTURES[self.dice.choices(_ON_ENTRIES, weights)[0]](self, process)
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

    def on_device(self, process: int) -> None:
        """Pages are in the memory of a device."""
        chosen = self.range(process)
        self.add("call", process, function="to_device", area=chosen)
        self.then(process, chosen)

    def hint(self, process: int) -> None:
        """Change entries to cause NUMA hinting faults, which show which process uses the pages."""
        chosen = self.range(process)
        self.add("call", process, function="numa_hint", area=chosen, x=self.dice.randrange(2))
        self.then(process, chosen)

    def clear_soft_dirty(self, process: int) -> None:
        """From now on entries note what is written, and must keep it when they are changed."""
        chosen = self.large(process)
        self.add("call", process, function="clear_refs", x=4)
        self.add("write", process, area=self.part(chosen))
        self.then(process, chosen)

    def large(self, process: int) -> Range:
        """Some pages; half of them are written, and folios of them are mapped by a table."""
        if self.dice.randrange(2):
            return self.range(process)
        chosen = self.range(process, huge=True)
        self.add("write", process, area=chosen)
        self.by_table(process, chosen)
        return chosen

    def by_table(self, process: int, chosen: Range) -> None:
        """Have the entries of a table map what one huge entry does, all in one VMA."""
        first = Range(chosen.name, chosen.begin, (chosen.begin or 0) + 1)
        for area, protection in ((first, "r"), (chosen, "rw")):
            self.add("mprotect", process, area=area, protection=protection)

    def share_in_part(self, process: int) -> None:
        """A child gets some pages of a folio, while the others stay exclusive to its parent."""
        chosen = self.large(process)
        self.add("write", process, area=chosen)
        part = self.fork_in_part(process, chosen)
        if self.dice.randrange(3) == 0 and len(self.pinned) < MOST_PINS:
            self.add("pin", process, "write", *self.maybe("longterm"), area=part)
            self.pinned.append((process, part))
            self.fork_surely(process)
        self.then(process, chosen)

    def fork_in_part(self, process: int, chosen: Range) -> Range:
        """Fork without some of the pages, and return these."""
        part = self.part(chosen)
        self.add("madvise", process, area=part, advice="dontfork")
        self.fork_surely(process)
        self.add("madvise", process, area=part, advice="dofork")
        return part

    def deform(self, process: int) -> None:
        """Folios that are not mapped as they were allocated, which a walk of entries meets then."""
        dice, chosen = self.dice, self.range(process, huge=True)
        if len(self.scene.spaces[process].areas) > MOST_AREAS - 3:  # a new one may take its name
            return self.then(process, chosen)
        if self.scene.spaces[process].pages(chosen).nr < HUGE_PAGES:
            self.map(process, HUGE_PAGES, "anon", "private")
            chosen = Range(self.steps[-1].word("name"), 0, HUGE_PAGES)
        self.add("write", process, area=chosen)
        if dice.randrange(3):
            order = 1 + dice.randrange(LARGEST_PART)
            self.add("call", process, function="split", area=chosen, x=order)
        for _ in range(1 + dice.randrange(2)):
            match dice.randrange(5):
                case 0:
                    self.add("madvise", process, area=self.part(chosen), advice="dontneed")
                case 1:
                    chosen = self.across_tables(process, chosen)
                case 2:
                    self.fork_surely(process)
                    self.add("write", process, area=self.part(chosen))
                case 3:
                    self.map_over(process, self.part(chosen))
                case _:
                    self.fork_in_part(process, chosen)
        self.focus = chosen
        MIXTURES[dice.choice(_WALKS)](self, process)
        if process in self.scene.spaces and chosen.name in self.scene.spaces[process].areas:
            self.then(process, chosen)
        return None

    def across_tables(self, process: int, chosen: Range) -> Range:
        """Move pages to where a folio of them is in two page tables."""
        nr = self.scene.spaces[process].pages(chosen).nr
        self.map(process, 2 * HUGE_PAGES, "anon", "private")
        name = self.steps[-1].word("name")
        target = Place(name, 1 + self.dice.randrange(HUGE_PAGES - 1))
        self.add("mremap", process, area=chosen, target=target, new_nr=nr)
        self.put(process, self.scene.spaces[process].pages(chosen), 0)
        moved = Range(name, target.offset, target.offset + nr)
        self.put(process, self.scene.spaces[process].pages(moved), ANON | WRITABLE)
        return moved

    def map_over(self, process: int, part: Range) -> None:
        """Other pages in the place of some, in entries between those of a folio."""
        area, name = self.scene.spaces[process].pages(part), self.name(process)
        source = self.dice.choice(("anon", Place(self.file(), self.dice.randrange(HUGE_PAGES))))
        sharing = self.dice.choice(("private", "shared"))
        self.add(
            "mmap", process, "populate", name=name, nr=area.nr, source=source, sharing=sharing,
            protection="rw", at=Place(part.name, part.begin or 0),
        )  # fmt: skip
        self.put(process, area, (SHARED if sharing == "shared" else ANON) | WRITABLE)

    def age(self, process: int) -> None:
        """Some of the pages were used since all of them were last found to be."""
        chosen = self.large(process)
        if self.dice.randrange(2):
            self.add("madvise", process, area=chosen, advice="cold")
        else:
            self.add("call", process, function="clear_refs", x=1)
        self.add("read", process, area=self.part(chosen))
        self.then(process, chosen)

    def split_entry(self, process: int) -> None:
        """A huge page that entries of a table map, all in one VMA."""
        chosen = self.range(process, huge=True)
        if self.dice.randrange(2):  # while a child has the huge entry
            self.add("write", process, area=chosen)
            self.fork_surely(process)
        self.by_table(process, chosen)
        self.then(process, chosen)

    def upgrade(self, process: int) -> None:
        """Take rights away and give them back, when entries may become writable at once."""
        chosen = self.range(process)
        area = self.scene.spaces[process].pages(chosen)
        kinds = self.states(process, area)
        if self.dice.randrange(5) == 0:  # these must not become writable
            self.add("write", process, area=chosen)
            self.add("uffd_register", process, area=chosen, mode=("wp",))
            self.add("uffd_wp", process, area=chosen, protects="on")
        self.add("mprotect", process, area=chosen, protection=self.dice.choice(("r", "r", "none")))
        part = self.dice.choice((chosen, self.part(chosen)))
        protection = self.dice.choice(("rw", "rw", "rwx"))
        self.add("mprotect", process, area=part, protection=protection)
        if any(kinds) and self.dice.randrange(3):
            self.add("write", process, area=self.part(part))
        else:
            self.then(process, chosen)

    def window(self, process: int) -> None:
        """Some pages of a file's huge folio, by entries that hardware alone makes dirty."""
        huge = [one for one in ("h", "l") if one in self.scene.files]
        if not huge or len(self.scene.spaces[process].areas) > MOST_AREAS - 2:
            return self.access(process, "read")
        name, nr = self.dice.choice(huge), 1 + self.dice.randrange(64)
        whole, part = self.name(process), self.name(process)
        shared: dict[str, Value | None] = {"sharing": "shared", "protection": "rw"}
        self.add("mmap", process, name=whole, nr=HUGE_PAGES, source=Place(name, 0), **shared)
        self.add("read", process, area=Range(whole))
        begin = self.dice.randrange(HUGE_PAGES - nr)
        self.add("mmap", process, name=part, nr=nr, source=Place(name, begin), **shared)
        for its in (whole, part):
            self.put(process, self.scene.spaces[process].areas[its], SHARED | WRITABLE)
        self.add("read", process, area=Range(part))
        self.add("write", process, area=self.part(Range(part, 0, nr)))
        return self.then(process, Range(part, 0, nr))

    def split(self, process: int) -> None:
        """Large folios become smaller ones, while entries of all kinds may map them."""
        chosen = self.range(process, huge=True)
        area = self.dice.choice((chosen, self.part(chosen)))
        order = self.dice.choice((None, 2, 3, 5))
        self.add("call", process, function="split", area=area, x=order)
        self.then(process, chosen)

    def fork_surely(self, process: int) -> None:
        """Fork it, where there are as many processes as may be in place of another one."""
        if len(self.scene.spaces) == NR_PROCESSES:
            self.exit(self.dice.choice(sorted(self.scene.spaces.keys() - {process})))
        self.fork(process)

    def twins(self, process: int) -> None:
        """A child has huge pages of its own where its parent has others, and they are moving."""
        chosen = self.range(process, huge=True)
        self.add("write", process, area=chosen)
        self.fork_surely(process)
        child = self.steps[-1].number("child")
        self.add("madvise", child, area=chosen, advice="dontneed")
        self.add("write", child, area=self.part(chosen))
        self.add("migrating", child, area=chosen)
        if self.dice.randrange(2):
            self.focus = chosen
            self.split(process)
        else:
            self.then(process, self.dice.choice((chosen, self.part(chosen))))

    def compact_around(self, process: int) -> None:
        """Compact memory with holes in which these pages must stay, or are in the way."""
        chosen = self.range(process)
        match self.dice.randrange(3):
            case 0:
                file = "/proc/sys/vm/compact_unevictable_allowed"
                self.add("set", file=file, value=self.dice.choice("01"))
                self.add("mlock", process, area=chosen)
            case 1 if len(self.pinned) < MOST_PINS:
                self.add("pin", process, "get", area=(part := self.part(chosen)))
                self.pinned.append((process, part))
            case _:
                self.add("write", process, area=chosen)
        self.add("hog", nr=self.dice.randrange(1000), every=self.dice.choice(HOLES))
        self.add("compact")
        self.is_hogged = True
        self.then(process, chosen)

    def pin(self, process: int) -> None:
        chosen = self.range(process)
        first = self.part(chosen)
        area = self.scene.spaces[process].pages(first)
        if self.states(process, area)[0] & WRITABLE and len(self.pinned) < MOST_PINS:
            how = self.maybe("longterm") if self.dice.randrange(3) else ("get",)
            writes = ("write",) if self.dice.randrange(4) else ()
            self.add("pin", process, *writes, *how, area=first)
            self.pinned.append((process, first))
            match self.dice.randrange(3):
                case 0:  # which what is pinned must not do
                    self.add("move_pages", process, area=chosen, node=self.dice.randrange(2))
                case 1:
                    self.then(process, first)
                case _:
                    self.focus = chosen
                    self.hint(process)
        elif self.pinned:
            process, first = self.pinned.pop(self.dice.randrange(len(self.pinned)))
            # Another area may have taken the name over.
            if (first.end or 0) <= self.scene.spaces[process].areas[first.name].nr:
                self.add("unpin", process, area=first)
        else:
            self.access(process, "write")


_Mixture = Callable[[Drawn, int], None]


def _advice(advice: str) -> _Mixture:
    return lambda drawn, process: drawn.madvise(process, advice)


_WEIGHTED: Mapping[str, tuple[int, _Mixture]] = {
    "map-anon": (6, Drawn.map_anon),
    "map-populated": (3, lambda drawn, process: drawn.map_anon(process, "populate")),
    "map-shared": (4, lambda drawn, process: drawn.map_file(process, "shared")),
    "map-private": (3, lambda drawn, process: drawn.map_file(process, "private")),
    "munmap": (6, Drawn.munmap),
    "write-one": (10, lambda drawn, process: drawn.access(process, "write", single=True)),
    "write": (12, lambda drawn, process: drawn.access(process, "write")),
    "write-same": (4, lambda drawn, process: drawn.access(process, "write", same=True)),
    "read-one": (8, lambda drawn, process: drawn.access(process, "read", single=True)),
    "read": (8, lambda drawn, process: drawn.access(process, "read")),
    "mprotect": (8, Drawn.mprotect),
    "mremap": (8, Drawn.mremap),
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
    "fork": (4, Drawn.fork),
    "exit": (3, Drawn.exit),
    "mlock": (3, lambda drawn, process: drawn.on_range(process, "mlock", *drawn.maybe("onfault"))),
    "munlock": (3, lambda drawn, process: drawn.on_range(process, "munlock")),
    "place": (8, Drawn.place),
    "pin": (4, Drawn.pin),
    "migrating": (3, Drawn.migrating),
    "on-device": (2, Drawn.on_device),
    "hint": (4, Drawn.hint),
    "soft-dirty": (3, Drawn.clear_soft_dirty),
    "share-in-part": (4, Drawn.share_in_part),
    "deform": (4, Drawn.deform),
    "age": (4, Drawn.age),
    "split": (3, Drawn.split),
    "twins": (2, Drawn.twins),
    "split-entry": (3, Drawn.split_entry),
    "upgrade": (2, Drawn.upgrade),
    "window": (2, Drawn.window),
    "compact-around": (2, Drawn.compact_around),
    "again": (4, Drawn.again),
    "device": (1, lambda drawn, process: drawn.add("device", process)),
    "mthp": (1, lambda drawn, _: drawn.mthp()),
    "uffd-wp": (4, Drawn.uffd_wp),
    "uffd-fill": (2, Drawn.uffd_fill),
    "uffd-keep": (2, Drawn.uffd_keep),
    "file": (7, lambda drawn, _: drawn.change_file()),
    "look": (4, Drawn.look),
    "compact": (3, lambda drawn, _: drawn.add("compact")),
    "wait": (2, lambda drawn, _: drawn.add("wait", ms=11000)),
    "reclaim": (2, lambda drawn, _: drawn.add("reclaim", nr=32 + drawn.dice.randrange(400))),
    "hog": (3, lambda drawn, _: drawn.hog()),
    "arrange": (6, Drawn.arrange),
    "lock-all": (2, Drawn.lock_all),
    "fail-early": (3, Drawn.fail_early),
    "uncommon-file": (3, Drawn.uncommon_file),
    "free-hint": (2, Drawn.free_hint),
    "seal": (2, Drawn.seal),
    "fail": (2, lambda drawn, _: drawn.fail()),
    "vmalloc": (1, lambda drawn, _: drawn.add("vmalloc", nr=1 + drawn.dice.randrange(40))),
    "swap": (1, lambda drawn, _: drawn.swap()),
    "control": (6, lambda drawn, _: drawn.control()),
    "call": (6, Drawn.call),
    "huge": (4, Drawn.huge),
    "swap-in-part": (3, Drawn.swap_in_part),
    "large-folios": (3, Drawn.large_folios),
    "shared-memory": (1, Drawn.shared_memory),
    "merge": (1, Drawn.merge),
    "compress": (1, Drawn.compress),
    "break": (2, Drawn.break_page),
}
_ON_ENTRIES = (
    *("mprotect", "mremap", "fork", "munmap", "dontneed", "free", "pageout", "cold"),
    *("hint", "place", "uffd-wp", "read", "write", "mlock", "collapse", "pin", "upgrade"),
)
"""Mixtures that change entries of the page table."""
_WALKS = ("place", "migrating", "split", "pageout", "reclaim", "compact", "file", "collapse")
"""Mixtures in which the kernel looks for all entries of a folio, or for all of a file."""
_REPEATED = frozenset(
    ("mprotect", "madvise", "mlock", "munlock", "call", "uffd_wp", "move_pages", "mbind", "read")
)
"""Steps that can be done twice."""
MIXTURES = {name: mixture for name, (_, mixture) in _WEIGHTED.items()}
WEIGHTS: Mapping[str, int] = {name: weight for name, (weight, _) in _WEIGHTED.items()}
"""How often each mixture is drawn, relative to the others."""
