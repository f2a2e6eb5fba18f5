# SPDX-License-Identifier: GPL-2.0-only
"""Compares two builds of an object, function by function and variable by variable.

A moved line changes debug information, line numbers and the address of everything after it, but
nothing that is executed. So functions are compared by their instructions and by the meaning of
their relocations: a symbol by its name, a string by its characters, a constant by its bytes.
"""

import hashlib
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from elftools.elf.elffile import ELFFile
from elftools.elf.relocation import RelocationSection
from elftools.elf.sections import SymbolTableSection

from ream.command import Command, run

DEADLINE_S = 120.0

_EXECUTABLE, _ALLOCATED = 0x4, 0x2
"""Flags of a section, as the ELF specification numbers them."""
_UNSAID = re.compile(
    r"\.eh_frame|__bug_table|\.orc_|\.discard|\.modinfo|__mcount_loc|\.note|\.rodata\.str"
)
"""Sections that are not compared: line numbers, unwind data, and strings, which are compared by
content where they are used."""
_TABLES = re.compile(r"\.altinstructions|__jump_table|__ex_table|\.smp_locks|\.static_call_sites")
"""Sections of tables, in which each entry belongs to the function that it refers to first."""
_CHOICES, _CHOICE_BYTES = ".altinstructions", 14
_ALTERNATIVES = ".altinstr_"
"""Prefix of sections with code that other code refers to by address."""
_FUNCTION = re.compile(r"[0-9a-f]+ <(?P<name>[^>]+)>:")
_INSTRUCTION = re.compile(r"\s+[0-9a-f]+:\t(?P<text>.*)")
_SECTION = re.compile(r"Disassembly of section (?P<name>.+):")
_RELOCATION = re.compile(r"\t(?P<at>[0-9a-f]+): (?P<kind>R_\w+)\t\S+")
"""A relocation, printed after its instruction."""
_ADDRESS = re.compile(r"\b[0-9a-f]+ (?=<)")
_PADDING = re.compile(r"nop|xchg +%ax,%ax|data16|cs nop|int3|lea +0x0\(%[er]si")
_SUFFIX = re.compile(r"\.\d+$|(?<=__UNIQUE_ID_).*")
"""Suffixes of symbols: numbers that the compiler gives in order of appearance, and line numbers."""
_RELATIVE_TYPES = (2, 4, 9, 24, 41, 42)
"""R_X86_64_PC32, PLT32, GOTPCREL, PC64, GOTPCRELX and REX_GOTPCRELX."""
_FIELD_BYTES = 4
"""Bytes of the field of a relative relocation, which is relative to the end of the field."""


@dataclass(frozen=True)
class ObjectDifference:
    """Differences between two builds of an object, by name."""

    changed: tuple[str, ...] = ()
    """Functions that both have, with different instructions."""
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    data: tuple[str, ...] = ()
    """Variables, constants and tables."""

    def __bool__(self) -> bool:
        return any((self.changed, self.added, self.removed, self.data))


NO_KERNEL = ("arch/x86/boot", "scripts", "tools", "usr")
"""Folders with objects that run before the kernel or on the host, or contain a whole kernel."""


def kernel_objects(build: Path) -> dict[str, Path]:
    """Return the objects from which a kernel and its modules were linked, by name."""
    found = {str(path.relative_to(build)): path for path in build.rglob("*.o")}
    return {
        name: path
        for name, path in sorted(found.items())
        if not (name.startswith(tuple(f"{folder}/" for folder in NO_KERNEL)) or _is_linked(path))
    }


def _is_linked(path: Path) -> bool:
    """Whether kbuild makes the object from other objects or their symbols."""
    return path.name.startswith((".", "vmlinux")) or path.name.endswith(".mod.o")


def is_same_code(theirs: Path, ours: Path) -> bool:
    """Whether two builds of an object have the same code and data."""
    return theirs.samefile(ours) or not differences(theirs, ours)


def differences(theirs: Path, ours: Path) -> ObjectDifference:
    """Return the differences of `ours` from `theirs`, two objects for the same architecture.

    Parts that are reported to differ may be equivalent; parts that are not reported are the same.
    Raises ReamError if objdump cannot read one of them.
    """
    if theirs.read_bytes() == ours.read_bytes():
        return ObjectDifference()
    before, after = contents(theirs), contents(ours)
    functions = [
        {name: its for name, its in one.items() if name.startswith("f ")} for one in (before, after)
    ]
    data = [{n: its for n, its in one.items() if n.startswith("d ")} for one in (before, after)]
    changed = (n for n, its in functions[0].items() if n in functions[1] and functions[1][n] != its)
    return ObjectDifference(
        changed=_names(changed),
        added=_names(functions[1].keys() - functions[0].keys()),
        removed=_names(functions[0].keys() - functions[1].keys()),
        data=_names(n for n in data[0].keys() | data[1].keys() if data[0].get(n) != data[1].get(n)),
    )


