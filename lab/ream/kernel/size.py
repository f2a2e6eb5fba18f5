# SPDX-License-Identifier: GPL-2.0-only
"""How many bytes a series adds to a kernel's objects, symbol by symbol, as bloat-o-meter counts.

Objects of memory management and of every folder in which the series has a source are compiled
with and without it, in one configuration. Nothing is linked, so what a linker would drop counts.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Literal

from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from ream.kernel.build import BUILD, build_objects
from ream.kernel.cache import Step
from ream.kernel.objects import is_same_code, kernel_objects, plain
from ream.kernel.series import Patch, files
from ream.kernel.source import Tree
from ream.kernel.uncompiled import naming_the_patch
from ream.kernel.variant import assemble

Kind = Literal["text", "rodata", "data"]
KINDS: tuple[Kind, ...] = ("text", "rodata", "data")
"""What is executed; what is only read; what is written, zeroed or not."""

ALWAYS = "mm/"
"""Who includes a header that a series changes is not known without building all."""

_WRITABLE, _ALLOCATED, _EXECUTABLE = 0x1, 0x2, 0x4
"""Flags of a section, as the ELF specification numbers them."""

Sizes = Mapping[tuple[Kind, str], int]
"""By kind and name without what a compiler numbers it by, bytes."""


@dataclass(frozen=True)
class Grown:
    """A symbol that has another size in the two builds, or is in one of them alone."""

    kind: Kind
    name: str
    before: int
    after: int

    @property
    def delta(self) -> int:
        return self.after - self.before


@dataclass(frozen=True)
class SizeChange:
    """What a series does to the objects of one configuration."""

    nr_objects: int
    differing: tuple[str, ...]
    """Objects that hold other code or other data, as kbuild names them; of another size or not."""
    totals: Mapping[Kind, tuple[int, int]]
    """Bytes of all these objects' sections, before and after."""
    symbols: tuple[Grown, ...]
    """Symbols of all objects that differ, the largest change first."""


def size_change(
    tree: Tree,
    patches: Sequence[Patch],
    *,
    cache: Path,
    fragments: Sequence[Path],
    step: Step,
) -> SizeChange:
    """Compile with and without these patches and compare sizes; raises what `assemble` raises.

    fragments: of the configuration, as in `assemble`. What was compiled before is not again.
    """
    folders = _folders(patches)
    before, after = (
        _compiled(tree, some, folders, cache=cache, fragments=fragments, step=step)
        for some in ((), tuple(patches))
    )
    step("comparing objects")
    return compare(before, after)


def compare(before: Mapping[str, Path], after: Mapping[str, Path]) -> SizeChange:
    """Compare two builds, each given as the objects that it has by their names."""
    differing = tuple(
        name
        for name in sorted(before.keys() | after.keys())
        if name not in before or name not in after or not is_same_code(before[name], after[name])
    )
    totals: dict[Kind, tuple[int, int]] = dict.fromkeys(KINDS, (0, 0))
    sizes: list[Counter[tuple[Kind, str]]] = []
    for number, build in enumerate((before, after)):
        held: Counter[tuple[Kind, str]] = Counter()
        for name in (name for name in differing if name in build):
            own, whole = sizes_of(build[name])
            held.update(own)
            for kind, nr_bytes in whole.items():
                pair = list(totals[kind])
                pair[number] += nr_bytes
                totals[kind] = (pair[0], pair[1])
        sizes.append(held)
    grown = (
        Grown(kind, name, sizes[0][kind, name], sizes[1][kind, name])
        for kind, name in sizes[0].keys() | sizes[1].keys()
    )
    symbols = sorted(
        (one for one in grown if one.delta), key=lambda one: (-abs(one.delta), one.kind, one.name)
    )
    return SizeChange(len(before.keys() | after.keys()), differing, totals, tuple(symbols))


def sizes_of(path: Path) -> tuple[Sizes, Mapping[Kind, int]]:
    """Bytes of an object's symbols, and of its sections of each kind.

    Sections that only unwinders and tables of exceptions have are of no kind. Raises ELFError for
    what is no ELF file.
    """
    symbols: Counter[tuple[Kind, str]] = Counter()
    sections: Counter[Kind] = Counter()
    with path.open("rb") as file:
        elf = ELFFile(file)
        kinds = [_kind(one.name, one["sh_flags"]) for one in elf.iter_sections()]
        for one, kind in zip(elf.iter_sections(), kinds, strict=True):
            if kind is not None:
                sections[kind] += one["sh_size"]
        table = elf.get_section_by_name(".symtab")
        for symbol in table.iter_symbols() if isinstance(table, SymbolTableSection) else ():
            index = symbol["st_shndx"]
            kind = kinds[index] if isinstance(index, int) else None
            if kind is not None and symbol["st_size"] and symbol.name:
                symbols[kind, plain(symbol.name)] += symbol["st_size"]
    return symbols, sections


def _kind(name: str, flags: int) -> Kind | None:
    if not flags & _ALLOCATED:
        return None
    if flags & _EXECUTABLE:
        return "text"
    if flags & _WRITABLE:
        return "data"
    return "rodata" if name.startswith(".rodata") else None


def _folders(patches: Sequence[Patch]) -> tuple[str, ...]:
    """What kbuild is asked for: folders that a kernel's own Makefile descends into."""
    sources = (PurePosixPath(name) for patch in patches for name in files(patch))
    found = {f"{path.parent}/" for path in sources if path.suffix in (".c", ".S")}
    return tuple(sorted({ALWAYS, *(name for name in found if not name.startswith(ALWAYS))}))


def _compiled(
    tree: Tree,
    patches: Sequence[Patch],
    folders: Sequence[str],
    *,
    cache: Path,
    fragments: Sequence[Path],
    step: Step,
) -> dict[str, Path]:
    place = assemble(tree, patches, cache=cache, fragments=fragments, homes=(), step=step)
    # A folder that is new with the series is not there without it.
    there = [name for name in folders if (place / name / "Makefile").is_file()]
    with naming_the_patch(patches, place):
        build_objects(place, there, step=step)
    objects = kernel_objects(place / BUILD)
    return {name: path for name, path in objects.items() if name.startswith(tuple(there))}
