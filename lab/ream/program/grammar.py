# SPDX-License-Identifier: GPL-2.0-only
"""The steps that a program can have: the words of each, in the order in which they are printed.

The numbers behind words are those of the kernel's headers in include/uapi, which name them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from ream.program.kinds import (
    MOST_CPUS,
    MOST_NODES,
    Bytes,
    Kind,
    Name,
    Nodes,
    Number,
    Pages,
    PlaceOf,
    Process,
    Swap,
    Text,
    Time,
    Word,
    Words,
)

PROTECTIONS = {"none": 0, "r": 1, "rw": 3, "rx": 5, "rwx": 7}
"""PROT_*: include/uapi/asm-generic/mman-common.h"""
SHARINGS = {"shared": 1, "private": 2, "droppable": 8}
"""MAP_SHARED, MAP_PRIVATE and MAP_DROPPABLE."""
MAP_FIXED, MAP_ANONYMOUS = 0x10, 0x20
MREMAP_MAYMOVE, MREMAP_FIXED = 1, 2
FILE_KINDS = {
    "shmem": 0,
    "disk": 1,
    "hugetlb": 2,
    "huge": 3,
    "zero": 4,
    "readonly": 5,
    "secret": 6,
    "large": 7,
    "blocks": 8,
    "limited": 9,
    "frames": 10,
    "faulted": 11,
    "mixed": 12,
}
FILE_KINDS_HELP = (
    "Files: shmem is tmpfs, and huge is tmpfs with huge pages. disk is on a disk, readonly the same"
    " with contents, large the same in large folios, as files of XFS, and blocks the same with"
    " blocks of 16 KiB. hugetlb is hugetlbfs, and limited is hugetlbfs with room for this file,"
    " half of which is reserved. zero is /dev/zero, and secret is memfd_secret(). frames is memory"
    " of a device that remap_pfn_range() maps, faulted the same by faults, and mixed by faults,"
    " half of it with references."
)
THP_ADVICE = {"always": 14, "never": 15}
"""MADV_HUGEPAGE and MADV_NOHUGEPAGE."""
ADVICE = {
    "normal": 0,
    "random": 1,
    "sequential": 2,
    "willneed": 3,
    "dontneed": 4,
    "free": 8,
    "remove": 9,
    "dontfork": 10,
    "dofork": 11,
    "mergeable": 12,
    "unmergeable": 13,
    "hugepage": 14,
    "nohugepage": 15,
    "dontdump": 16,
    "dodump": 17,
    "wipeonfork": 18,
    "keeponfork": 19,
    "cold": 20,
    "pageout": 21,
    "populate-read": 22,
    "populate-write": 23,
    "dontneed-locked": 24,
    "collapse": 25,
    "hwpoison": 100,
    "soft-offline": 101,
    "guard-install": 102,
    "guard-remove": 103,
}
FILE_ADVICE = {
    "normal": 0,
    "random": 1,
    "sequential": 2,
    "willneed": 3,
    "dontneed": 4,
    "noreuse": 5,
}
POLICIES = {
    "default": 0,
    "preferred": 1,
    "bind": 2,
    "interleave": 3,
    "local": 4,
    "preferred-many": 5,
    "weighted-interleave": 6,
}


@dataclass(frozen=True)
class Option:
    """A word NAME=VALUE, which the step's argument gets; without it, the argument is `default`."""

    kind: Kind
    default: int | None = None
    required: bool = False
    argument: str | None = None


@dataclass(frozen=True)
class Form:
    """The words of one step."""

    verb: str
    process: bool = True
    operands: Mapping[str, Kind] = field(default_factory=dict)
    nr_optional: int = 0
    flags: Mapping[str, int] = field(default_factory=dict)
    flags_if_none: int = 0
    flags_argument: str = "flags"
    options: Mapping[str, Option] = field(default_factory=dict)
    declares: bool = False
    """Whether the step describes the computer, and stands before all others."""

    def usage(self) -> str:
        """The step as a message shows it."""
        words = ["pN", self.verb] if self.process else [self.verb]
        nr_required = len(self.operands) - self.nr_optional
        for place, kind in enumerate(self.operands.values()):
            what = kind.what.upper().replace(" ", "-") if isinstance(kind, Text) else kind.what
            words.append(what if place < nr_required else f"[{what}]")
        words += [f"[{flag}]" for flag in self.flags]
        for name, option in self.options.items():
            word = f"{name}={option.kind.what}"
            words.append(word if option.required else f"[{word}]")
        return " ".join(words)


