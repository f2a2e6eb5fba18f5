# SPDX-License-Identifier: GPL-2.0-only
"""Notes of a judgement. A note that applies to several rows or experiments is printed once."""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from ream.session.until import NOT_STABLE, unstable

NUMBER = re.compile(r"(?<![\w.-])\d+(?:\.\d+)?(?!\w)")
"""Matches a number that is not part of a name such as fork-64k."""
WIDE = "interval still wide; a quieter machine, or more --minutes, narrows it"


@dataclass
class Notes:
    """Notes, each with the rows or experiments that it is about, in the order of arrival."""

    _about: dict[str, dict[str, str]] = field(default_factory=dict)

    def add(self, who: str, what: str, number: str = "") -> None:
        """Add a note for a row or an experiment; number: a value that differs between them.

        A later number of the same row replaces an earlier one.
        """
        self._about.setdefault(what, {})[who] = f" ({number})" if number else ""

    def add_warning(self, experiment: str, text: str) -> None:
        """Add a warning of a record."""
        if not text.startswith(NOT_STABLE):
            self.add(experiment, text)
        for row, number in unstable(text):
            self.add(row, WIDE, number)

    def forget_wide(self, rows: Collection[str]) -> None:
        """Drop notes on wide intervals of rows that are timed again."""
        its = self._about.pop(WIDE, {})
        if left := {who: number for who, number in its.items() if who not in rows}:
            self._about[WIDE] = left

    def lines(self) -> tuple[str, ...]:
        """Each note once. Notes that differ only in numbers are merged, as in 61/59 %."""
        alike: dict[str, tuple[list[str], list[str]]] = {}
        for what, its in self._about.items():
            names, texts = alike.setdefault(NUMBER.sub("#", what), ([], []))
            names += [f"{who}{number}" for who, number in its.items()]
            texts.append(what)
        return tuple(
            f"{', '.join(dict.fromkeys(names))}: {_together(texts)}"
            for names, texts in alike.values()
        )


def _together(texts: Sequence[str]) -> str:
    """Merge texts that differ only in numbers."""
    numbers = zip(*(NUMBER.findall(one) for one in texts), strict=True)
    each = ("/".join(dict.fromkeys(some)) for some in numbers)
    return NUMBER.sub(lambda _: next(each), texts[0])
