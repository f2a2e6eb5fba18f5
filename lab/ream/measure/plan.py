# SPDX-License-Identifier: GPL-2.0-only
"""What each launch draws by lot, from the user's seed alone: the same seed plans the same run."""

import hashlib
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from ream.experiment import AGAIN, IMPLIED, PUBLISHED, Row, is_copy

_Name = TypeVar("_Name", int, str)

OFFSET_STEP_BYTES = 64
OFFSET_PAGE_BYTES = 4096

MOST_VARIANTS = 32
"""Of one program: what native/host/launch.h has room for."""
COMPARED_WITH = (*IMPLIED, PUBLISHED)
"""Variants that ratios of others are to, and the floor's; what has a second copy is one, too."""

# For the estimate before anything is known; a slow shared two-CPU guest.
ASSUMED_BYTES_PER_S = 4e9
PASSES = {"variant": 4, "limit": 2}
"""Times a sample's bytes go by: pre-state, itself, and two images compared; or the first two."""
LIMIT_KINDS = 4
"""Fills of each number of CPUs; the CPU decides how many of them it has."""
LAUNCH_S = 2.0
"""Linking one launch in its own order, and starting it."""


@dataclass(frozen=True)
class Launch:
    """One fresh start of the runner, with its own random layout of code and data."""

    number: int
    seed: int
    """64 bits, not 0, for the runner's own draws: the order within each round."""
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
    """Launches of programs that hold at most `most` variants each, and all of them together.

    Where all fit into one program these are the launches of `plan_launches`. Where they do not,
    each launch becomes several with numbers of their own. What others are compared with is in
    every one of them, since only rounds of one program are paired.
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
    """The items, each a different one, in an order drawn for this seed and purpose alone.

    Sorting by independent uniform keys is a uniform permutation.
    """
    return tuple(sorted(items, key=lambda item: _draw(seed, *purpose, item)))


def _draw(seed: int, *purpose: int | str) -> int:
    """A uniform number of 256 bits that belongs to this seed and purpose."""
    text = "\0".join(str(part) for part in ("ream", seed, *purpose))
    return int.from_bytes(hashlib.sha256(text.encode()).digest(), "big")


def bytes_gone_by(
    rows: Iterable[Row], *, nr_variants: int, launches: int, nr_limits: int = LIMIT_KINDS
) -> int:
    """Nearly how many bytes a run moves: what its length, and how far it is, go by.

    nr_variants counts both copies of `before`; nr_limits the fills of each round.
    """
    passes = nr_variants * PASSES["variant"] + nr_limits * PASSES["limit"]
    return launches * passes * sum(row.rounds * row.written_bytes for row in rows)


def estimated_seconds(rows: Iterable[Row], *, nr_variants: int, launches: int) -> float:
    """A guess at the run's length on a slow machine, to be replaced as soon as samples arrive."""
    nr_bytes = bytes_gone_by(rows, nr_variants=nr_variants, launches=launches)
    return nr_bytes / ASSUMED_BYTES_PER_S + launches * LAUNCH_S


def without(names: Collection[str], launches: Iterable[Launch]) -> tuple[Launch, ...]:
    """The same launches with some of the variants left out; what they draw stays as it was."""
    return tuple(
        replace(launch, link_order=tuple(one for one in launch.link_order if one not in names))
        for launch in launches
    )
