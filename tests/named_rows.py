# SPDX-License-Identifier: GPL-2.0-only
"""Rows for tests that need some experiment's, which they know by its name alone."""

from typing import Any

from ream.experiment import Row, named


def row_of(experiment: str, **fields: Any) -> Row:
    """A row of an experiment of this checkout, from its fields."""
    return type(named(experiment).rows[0])(**fields)
