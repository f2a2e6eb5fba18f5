# SPDX-License-Identifier: GPL-2.0-only
"""Finds possible results in a mail outside its tables, so that none is ignored silently."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ream.mail.prose import sentences
from ream.mail.text import NUMBER, MailLine

LONGEST_LINE = 70
"""The most characters of a line that a message repeats."""

BY_HAND = "a result in a sentence, in no table; docs/format.md says how to write one by hand"
NO_LAYOUT = "not understood: numbers in no layout that is known"

_FIGURE = re.compile(
    rf"[-+~<>(]*{NUMBER}(?:±{NUMBER})?(?:x|[KMGT]i?B?|[num\u00b5]?s)?[)%]*", re.IGNORECASE
)
_BREAKS = re.compile(r"[\s,;|/]+")
_LABELLED = re.compile(
    rf"[^:=|]{{1,60}}[:=] *[-+~<>]*{NUMBER} ?"
    r"(?:%|x|times|[num\u00b5]?s|sec(?:onds)?|[KMG]i?B/s|ops/s|pages|cycles|instructions)(?![\w)]).{0,30}",
    re.IGNORECASE,
)
_DIFF = re.compile(r"diff --git |--- [ab]/|@@ -[0-9]")
_IN_DIFF = re.compile(
    r"[-+@\\]|index [0-9a-f]|(?:new|deleted|old) (?:file )?mode|rename |similarity "
)
_DIFFSTAT = re.compile(r"\S.* \| +(?:[0-9]+ ?[-+]*|Bin .*)")
_LEAST_FIGURES = 3


@dataclass(frozen=True)
class Left:
    """One line that was not read as part of a table, and the reason."""

    number: int
    said: str
    by_hand: bool = False
    """Whether it is a result that the user could enter by hand."""

    def __str__(self) -> str:
        return self.said


def quoted(line: MailLine) -> str:
    """The number and the text of a line, shortened, for messages."""
    text = line.text if len(line.text) <= LONGEST_LINE else line.text[:LONGEST_LINE] + "..."
    return f"line {line.number}: {text!r}"


def unread(lines: Sequence[MailLine], taken: frozenset[int]) -> Iterator[Left]:
    """The lines of one mail that look like rows of a table, and sentences with results."""
    text = [line for line in _without_patches(lines) if line.number not in taken]
    rows = [line for line in text if _is_row(line.text)]
    numbers = {line.number for line in rows}
    block = 0
    for place, line in enumerate(rows):
        if place == 0 or line.number - rows[place - 1].number > 1:
            block = _block_end(rows, place)
            more = f" (to line {block})" if block > line.number else ""
            yield Left(line.number, f"{quoted(line)}{more}: {NO_LAYOUT}")
    by_number = {line.number: line for line in text}
    kept = [line if line.number in by_number and line.number not in numbers
            else MailLine(line.number, "") for line in lines]  # fmt: skip
    for sentence in sentences(kept):
        if sentence.is_result:
            first = min(sentence.lines)
            yield Left(first, f"{quoted(MailLine(first, sentence.text))}: {BY_HAND}", by_hand=True)


def _block_end(rows: Sequence[MailLine], place: int) -> int:
    last = rows[place].number
    for line in rows[place + 1 :]:
        if line.number - last > 1:
            break
        last = line.number
    return last


def _is_row(text: str) -> bool:
    if _DIFFSTAT.fullmatch(text):
        return False
    if _LABELLED.fullmatch(text):
        return True
    parts = [part for part in _BREAKS.split(text) if part]
    figures = sum(1 for part in parts if _FIGURE.fullmatch(part))
    return figures >= _LEAST_FIGURES and 2 * figures >= len(parts)


def _without_patches(lines: Sequence[MailLine]) -> Iterator[MailLine]:
    """The lines outside patches, whose numbers are no results."""
    inside = blank = False
    for line in lines:
        margin = 1 if line.depth else 0
        if _DIFF.match(line.text):
            inside = True
        elif line.text == "--" or (
            blank and line.text and line.indent <= margin and not _IN_DIFF.match(line.text)
        ):
            inside = False
        blank = not line.text
        if not inside:
            yield line
