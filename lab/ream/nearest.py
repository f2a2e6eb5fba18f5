# SPDX-License-Identifier: GPL-2.0-only
"""Suggestions of known names for a name that is misspelt."""

import difflib
from collections.abc import Iterable

MOST = 3
"""More is a list, and no hint."""


def hint(asked: str, known: Iterable[str]) -> str:
    """` (did you mean ...?)`, to stand behind an unknown name; nothing where none is near.

    A name that differs in case alone is the only one. Where no name is like it, those that hold it
    are near, if they are few.
    """
    names = [*known]
    near = [one for one in names if one.lower() == asked.lower()]
    near = near or difflib.get_close_matches(asked, names, n=MOST)
    holding = [] if near or not asked else [one for one in names if asked in one]
    near = near or (holding if len(holding) <= MOST else [])
    return f" (did you mean {' or '.join(near)}?)" if near else ""
