# SPDX-License-Identifier: GPL-2.0-only
"""Notes of a judgement: what is so of several rows or experiments is said once."""

from collections.abc import Collection
from dataclasses import dataclass, field

from ream.session.until import NOT_STABLE, unstable

WIDE = "interval still wide; a quieter machine, or more --minutes, narrows it"


@dataclass
class Notes:
    """Who each note is about, in the order in which they came."""

    _about: dict[str, dict[str, str]] = field(default_factory=dict)

    def add(self, who: str, what: str, number: str = "") -> None:
        """Note something of a row or an experiment; number: what differs between them.

        The last number of a row is the one that is said.
        """
        self._about.setdefault(what, {})[who] = f" ({number})" if number else ""

    def add_warning(self, experiment: str, text: str) -> None:
        """Note what a record says of itself."""
        if not text.startswith(NOT_STABLE):
            self.add(experiment, text)
        for row, number in unstable(text):
            self.add(row, WIDE, number)

    def forget_wide(self, rows: Collection[str]) -> None:
        """Rows are timed again, which says anew how wide their intervals are."""
        its = self._about.pop(WIDE, {})
        if left := {who: number for who, number in its.items() if who not in rows}:
            self._about[WIDE] = left

    def lines(self) -> tuple[str, ...]:
        """Each note once."""
        return tuple(
            f"{', '.join(f'{who}{number}' for who, number in its.items())}: {what}"
            for what, its in self._about.items()
        )
