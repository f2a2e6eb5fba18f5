# SPDX-License-Identifier: GPL-2.0-only
"""Moves of every mapping, at their edges and in random mixtures."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from experiments.fork.oracle.images import initial
from experiments.fork.oracle.mixture import random_mapping
from ream.oracle.mapping import PAGES_PER_PMD, Mapping
from ream.oracle.meaning import is_arm64
from ream.oracle.memmap import Facts
from ream.stage.hosted import Batch, some
from ream.stage.native import Build

from .oracle.mappings import correctness_mappings
from .oracle.move import Move, answers, window
from .plan import Case, place_of, written_plan

MAPPINGS_A_LAUNCH = 20
"""Some dozen files each; a process may have 1024 open."""


def _by(nr_slots: int) -> int:
    """The nearest place for so many slots that is not as far as a page table is long."""
    return nr_slots + (nr_slots % PAGES_PER_PMD == 0)


def moves(mapping: Mapping, facts: Facts) -> Iterator[tuple[str, Move]]:
    """What is asked of a mapping: beside it, into other tables, parts of it."""
    nr, third = mapping.nr_pages, mapping.nr_pages // 3
    near, far = _by(nr), _by(nr + PAGES_PER_PMD + 100)
    yield "near", Move(nr, near)
    yield "far", Move(nr, far)
    if facts["USERFAULTFD"]:
        yield "loses-uffd", Move(nr, near, loses_uffd=True)
    if third:
        yield "middle", Move(third, near, first=third)
        yield "thirds", Move(third, far, stride=third, nr_calls=3)


def story(name: str, mapping: Mapping, build: Build) -> Iterator[Case]:
    """All moves of one mapping, and what each kind of kernel leaves."""
    facts = build.facts
    fresh = initial(mapping, facts, place_of(build))
    for said, move in moves(mapping, facts):
        entries = window(mapping, fresh.parent, move)
        for reclaimed in (False, True) if said == "near" else (False,):
            yield Case(
                f"{name}/{said}{'-reclaimed' if reclaimed else ''}",
                mapping.address,
                entries,
                fresh.descriptors,
                move,
                answers(mapping, entries, move, facts, reclaimed=reclaimed),
                flags=frozenset(mapping.flags),
                page_prot=mapping.page_prot,
                reclaimed=reclaimed,
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
