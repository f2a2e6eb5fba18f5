# SPDX-License-Identifier: GPL-2.0-only
"""Draws the random choices of test cases."""

from collections.abc import Sequence
from typing import TypeVar

import numpy as np

T = TypeVar("T")


class Dice:
    """A random generator that repeats its choices for the same seed."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def happens(self, probability: float) -> bool:
        """True with this probability."""
        return bool(self.rng.random() < probability)

    def number(self, low: int, high: int) -> int:
        """A number from `low` to `high`, both included."""
        return int(self.rng.integers(low, high, endpoint=True))

    def one_of(self, values: Sequence[T]) -> T:
        """One of the values, all equally likely."""
        return values[self.number(0, len(values) - 1)]
