# SPDX-License-Identifier: GPL-2.0-only
"""Names that are nearly what somebody wrote."""

import difflib
from collections.abc import Iterable

MOST = 3
"""More is a list, and no hint."""


def hint(asked: str, known: Iterable[str]) -> str:
    """` (did you mean ...?)`, to stand behind an unknown name; nothing where none is near."""
    near = difflib.get_close_matches(asked, list(known), n=MOST)
    return f" (did you mean {' or '.join(near)}?)" if near else ""
