# SPDX-License-Identifier: GPL-2.0-only
"""Which mixtures random programs favour: some by chance, and those that reach what is changed."""

import random
from collections.abc import Mapping, Sequence
from functools import cache

from ream.program.generate import WEIGHTS, generate

NR_OFTEN, HOW_OFTEN = 12, 8
"""Mixtures that some_often() has drawn more often, and by which factor."""
SHAPES_STEPS = 60
"""All shapes of a mixture's steps are taken to occur among so many steps."""


def some_often(seed: int, favoured: Sequence[str] = ()) -> dict[str, int]:
    """Weights with which some mixtures, drawn by a seed, are more frequent than usual.

    favoured: half of these are among them.
    """
    dice = random.Random(seed)  # noqa: S311
    some = dice.sample(favoured, (len(favoured) + 1) // 2)
    often = {*some, *dice.sample(sorted(WEIGHTS), NR_OFTEN)}
    return {name: nr * (HOW_OFTEN if name in often else 1) for name, nr in WEIGHTS.items()}


@cache
def shapes_of_mixtures() -> Mapping[str, frozenset[str]]:
    """Return by mixture the shapes of its steps, and of those that map what these need."""
    drawn = {name: generate(0, SHAPES_STEPS, {"map-anon": 1, name: 4}) for name in WEIGHTS}
    return {name: frozenset(step.shape for step in its) for name, its in drawn.items()}
