# SPDX-License-Identifier: GPL-2.0-only
"""Draws the random choices of each launch from the user's seed, so that plans are reproducible."""

import hashlib
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from ream.experiment import AGAIN, IMPLIED, PUBLISHED, Row, is_copy

_Name = TypeVar("_Name", int, str)

OFFSET_STEP_BYTES = 64
OFFSET_PAGE_BYTES = 4096

MOST_VARIANTS = 32
"""The most variants that one program has room for (native/host/launch.h)."""
COMPARED_WITH = (*IMPLIED, PUBLISHED)
"""Variants that ratios and floors refer to, along with every variant that has a second copy."""

# For the estimate before anything is known; a slow shared two-CPU guest.
ASSUMED_BYTES_PER_S = 4e9
PASSES = {"variant": 4, "limit": 2}
"""How often a sample moves its bytes: pre-state, the operation, and two images compared. For a
limit, the first two only."""
LIMIT_KINDS = 4
"""The assumed number of kinds of fills per number of CPUs; the CPU decides how many it supports."""
LAUNCH_S = 2.0
"""Seconds to link one launch in its own order, and to start it."""


@dataclass(frozen=True)
class Launch:
    """One fresh start of the runner, with its own random layout of code and data."""

    number: int
    seed: int
    """A seed of 64 bits, never 0, for the runner's own draws: the order within each round."""
    data_offset: int
    """Page offset at which writable data start, the same for every variant of this launch."""
    link_order: tuple[str, ...]


def plan_launches(variants: Sequence[str], *, launches: int, seed: int) -> tuple[Launch, ...]:
    """Draw every launch of a run.

    Each draw hashes the seed, the launch and its purpose, so one launch's layout stays the
    same when there are more launches, and does not depend on this Python's generator.
    """
    return tuple(
        Launch(
            number=number,
            seed=_draw(seed, number, "rounds") % (2**64 - 1) + 1,
            data_offset=_draw(seed, number, "offset")
            % (OFFSET_PAGE_BYTES // OFFSET_STEP_BYTES)
            * OFFSET_STEP_BYTES,
            link_order=drawn_order(variants, seed, number, "link"),
        )
        for number in range(launches)
    )


def plan_programs(
    variants: Sequence[str], *, launches: int, seed: int, most: int = MOST_VARIANTS
) -> tuple[Launch, ...]:
    """The launches of programs with at most `most` variants each, which contain them all.

    If all variants fit into one program, these are the launches of `plan_launches`. Otherwise each
    launch becomes several with consecutive numbers. Every program contains the variants that others
    are compared with, since only rounds of one program are paired.
    """
    twice = {name.removesuffix(AGAIN) for name in variants if is_copy(name)}
    to = {*COMPARED_WITH, *twice, *(name + AGAIN for name in twice)}
    shared = [name for name in variants if name in to]
    others = [name for name in variants if name not in to]
    nr_parts = max(1, -(-len(others) // (most - len(shared))))
    share = -(-len(others) // nr_parts)
    parts = [{*shared, *others[at * share : (at + 1) * share]} for at in range(nr_parts)]

    def of_part(launch: Launch) -> Launch:
        part = parts[launch.number % nr_parts]
        order = tuple(name for name in launch.link_order if name in part)
        return replace(launch, link_order=order)

    planned = plan_launches(variants, launches=launches * nr_parts, seed=seed)
    return tuple(of_part(launch) for launch in planned)


def drawn_order(items: Iterable[_Name], seed: int, *purpose: int | str) -> tuple[_Name, ...]:
    """The items, which are distinct, in a random order that depends on seed and purpose alone.

    Sorting by independent uniform keys is a uniform permutation.
    """
    return tuple(sorted(items, key=lambda item: _draw(seed, *purpose, item)))


def _draw(seed: int, *purpose: int | str) -> int:
    """A uniform number of 256 bits that depends on seed and purpose alone."""
    text = "\0".join(str(part) for part in ("ream", seed, *purpose))
    return int.from_bytes(hashlib.sha256(text.encode()).digest(), "big")


def bytes_gone_by(
    rows: Iterable[Row], *, nr_variants: int, launches: int, nr_limits: int = LIMIT_KINDS
) -> int:
    """The approximate number of bytes that a run moves, from which its duration is estimated.

    nr_variants includes second copies; nr_limits is the number of fills in each round.
    """
    passes = nr_variants * PASSES["variant"] + nr_limits * PASSES["limit"]
    return launches * passes * sum(row.rounds * row.written_bytes for row in rows)


def estimated_seconds(rows: Iterable[Row], *, nr_variants: int, launches: int) -> float:
    """An estimate of the run's duration on a slow machine, used until samples arrive."""
    nr_bytes = bytes_gone_by(rows, nr_variants=nr_variants, launches=launches)
    return nr_bytes / ASSUMED_BYTES_PER_S + launches * LAUNCH_S


def without(names: Collection[str], launches: Iterable[Launch]) -> tuple[Launch, ...]:
    """The same launches without some of the variants; their other random choices do not change."""
    return tuple(
        replace(launch, link_order=tuple(one for one in launch.link_order if one not in names))
        for launch in launches
    )
