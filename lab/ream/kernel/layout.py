# SPDX-License-Identifier: GPL-2.0-only
"""Reads the layout of memory management structures in a kernel, and compares two kernels.

The layout is in the debugging information of kernel/reach/layout.c, compiled in the kernel's tree.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from elftools.dwarf.die import DIE
from elftools.elf.elffile import ELFFile

STRUCTURES = (
    *("page", "folio", "ptdesc", "vm_area_struct", "mm_struct", "anon_vma", "zone"),
    *("pglist_data", "mem_section", "mmu_gather"),
)
"""Structures that kernel/reach/layout.c refers to."""

MOST_NAMED = 3
"""The most members of a structure in one line."""

_BITS = 8
_AGGREGATES = ("DW_TAG_structure_type", "DW_TAG_union_type")
_SAME_SIZE = (
    *("DW_TAG_typedef", "DW_TAG_const_type", "DW_TAG_volatile_type"),
    *("DW_TAG_restrict_type", "DW_TAG_atomic_type"),
)
"""DWARF tags of types with the size of the type that they refer to."""


@dataclass(frozen=True)
class Structure:
    """A structure: its size in bytes, and the offset and size of each member in bits."""

    nr_bytes: int
    members: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """Offset and size in bits by member. Members of unnamed structures and unions are included."""


def layouts(path: Path) -> dict[str, Structure]:
    """Return the structures in STRUCTURES that an object's debugging information describes.

    Raises ELFError if the file is no ELF file.
    """
    with path.open("rb") as file:
        found: dict[str, Structure] = {}
        for unit in ELFFile(file).get_dwarf_info().iter_CUs():
            for die in unit.get_top_DIE().iter_children():
                if die.tag not in _AGGREGATES or "DW_AT_byte_size" not in die.attributes:
                    continue
                if (name := _name(die)) in STRUCTURES:
                    found[name] = Structure(_number(die, "byte_size"), dict(_members(die, 0)))
        return found


def layout_changes(
    before: Mapping[str, Structure], after: Mapping[str, Structure]
) -> tuple[str, ...]:
    """Return a line for each structure whose layout differs between two kernels."""
    return tuple(
        f"struct {name} {what}"
        for name in STRUCTURES
        if (what := _change(before.get(name), after.get(name))) is not None
    )


def _change(before: Structure | None, after: Structure | None) -> str | None:
    if before == after:
        return None
    if before is None or after is None:
        return "is new" if before is None else "is gone"
    size = f"has {after.nr_bytes} bytes"
    size += " as before" if after.nr_bytes == before.nr_bytes else f", not {before.nr_bytes}"
    old, new = before.members, after.members
    parts = [
        _named("new", [name for name in new if name not in old]),
        _named("gone", [name for name in old if name not in new]),
        _named("moved", [n for n in new if n in old and new[n][0] != old[n][0]]),
        _named("resized", [n for n in new if n in old and new[n][1] != old[n][1]]),
    ]
    return "; ".join([size, *filter(None, parts)])


def _named(what: str, members: list[str]) -> str:
    more = f" and {len(members) - MOST_NAMED} more" if len(members) > MOST_NAMED else ""
    return f"{what}: {', '.join(members[:MOST_NAMED])}{more}" if members else ""


def _members(die: DIE, at_bits: int) -> Iterator[tuple[str, tuple[int, int]]]:
    for child in die.iter_children():
        if child.tag != "DW_TAG_member":
            continue
        kind = child.get_DIE_from_attribute("DW_AT_type")
        place = at_bits + _offset_bits(child)
        if (name := _name(child)) is not None:
            yield name, (place, _size_bits(child, kind))
        elif kind.tag in _AGGREGATES:
            yield from _members(kind, place)


def _offset_bits(member: DIE) -> int:
    if "DW_AT_data_bit_offset" in member.attributes:
        return _number(member, "data_bit_offset")
    return _BITS * _number(member, "data_member_location")


def _size_bits(member: DIE, kind: DIE) -> int:
    if "DW_AT_bit_size" in member.attributes:
        return _number(member, "bit_size")
    return _BITS * _nr_bytes(kind)


def _nr_bytes(kind: DIE) -> int:
    """Return the size of a type; 0 for a flexible array and for types without a size."""
    if "DW_AT_byte_size" in kind.attributes:
        return _number(kind, "byte_size")
    if "DW_AT_type" not in kind.attributes:
        return 0
    of = kind.get_DIE_from_attribute("DW_AT_type")
    if kind.tag == "DW_TAG_array_type":
        number = 1
        for one in kind.iter_children():
            if one.tag == "DW_TAG_subrange_type":
                number *= _elements(one)
        return number * _nr_bytes(of)
    return _nr_bytes(of) if kind.tag in _SAME_SIZE else 0


def _elements(subrange: DIE) -> int:
    if "DW_AT_count" in subrange.attributes:
        return _number(subrange, "count")
    return _number(subrange, "upper_bound") + 1 if "DW_AT_upper_bound" in subrange.attributes else 0


def _name(die: DIE) -> str | None:
    its = die.attributes.get("DW_AT_name")
    return None if its is None else its.value.decode("ascii", "replace")


def _number(die: DIE, name: str) -> int:
    its = die.attributes.get(f"DW_AT_{name}")
    return 0 if its is None else int(its.value)
