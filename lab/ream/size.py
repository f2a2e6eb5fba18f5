# SPDX-License-Identifier: GPL-2.0-only
"""Sizes as people write them: binary units, and no GB that might mean either."""

import re

from ream.errors import BadUsage

_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_SIZE = re.compile(r"([0-9]{1,18}) ?([KMGT]?)(IB)?", re.IGNORECASE)


def _read_size(text: str) -> int:
    match = _SIZE.fullmatch(text.strip())
    if match is None or (match[3] and not match[2]):
        raise ValueError("not a size: write a whole number with K, M, G, T, KiB, MiB, GiB or TiB")
    size = int(match[1]) * _UNITS[match[2].upper()]
    if size == 0:
        raise ValueError("a size of 0 leaves nothing to measure")
    return size


def parse_size(text: str) -> int:
    """Bytes of "100GiB", "64G", "2M" or "4096"; units are binary, as memparse() has them.

    Raises BadUsage naming the text. "GB" is refused: half the world means 10^9 by it.
    """
    try:
        return _read_size(text)
    except ValueError as cause:
        raise BadUsage(f"{cause} (it is {text!r})") from cause


def format_size(nr_bytes: int) -> str:
    """The shortest exact binary form: 107374182400 is "100 GiB", 1000 is "1000 B"."""
    for unit, scale in reversed(_UNITS.items()):
        if unit and nr_bytes >= scale and nr_bytes % scale == 0:
            return f"{nr_bytes // scale} {unit}iB"
    return f"{nr_bytes} B"


def read_size(value: object) -> object:
    return _read_size(value) if isinstance(value, str) else value
