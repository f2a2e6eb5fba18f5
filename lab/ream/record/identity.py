# SPDX-License-Identifier: GPL-2.0-only
"""Identifies the machine that a number comes from."""

import hashlib
from pathlib import Path

DIGITS = 12
"""Digits of a digest: enough to tell two apart, few enough to read."""


def machine_id(root: Path = Path("/")) -> str | None:
    """A digest that identifies this installation and reveals nothing else; or None.

    It is derived as systemd's machine-id(5) requires: the id itself is confidential and never
    shown.
    """
    try:
        text = (root / "etc/machine-id").read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return None
    return hashlib.sha256(f"ream\0{text}".encode()).hexdigest()[:DIGITS] if text else None
