# SPDX-License-Identifier: GPL-2.0-only
"""Which machine a number is of."""

import hashlib
from pathlib import Path

DIGITS = 12
"""Of a digest: enough to tell two apart, short enough to read."""


def machine_id(root: Path = Path("/")) -> str | None:
    """A number of this installation that says nothing about it; None if it has none.

    Made as systemd's machine-id(5) asks for: the id itself is confidential and is never shown.
    """
    try:
        text = (root / "etc/machine-id").read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return None
    return hashlib.sha256(f"ream\0{text}".encode()).hexdigest()[:DIGITS] if text else None
