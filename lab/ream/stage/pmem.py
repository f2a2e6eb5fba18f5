# SPDX-License-Identifier: GPL-2.0-only
"""Persistent memory that a guest emulates with ordinary memory."""

PMEM_START_BYTES = 4 << 30
"""Physical address of the emulated memory: above the PCI hole, so that it is contiguous."""

PMEM_SYSTEM_BYTES = 6 << 30
"""Other memory of a guest. The memory map of 100 GiB takes 1.6 GiB if it is in RAM."""

PMEM_DRIVERS = ("nd_pmem",)
"""Drivers of the kernel that init loads on demand."""


def pmem_word(size_bytes: int) -> str:
    """Return the kernel parameter that reserves this much memory for it."""
    return f"memmap={size_bytes:#x}!{PMEM_START_BYTES:#x}"