_AREA: Mapping[str, Kind] = {"area": Pages("AREA")}
_FILE: Mapping[str, Kind] = {"file": Name("FILE")}
_FILE_PAGES: Mapping[str, Kind] = {"pages": Pages("FILE")}
_PROTECTION = Word("|".join(PROTECTIONS), PROTECTIONS)
_NR = Number("PAGES")
_MASK = Option(Nodes(), default=0)
_MODE: Mapping[str, Kind] = {"mode": Word("POLICY", POLICIES)}
_WHERE = {"after": Option(PlaceOf("AREA")), "at": Option(PlaceOf("AREA"))}
_MAP_FLAGS = {"populate": 0x8000, "hugetlb": 0x40000, "noreserve": 0x4000, "locked": 0x2000,
              "stack": 0x20000}  # fmt: skip
_FOLIOS = {"none": 0, "16K": 4, "32K": 8, "64K": 16, "128K": 32, "256K": 64, "512K": 128,
           "1M": 256, "2M": 512}  # fmt: skip
"""A bit for each order."""
_CONTROL: Mapping[str, Kind] = {
    "file": Text("file of mm", r"/(proc|sys)/[\w./:-]{1,140}", "/proc/sys/vm/swappiness")
}
_ANY = Option(Number("NUMBER", 0), default=0)
_SEALS = {"no-more": 1, "shrink": 2, "grow": 4, "write": 8, "future-write": 16, "exec": 32}
"""F_SEAL_*: include/uapi/linux/fcntl.h"""
_RW_FLAGS = {"nowait": 8, "dontcache": 128}
"""RWF_*: include/uapi/linux/fs.h"""
_UFFD_MODES = {"missing": 1, "wp": 2, "minor": 4}

