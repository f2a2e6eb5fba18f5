# SPDX-License-Identifier: GPL-2.0-only
"""The page of a command that lists or compares: what was found, and tables with notes below."""

from ream.report.html.tables import HtmlTable
from ream.values import Tuple, Value

Fact = tuple[str, str]
"""A label, and what is said under it."""


class Part(Value):
    """A table of a page with its heading and a sentence, which may be empty, and its notes."""

    table: HtmlTable
    title: str = ""
    found: str = ""
    notes: Tuple[Fact] = ()


class Sheet(Value):
    """The contents of a page."""

    title: str
    found: str
    """What was found, in a sentence."""
    parts: Tuple[Part]
    facts: Tuple[Fact] = ()


def colour_of(low: float | None, high: float | None) -> str:
    """The class of a ratio with this interval, in the style sheet."""
    if low is None or high is None:
        return "undecided"
    return "faster" if high < 1 else "slower" if low > 1 else "undecided"
