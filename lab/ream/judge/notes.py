# SPDX-License-Identifier: GPL-2.0-only
"""Notes of a judgement: what is so of several rows or experiments is said once."""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from ream.session.until import NOT_STABLE, unstable

NUMBER = re.compile(r"(?<![\w.-])\d+(?:\.\d+)?(?!\w)")
"""Not of a name, such as fork-64k."""
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
        """Each note once; where only numbers in it differ, it has all of them, as in 61/59 %."""
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
    """One text of several that differ in numbers alone."""
    numbers = zip(*(NUMBER.findall(one) for one in texts), strict=True)
    each = ("/".join(dict.fromkeys(some)) for some in numbers)
    return NUMBER.sub(lambda _: next(each), texts[0])