_FORMS = (
    Form("memory", process=False, declares=True, nr_optional=MOST_NODES - 1,
         operands={f"node{node}": Bytes() for node in range(MOST_NODES)}),
    Form("cpus", process=False, declares=True, operands={"nr": Number("NR", 1, MOST_CPUS)}),
    Form("dma32", process=False, declares=True, operands={"nr": Bytes()}),
    Form("slow", process=False, declares=True, operands={"nodes": Nodes()}),
    Form("boot", process=False, declares=True,
         operands={"name": Text("boot parameter", r"[a-z_.]{2,40}", "init_on_alloc"),
                   "value": Text("value", r"[\w.,:/*+-]{1,16}", "1")}),
    Form("group", process=False, declares=True,
         operands={"group": Name("GROUP"), "size": Bytes()}, nr_optional=1),
    Form("file", process=False, declares=True,
         operands={"file": Name("FILE"), "size": Bytes(), "kind": Word("KIND", FILE_KINDS)}),
    Form("swap", process=False, operands={"size": Swap()},
         flags={"synchronous": 1, "holes": 2, "device": 4}),
    Form("join", operands={"group": Name("GROUP")}),
    Form("mmap", operands={"name": Name("AREA"), "nr": _NR,
                           "source": PlaceOf("anon|FILE", none="anon"),
                           "sharing": Word("|".join(SHARINGS), SHARINGS),
                           "protection": _PROTECTION},
         flags=_MAP_FLAGS,
         options={"thp": Option(Word("always|never", THP_ADVICE)), **_WHERE}),
    Form("munmap", operands=_AREA),
    Form("mprotect", operands={**_AREA, "protection": _PROTECTION}),
    Form("mremap", operands={**_AREA, "target": PlaceOf("AREA"), "new_nr": _NR},
         flags={"stay": 0, "dontunmap": 4}, options=_WHERE),
    Form("madvise", operands={**_AREA, "advice": Word("ADVICE", ADVICE)}),
    Form("mlock", operands=_AREA, flags={"onfault": 1}),
    Form("munlock", operands=_AREA),
    Form("mlockall", flags={"current": 1, "future": 2, "onfault": 4}, flags_if_none=1),
    Form("munlockall"),
    Form("msync", operands=_AREA, flags={"async": 1, "invalidate": 2, "sync": 4}, flags_if_none=4),
    Form("mincore", operands=_AREA),
    Form("fork", operands={"child": Process()}),
    Form("exit"),
    Form("write", operands=_AREA,
         options={"same": Option(Number("VALUE", 1, 10**12), default=0, argument="value")}),
    Form("read", operands=_AREA),
    Form("move_pages", operands=_AREA, flags={"all": 4}, flags_if_none=2,
         options={"node": Option(Number("NODE", 0, MOST_NODES - 1), required=True)}),
    Form("migrating", operands=_AREA),
    Form("mbind", operands={**_AREA, **_MODE}, flags={"strict": 1, "move": 2},
         options={"nodes": _MASK}),
    Form("set_mempolicy", operands=_MODE, options={"nodes": _MASK}),
    Form("migrate_pages", options={"from": Option(Nodes(), required=True),
                                   "to": Option(Nodes(), required=True)}),
    Form("run_on", options={"cpu": Option(Number("CPU", 0, MOST_CPUS - 1), required=True)}),
    Form("pin", operands=_AREA, flags={"write": 1, "longterm": 2, "get": 4}),
    Form("unpin", operands=_AREA),
    Form("device"),
    Form("uffd_register", operands={**_AREA, "mode": Words("MODE,...", _UFFD_MODES)}),
    Form("uffd_unregister", operands=_AREA),
    Form("uffd_wp", operands={**_AREA, "protects": Word("on|off", {"on": 1, "off": 0})}),
    Form("uffd_copy", operands=_AREA, flags={"wp": 2}),
    Form("uffd_zero", operands=_AREA),
    Form("uffd_continue", operands=_AREA),
    Form("uffd_move", operands=_AREA, options={"from": Option(PlaceOf("AREA"), required=True)}),
    Form("uffd_poison", operands=_AREA),
    Form("truncate", process=False, operands={**_FILE, "nr": Number("PAGES", 0)}),
    Form("fallocate", process=False, operands=_FILE_PAGES, flags_argument="mode",
         flags={"keep": 1, "punch": 3, "collapse": 8, "zero": 16, "insert": 32}),
    Form("pwrite", process=False, operands=_FILE_PAGES, flags=_RW_FLAGS),
    Form("pread", process=False, operands=_FILE_PAGES, flags=_RW_FLAGS),
    Form("fadvise", process=False,
         operands={**_FILE_PAGES, "advice": Word("ADVICE", FILE_ADVICE)}),
    Form("fsync", process=False, operands=_FILE),
    Form("seal", process=False, operands=_FILE, flags=_SEALS, flags_argument="seals"),
    Form("reclaim", process=False, operands={"nr": _NR}),
    Form("compact", process=False),
    Form("wait", process=False, operands={"ms": Time()}),
    Form("hog", process=False, operands={"nr": Number("PAGES", 0)},
         options={"every": Option(Number("NR"), default=0)}),
    Form("fail", process=False, operands={"nr": Number("NR")},
         options={"order": Option(Number("ORDER", 1, 9), default=0),
                  "times": Option(Number("NR", 1, 64), default=1)}),
    Form("interrupt", process=False, operands={"nr": Number("NR")}),
    Form("mthp", process=False, operands={"orders": Words("SIZE,...|none", _FOLIOS)}),
    Form("release", process=False),
    Form("vmalloc", process=False, operands={"nr": _NR}),
    Form("call", operands={"function": Text("function", "[a-z_]{1,40}", "mseal"), **_AREA},
         nr_optional=1, options={"x": _ANY, "y": _ANY}),
    Form("set", process=False,
         operands={**_CONTROL, "value": Text("value", r"[\w.,:/*+-]{1,60}", "10")}),
    Form("show", process=False, operands=_CONTROL),
)  # fmt: skip
FORMS: Mapping[str, Form] = {form.verb: form for form in _FORMS}
"""Every step by its name."""
