# SPDX-License-Identifier: GPL-2.0-only
"""A case and its outcome, as the formats that CI systems read have them."""

from dataclasses import dataclass
from typing import Literal

from ream.values import Scalar


@dataclass(frozen=True)
class Case:
    """One verdict; what was not decided is skipped, with the reason, and never a pass."""

    group: str
    """What it belongs to, as a row."""
    name: str
    outcome: Literal["pass", "fail", "skip"]
    reason: str
    numbers: tuple[tuple[str, Scalar], ...] = ()

    @property
    def full_name(self) -> str:
        return f"{self.group}.{self.name}"


def plain(text: object) -> str:
    """Printable ASCII on one line: a name or a reason may come from a file or a mail."""
    ascii_text = str(text).encode("ascii", "backslashreplace").decode()
    return "".join(one if one.isprintable() else " " for one in ascii_text)
