# SPDX-License-Identifier: GPL-2.0-only
"""Every change of protection of a mapping, at its edges and in random mixtures."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from experiments.fork.oracle.images import initial
from experiments.fork.oracle.mixture import random_mapping
from ream.oracle.mapping import Mapping
from ream.oracle.meaning import is_arm64
from ream.oracle.memmap import Facts
from ream.stage.hosted import Batch, some
from ream.stage.native import Build

from .oracle.change import Change, change_protection
from .oracle.mappings import correctness_mappings
from .oracle.requests import (
    hint,
    part,
    protect_by_uffd,
    resolve_by_uffd,
    to_none,
    to_read,
    to_write,
    tracked,
    with_pkey,
)
from .oracle.uniform import Kind, uniform_change
from .plan import Case, place_of, written_plan

MAPPINGS_A_LAUNCH = 8
"""Some hundred files each, with all changes of it; a process may have 1024 open."""


def _first_changes(mapping: Mapping, facts: Facts) -> Iterator[tuple[str, Change]]:
    """What is asked of a mapping as it is."""
    yield "read", to_read(mapping)
    yield "write", to_write(mapping)
    yield "none", to_none(mapping)
    yield "write-tracked", tracked(to_write(mapping))
    yield "write-pkey", with_pkey(to_write(mapping))
    if not mapping.flags & {"MIXEDMAP", "PFNMAP"}:  # of those kernels flush once or twice
        yield "read-overlapped", replace(to_read(mapping), overlapped=True)
    yield "uffd-wp", protect_by_uffd(mapping)
    yield "uffd-back", resolve_by_uffd(mapping)
    if "SHARED" in mapping.flags:
        yield "write-notified", to_write(mapping, notified=True)
    if facts["NUMA_BALANCING"]:
        yield "hint", hint(mapping, mm_users=2)
        yield "hint-alone", hint(mapping, mm_users=1)


def _parts(mapping: Mapping) -> Iterator[tuple[str, Change]]:
    """What is asked of some of it: batches begin and end in the middle of folios."""
    third = mapping.nr_pages // 3
    if not third:
        return
    yield "read-middle", part(to_read(mapping), third, third)
    yield "write-middle", part(to_write(mapping), third, third)
    yield "write-thirds", part(to_write(mapping), 0, third, nr_calls=3)


def _then(mapping: Mapping) -> Iterator[tuple[str, str, Change]]:
    """What is asked of it after a first change."""
    yield "none", "write", to_write(mapping)
    yield "none", "read", to_read(mapping)
    yield "none", "none", to_none(mapping)
    yield "read", "write", to_write(mapping)
    yield "read", "write-tracked", tracked(to_write(mapping))
    yield "uffd-wp", "uffd-back", resolve_by_uffd(mapping)
    if "SHARED" in mapping.flags:
        yield "read", "write-notified", to_write(mapping, notified=True)
        yield "none", "write-notified", to_write(mapping, notified=True)
    third = mapping.nr_pages // 3
    if third:
        yield "none", "write-middle", part(to_write(mapping), third, third)


def story(name: str, mapping: Mapping, build: Build) -> Iterator[Case]:
    """All changes of one mapping: what a kernel leaves that takes batches, and one that does not.

    Both begin with the same memory.
    """
    facts = build.facts
    fresh = initial(mapping, facts, place_of(build))
    first = dict(_first_changes(mapping, facts))
    after = {
        act: change_protection(mapping, fresh.parent, change, facts, batched=False).entries
        for act, change in first.items()
    }
    asked = [(act, fresh.parent, change) for act, change in (*first.items(), *_parts(mapping))]
    for before, act, change in _then(mapping):
        # Markers may have come where nothing was: entries and slots must be alike.
        if np.array_equal(after[before] == 0, fresh.parent == 0):
            asked.append((f"{before}-then-{act}", after[before], change))
    for act, entries, change in asked:
        batched, single, apart = (
            change_protection(mapping, entries, change, facts, batched=one, at_once=other)
            for one, other in ((True, True), (False, True), (True, False))
        )
        yield Case(
            f"{name}/{act}",
            mapping.address,
            entries,
            fresh.descriptors,
            change,
            batched,
            single,
            apart,
            anonymous=mapping.anonymous,
        )


NR_RACES = 40
RACED_PTES = 8192
"""So many entries at a time: another CPU meets the change some times in each race."""


def races(build: Build) -> Iterator[Case]:
    """Changes of entries that nobody has used, while another CPU uses them."""
    for operation in ("rw-to-r", "rw-to-none", "r-to-rw"):
        kind = Kind(0, RACED_PTES, operation, False, False, 1, 0, unused=True)
        made = uniform_change(kind, 1, build.facts, place_of(build))
        yield Case(
            f"raced/{operation}",
            made.address,
            made.entries,
            made.descriptors,
            made.change,
            made.after,
            races=NR_RACES,
        )


def cases(build: Build, work: Path, seeds: Iterable[int], *, edges: bool) -> Iterator[Batch]:
    named = correctness_mappings().items() if edges else ()
    mappings = [(name, one) for name, one in named if not one.missing_facts(build.facts)]
    mappings += ((f"mixture-{seed}", random_mapping(seed)) for seed in seeds)
    if is_arm64(build.facts):
        mappings += [(f"{name}-cont", replace(one, folded=True)) for name, one in mappings]
    for its in some(mappings, MAPPINGS_A_LAUNCH):
        told = [case for name, mapping in its for case in story(name, mapping, build)]
        yield written_plan(told, build.facts, work), 0
    if edges:
        yield written_plan(races(build), build.facts, work), 0