def _names(found: Any) -> tuple[str, ...]:
    return tuple(sorted(one[2:] for one in found))


@cache
def contents(path: Path) -> Mapping[str, tuple[str, ...]]:
    """Return digests of functions (by "f NAME") and of data (by "d NAME").

    There are several if the compiler distinguished several objects of one name by numbers.
    """
    with path.open("rb") as file:
        elf = _Object(ELFFile(file))
        found: dict[str, list[str]] = defaultdict(list)
        entries = elf.entries()
        for name, text in _functions(path, elf):
            found[f"f {plain(name)}"].append(_digest("\n".join((text, *entries[name]))))
        for name, text in elf.data():
            found[f"d {plain(name)}"].append(_digest(text))
    return {name: tuple(sorted(its)) for name, its in found.items()}


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()


def plain(name: str) -> str:
    """Return a symbol's name without the numbers that a compiler adds."""
    return _SUFFIX.sub("", name)


def _functions(path: Path, elf: "_Object") -> Iterator[tuple[str, str]]:
    """Yield functions, and code outside of functions, as text without addresses."""
    argv = ("objdump", "-d", "-r", "-w", "--no-show-raw-insn", str(path))
    section, name, lines = "", "", list[str]()
    for line in run(Command(argv, path.parent, DEADLINE_S)).splitlines():
        if found := _SECTION.fullmatch(line):
            section = found["name"]
        elif found := _FUNCTION.fullmatch(line):
            if name and not name.startswith(_ALTERNATIVES):
                yield name, _joined(lines)
            name, lines = found["name"], []
        elif found := _INSTRUCTION.match(line):
            lines.append(_plain_operands(_RELOCATION.sub("", found["text"])))
            for its in _RELOCATION.finditer(line):
                lines.append(f"\t{its['kind']} {elf.meaning(section, int(its['at'], 16))}")
    if name and not name.startswith(_ALTERNATIVES):
        yield name, _joined(lines)


def _joined(lines: list[str]) -> str:
    """Join lines without the padding before the next function, whose alignment determines it."""
    while lines and _PADDING.match(lines[-1]):
        lines.pop()
    return "\n".join(lines)


def _plain_operands(text: str) -> str:
    text = _ADDRESS.sub("", text)
    return re.sub(r"<([^>+]+)", lambda found: f"<{plain(found[1])}", text)


@dataclass(frozen=True)
class _Symbol:
    name: str
    at: int
    nr_bytes: int
    is_function: bool


