# SPDX-License-Identifier: GPL-2.0-only
"""Sections of memory: what the memory map is made and switched on in units of."""

from typing import Annotated

from pydantic import AfterValidator

from ream.experiment.shape import PAGE_BYTES
from ream.experiment.size import Size
from ream.size import format_size

PAGES_PER_SECTION = 32768  # SECTION_SIZE_BITS 27 - PAGE_SHIFT 12, arch/x86/include/asm/sparsemem.h
SECTION_BYTES = PAGES_PER_SECTION * PAGE_BYTES


def _whole_sections(size: int) -> int:
    if size % SECTION_BYTES:
        raise ValueError(f"not a whole number of sections of {format_size(SECTION_BYTES)}")
    return size


WholeSections = Annotated[Size, AfterValidator(_whole_sections)]
"""Bytes of whole sections; each field adds its own bounds."""
