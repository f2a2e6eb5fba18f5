# SPDX-License-Identifier: GPL-2.0-only
"""Names the limit of an experiment: a bound of the hardware, or a plain loop to compare with."""

from ream.experiment import named
from ream.folders import names
from ream.report.contract import Summary

FILL = "fastest fill of the same bytes"
"""The limit of an experiment that declares none of its own."""

BOUND = "bound"


def as_known(summary: Summary, name: str) -> str | None:
    """An experiment's text for a record that is older than its field; None if it is unknown."""
    if summary.experiment not in names():
        return None
    words: str | None = getattr(named(summary.experiment), name)
    return words


def limit_of(summary: Summary) -> str:
    """The name of the limit in this experiment."""
    return summary.limited_by or as_known(summary, "limited_by") or FILL


def limit_kind_of(summary: Summary) -> str:
    """What the limit is: `bound`, which the hardware allows, or `plain loop`, which bounds nothing.

    An older record has that of its experiment, and of an unknown experiment a bound.
    """
    return summary.limit_kind or as_known(summary, "limit_kind") or BOUND


def is_bound(summary: Summary) -> bool:
    """Whether the limit is what the hardware allows."""
    return limit_kind_of(summary) == BOUND


LIMIT_WORDS = {"limit": "the hardware's limit", "loop": "a plain loop"}
"""What each word for the limit stands for."""


def limit_words(summary: Summary) -> str:
    """What the limit is, in a few words: the hardware's limit, or a plain loop."""
    return LIMIT_WORDS[limit_word(summary)]


def limit_word(summary: Summary) -> str:
    """The word for the limit in a column or a label: `limit`, or `loop` for a plain loop."""
    return "limit" if is_bound(summary) else "loop"