class _Object:
    """The meaning of addresses in an object's sections."""

    def __init__(self, elf: ELFFile) -> None:
        self._sections = {one.name: one for one in elf.iter_sections()}
        self._symbols: dict[str, list[_Symbol]] = defaultdict(list)
        self._labels: dict[str, tuple[str, int]] = {}
        self._relocations: dict[str, dict[int, tuple[str, int]]] = {}
        self._load_symbols(elf)
        self._load_relocations(elf)

    def _load_symbols(self, elf: ELFFile) -> None:
        table = elf.get_section_by_name(".symtab")
        for one in table.iter_symbols() if isinstance(table, SymbolTableSection) else ():
            index, kind = one["st_shndx"], one["st_info"]["type"]
            if not isinstance(index, int) or not one.name:
                continue
            if one.name.startswith(".L"):
                self._labels[one.name] = elf.get_section(index).name, one["st_value"]
            if kind in ("STT_FUNC", "STT_OBJECT"):
                self._symbols[elf.get_section(index).name].append(
                    _Symbol(one.name, one["st_value"], one["st_size"], kind == "STT_FUNC")
                )
        for its in self._symbols.values():
            its.sort(key=lambda one: one.at)

    def _load_relocations(self, elf: ELFFile) -> None:
        for section in elf.iter_sections():
            if not isinstance(section, RelocationSection):
                continue
            symbols = elf.get_section(section["sh_link"])
            assert isinstance(symbols, SymbolTableSection)
            its = elf.get_section(section["sh_info"])
            behind = _FIELD_BYTES if its["sh_flags"] & _EXECUTABLE else 0
            found: dict[int, tuple[str, int]] = {}
            for one in section.iter_relocations():
                symbol = symbols.get_symbol(one["r_info_sym"])
                name = symbol.name or elf.get_section(symbol["st_shndx"]).name
                is_relative = one["r_info_type"] in _RELATIVE_TYPES
                found[one["r_offset"]] = (name, one["r_addend"] + (behind if is_relative else 0))
            self._relocations[its.name] = found

    @cached_property
    def _unnamed(self) -> Mapping[str, list[int]]:
        """Addresses without a symbol that relocations refer to, by section and ascending."""
        found: dict[str, set[int]] = defaultdict(set)
        for its in self._relocations.values():
            for target, addend in its.values():
                name, at = self._at(target, addend)
                if name in self._sections and self._named(name, at) is None:
                    found[name].add(at)
        return {name: sorted(its) for name, its in found.items()}

    def meaning(self, section: str, at: int) -> str:
        """Return what the relocation at an offset in a section refers to."""
        return self._place(*self._relocations[section][at], depth=0)

    def _at(self, name: str, at: int) -> tuple[str, int]:
        """Replace a compiler's label by its section and offset."""
        section, first = self._labels.get(name, (name, 0))
        return section, first + at

    def _place(self, name: str, at: int, *, depth: int) -> str:
        name, at = self._at(name, at)
        if name not in self._sections:
            return f"{plain(name)}{at:+d}"
        if name.startswith(".rodata.str"):
            data = self._sections[name].data()
            return (
                repr(data[at : data.find(b"\0", at)]) if 0 <= at < len(data) else f"{name}{at:+d}"
            )
        if (symbol := self._named(name, at)) is not None:
            return f"{plain(symbol.name)}{at - symbol.at:+d}"
        is_code = self._sections[name]["sh_flags"] & _EXECUTABLE
        if depth or (is_code and not name.startswith(_ALTERNATIVES)):
            return f"{name}{at:+d}"
        return f"{name}: {self._blob(name, at, self._end(name, at), depth=depth + 1)}"

    def _named(self, section: str, at: int) -> _Symbol | None:
        its = self._symbols.get(section, ())
        return next((one for one in its if one.at <= at < one.at + max(one.nr_bytes, 1)), None)

    def _end(self, section: str, at: int) -> int:
        """Return the last possible end of unnamed data that begins at an offset."""
        marks = [*self._unnamed.get(section, ()), *(one.at for one in self._symbols[section])]
        size = int(self._sections[section]["sh_size"])
        return min((mark for mark in marks if mark > at), default=size)

    def _blob(self, section: str, start: int, end: int, *, depth: int = 0) -> str:
        """Return bytes as text with the meanings of their relocations."""
        its = self._sections[section]
        data = b"" if its["sh_type"] == "SHT_NOBITS" else its.data()[start:end]
        places = [
            f"{at - start}: {self._place(name, addend, depth=depth)}"
            for at, (name, addend) in sorted(self._relocations.get(section, {}).items())
            if start <= at < end
        ]
        return f"{end - start} bytes {data.rstrip(bytes(1)).hex()} {'; '.join(places)}"

    def entries(self) -> Mapping[str, list[str]]:
        """Table entries (alternatives, static keys and so on) by function."""
        found: dict[str, list[str]] = defaultdict(list)
        for section, relocations in self._relocations.items():
            if not _TABLES.match(section):
                continue
            starts = []
            for at, (target, addend) in sorted(relocations.items()):
                place = self._at(target, addend)
                symbol = self._named(*place) if place[0] in self._sections else None
                if symbol is not None and symbol.is_function:
                    starts.append((at, symbol))
            ends = [at for at, _ in starts[1:]] + [int(self._sections[section]["sh_size"])]
            for (at, symbol), end in zip(starts, ends, strict=True):
                text = self._alternative(at) if section == _CHOICES else ""
                found[symbol.name].append(f"{section}: {text or self._blob(section, at, end)}")
        return defaultdict(list, {name: sorted(its) for name, its in found.items()})

    def _alternative(self, at: int) -> str:
        """Return a struct alt_instr as text; an empty replacement starts where the next does."""
        entry = self._sections[_CHOICES].data()[at : at + _CHOICE_BYTES]
        (site, site_at), (code, start) = (self._relocations[_CHOICES][at + n] for n in (0, 4))
        replacement = self._blob(code, start, start + entry[-1], depth=1)
        return f"{self._place(site, site_at, depth=1)} {entry[8:].hex()} {replacement}"

    def data(self) -> Iterator[tuple[str, str]]:
        """Yield every variable, and every table without symbols, with its contents.

        Unnamed constants are part of what refers to them.
        """
        for name, section in self._sections.items():
            flags = section["sh_flags"]
            if not flags & _ALLOCATED or flags & _EXECUTABLE:
                continue
            if _UNSAID.match(name) or _TABLES.match(name):
                continue
            objects = [one for one in self._symbols[name] if not one.is_function]
            for one in objects:
                yield one.name, self._blob(name, one.at, one.at + one.nr_bytes)
            if not objects and not name.startswith(".rodata") and section["sh_size"]:
                yield name, self._blob(name, 0, section["sh_size"])
