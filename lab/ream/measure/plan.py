# SPDX-License-Identifier: GPL-2.0-only
"""What each launch draws by lot, from the user's seed alone: the same seed plans the same run."""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ream.experiment import Row

OFFSET_STEP_BYTES = 64
OFFSET_PAGE_BYTES = 4096

# For the estimate before anything is known; a slow shared two-CPU guest.
ASSUMED_BYTES_PER_S = 4e9
PASSES_PER_SAMPLE = 4
"""Times the map's bytes go by for one sample: pre-state, the sample itself, and two images read."""
LIMIT_KINDS = 4
PASSES_PER_LIMIT = 2
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
            # Sorting by independent uniform keys is a uniform permutation.
            link_order=tuple(sorted(variants, key=lambda name: _draw(seed, number, "link", name))),
        )
        for number in range(launches)
    )


def _draw(seed: int, *purpose: int | str) -> int:
    """A uniform number of 256 bits that belongs to this seed and purpose."""
    text = "\0".join(str(part) for part in ("ream", seed, *purpose))
    return int.from_bytes(hashlib.sha256(text.encode()).digest(), "big")


def estimated_seconds(
    rows: Iterable[Row], *, nr_variants: int, launches: int, nr_limits: int = LIMIT_KINDS
) -> float:
    """A guess at the run's length on a slow machine, to be replaced as soon as samples arrive.

    nr_variants counts both copies of `before`; nr_limits the fills of each round.
    """
    passes = nr_variants * PASSES_PER_SAMPLE + nr_limits * PASSES_PER_LIMIT
    nr_bytes = sum(row.rounds * row.written_bytes * passes for row in rows)
    return launches * (nr_bytes / ASSUMED_BYTES_PER_S + LAUNCH_S)
