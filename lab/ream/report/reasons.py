# SPDX-License-Identifier: GPL-2.0-only
"""Letters in a table for reasons that several of its lines share: each is printed once."""

from collections.abc import Iterator

from ream.report.shared import alike, together

NR_LETTERS = 26


class Reasons:
    """Collects reasons under letters, with the rows that each affects.

    Those of no row that differ in one number have one letter, and its reason the number's range.
    """

    def __init__(self) -> None:
        self._texts: list[list[str]] = []
        self._rows: list[dict[str, None]] = []

    def letter(self, reason: str, row: str | None = None) -> str:
        """The letter of a reason, which is the same for the same words."""
        same = (lambda its: alike([*its, reason])) if row is None else [reason].__eq__
        known = enumerate(self._texts)
        number = next((n for n, its in known if same(its)), len(self._texts))
        if number == len(self._texts):
            self._texts.append([])
            self._rows.append({})
        if reason not in self._texts[number]:
            self._texts[number].append(reason)
        self._rows[number].update({} if row is None else {row: None})
        return _letter(number)

    def found(self) -> Iterator[tuple[str, str, tuple[str, ...]]]:
        """Each letter with its reason, and the rows that it was given for."""
        for number, (texts, rows) in enumerate(zip(self._texts, self._rows, strict=True)):
            yield _letter(number), together(texts), tuple(rows)


def _letter(number: int) -> str:
    first, last = divmod(number, NR_LETTERS)
    return (_letter(first - 1) if first else "") + chr(ord("a") + last)
