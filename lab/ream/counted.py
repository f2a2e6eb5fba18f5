# SPDX-License-Identifier: GPL-2.0-only
"""Numbers with their noun."""


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """Return "1 patch", "2 patches"; plural: the plural if it is not the noun with an s."""
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"
