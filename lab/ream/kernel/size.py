# SPDX-License-Identifier: GPL-2.0-only
"""Sizes of code in objects that differ between two builds of a kernel."""

from collections.abc import Mapping
from pathlib import Path

from elftools.elf.elffile import ELFFile

from ream.kernel.objects import is_same_code

_ALLOCATED, _EXECUTABLE = 0x2, 0x4
"""Flags of a section, as the ELF specification numbers them."""


def text_bytes(before: Mapping[str, Path], after: Mapping[str, Path]) -> tuple[int, int]:
    """Return the bytes of code in differing objects of two builds, which are given by name.

    Raises ELFError if an object is no ELF file.
    """
    differing = [
        name
        for name in before.keys() | after.keys()
        if name not in before or name not in after or not is_same_code(before[name], after[name])
    ]
    first, second = (
        sum(_text_bytes(build[name]) for name in differing if name in build)
        for build in (before, after)
    )
    return first, second


def _text_bytes(path: Path) -> int:
    wanted = _ALLOCATED | _EXECUTABLE
    with path.open("rb") as file:
        return sum(
            int(one["sh_size"])
            for one in ELFFile(file).iter_sections()
            if one["sh_flags"] & wanted == wanted
        )
