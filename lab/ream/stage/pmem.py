# SPDX-License-Identifier: GPL-2.0-only
"""Persistent memory that a guest emulates with ordinary memory."""

PMEM_START_BYTES = 4 << 30
"""Where it begins: above the hole for PCI, so that it is in one piece."""

PMEM_SYSTEM_BYTES = 6 << 30
"""Memory of a guest besides it: the map of 100 GiB, if it lies in RAM, takes 1.6 GiB."""

PMEM_DRIVERS = ("nd_pmem",)
"""The kernel's own that init loads when it wants them."""


def pmem_word(size_bytes: int) -> str:
    """The kernel's word that makes it."""
    return f"memmap={size_bytes:#x}!{PMEM_START_BYTES:#x}"
