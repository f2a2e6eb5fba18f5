# SPDX-License-Identifier: GPL-2.0-only
"""A test case and its outcome, as KTAP and JUnit reports contain them."""

from dataclasses import dataclass
from typing import Literal

from ream.values import Scalar

CaseOutcome = Literal["pass", "fail", "skip"]


@dataclass(frozen=True)
class Case:
    """One verdict. An undecided one is skipped with its reason, and never counts as a pass."""

    group: str
    """The name of what the case belongs to, such as a row."""
    name: str
    outcome: CaseOutcome
    reason: str
    numbers: tuple[tuple[str, Scalar], ...] = ()
    fault: str = "regression"
    """The type of the failure in JUnit, if it is one."""

    @property
    def full_name(self) -> str:
        """The name with its group, such as `fork-64k.published`."""
        return f"{self.group}.{self.name}"


def plain(text: object) -> str:
    """The text as one line of printable ASCII: names and reasons may come from files and mails."""
    ascii_text = str(text).encode("ascii", "backslashreplace").decode()
    return "".join(one if one.isprintable() else " " for one in ascii_text)
