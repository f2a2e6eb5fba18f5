# SPDX-License-Identifier: GPL-2.0-only
"""The changes that callers of change_protection() ask for, of any mapping."""

from collections.abc import Set as AbstractSet
from dataclasses import replace

from ream.oracle import pte
from ream.oracle.mapping import Mapping

from .change import Change

ACCESS = frozenset({"READ", "WRITE", "EXEC"})
ONE_PKEY = 1 << 59


def to(mapping: Mapping, access: AbstractSet[str], *, notified: bool = False) -> Change:
    """What mprotect() asks for, given the access that the VMA has afterwards.

    notified: of a shared mapping, whether its file system wants to know of the first write to a
    page, so that no entry is writable by its protection (vma_wants_writenotify()). Source:
    vma_set_page_prot(), mm/mmap.c; vma_wants_manual_pte_write_upgrade(), include/linux/mm.h.
    """
    flags = mapping.flags - ACCESS | access
    prot = replace(mapping, flags=flags, child_uffd_wp=False).page_prot
    asks: frozenset[str] = frozenset()
    if "WRITE" in flags and (notified or "SHARED" not in flags):
        prot &= ~pte.RW
        asks = frozenset({"TRY_CHANGE_WRITABLE"})
    return Change(flags, prot, asks)


def to_none(mapping: Mapping) -> Change:
    """mprotect() with PROT_NONE."""
    return to(mapping, frozenset())


def to_read(mapping: Mapping) -> Change:
    """mprotect() with PROT_READ; EXEC stays."""
    return to(mapping, mapping.flags & {"EXEC"} | {"READ"})


def to_write(mapping: Mapping, *, notified: bool = False) -> Change:
    """mprotect() with PROT_READ | PROT_WRITE; EXEC stays."""
    return to(mapping, mapping.flags & {"EXEC"} | {"READ", "WRITE"}, notified=notified)


def tracked(change: Change) -> Change:
    """The same where /proc/PID/clear_refs has asked for soft-dirty bits since."""
    return replace(change, flags=change.flags - {"SOFTDIRTY"})


def protect_by_uffd(mapping: Mapping) -> Change:
    """A range that userfaultfd write-protects: mwriteprotect_range()."""
    as_it_is = to(mapping, mapping.flags & ACCESS)
    return Change(as_it_is.flags | {"UFFD_WP"}, as_it_is.page_prot, frozenset({"UFFD_WP"}))


def resolve_by_uffd(mapping: Mapping) -> Change:
    """A range that userfaultfd gives back, writable where a fault would make it so."""
    as_it_is = to(mapping, mapping.flags & ACCESS)
    return replace(
        as_it_is,
        flags=as_it_is.flags | {"UFFD_WP"},
        asks=as_it_is.asks | {"UFFD_WP_RESOLVE"},
    )


def hint(mapping: Mapping, mm_users: int) -> Change:
    """Protection change by NUMA balancing, to sample which CPUs use a range: change_prot_numa()."""
    as_it_is = to(mapping, mapping.flags & ACCESS)
    return Change(as_it_is.flags, as_it_is.page_prot, frozenset({"PROT_NUMA"}), mm_users=mm_users)


def with_pkey(change: Change) -> Change:
    """The same by pkey_mprotect() with key 1."""
    return replace(change, page_prot=change.page_prot | ONE_PKEY)


def part(change: Change, first: int, nr: int, nr_calls: int = 1) -> Change:
    """Only some slots, in one call or several."""
    return replace(change, first=first, nr=nr, nr_calls=nr_calls)
