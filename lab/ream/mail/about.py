# SPDX-License-Identifier: GPL-2.0-only
"""Finds the machine of a table in a mail's text, using unambiguous phrases only."""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain

from ream.mail.text import MailLine, place_of
from ream.values import Scalar

_MAKER = r"(?:Intel|AMD|Arm|ARM|Ampere|IBM|Apple|Qualcomm|NVIDIA|Fujitsu)\b"
_WORDS = r"(?:[^.,;:|]|\.(?=[0-9])){1,80}?"
_KIND = r"(?:CPU|server|machine|system|processor|box)\b"
_A = r"(?:an? |the |my |our )?"
_INFO = re.compile(
    r"(?:^|[.;] )(?:system|machine|hardware|test (?:system|machine))(?: info(?:rmation)?)? ?: "
    r"((?:[^.]|\.(?! |$)){3,200})",
    re.IGNORECASE,
)
_ON = re.compile(rf"\b(?:[Oo]n|[Ii]n) {_A}((?:VM on {_A})?{_MAKER}{_WORDS} {_KIND})")
_COUNTED = re.compile(
    rf"\b[Oo]n {_A}((?:[^.,;:| ]+ )?([0-9]{{1,5}})[- ]CPUs?\b{_WORDS}{_KIND})(?=[ ,.:]|$)"
)
_MODEL = re.compile(
    r"(?:(?:Model name|CPU) ?: )?"
    r"((?:Intel\(R\) (?:Xeon|Core)\(\w+\)|Intel Xeon|AMD EPYC|AMD Ryzen|Ampere Altra)[^.|]{1,80})"
)
_SAME = re.compile(r"\bon (?:the )?(?:above|same) (?:system|machine|server)\b", re.IGNORECASE)

_FAR = 200
"""How many lines above a table are searched for its machine."""


def machine(lines: Sequence[MailLine], first: int) -> Mapping[str, Scalar]:
    """`machine` and possibly `cpus` from the nearest paragraph above line `first`; or empty."""
    for paragraph in _paragraphs_above(lines, first):
        if (told := _told(paragraph)) is not None:
            return told
    return {}


def says_same(lines: Sequence[MailLine], first: int) -> bool:
    """Whether the text refers to a machine that is named elsewhere, such as in a quotation."""
    return any(_SAME.search(" ".join(one)) for one in _paragraphs_above(lines, first))


def _paragraphs_above(lines: Sequence[MailLine], first: int) -> Iterator[list[str]]:
    """The paragraphs above a line number, from the nearest one up."""
    paragraph: list[str] = []
    end = place_of(lines, first)
    for line in chain(
        (lines[place] for place in range(end - 1, max(0, end - _FAR) - 1, -1)), (MailLine(0, ""),)
    ):
        if line.text:
            paragraph.append(line.text)
        elif paragraph:
            yield paragraph[::-1]
            paragraph = []


def _told(paragraph: Sequence[str]) -> Mapping[str, Scalar] | None:
    models = [found[1] for text in paragraph if (found := _MODEL.fullmatch(text)) is not None]
    text = " ".join(paragraph)
    if (found := _INFO.search(text)) is not None:
        return {"machine": found[1]}
    if (counted := _COUNTED.search(text)) is not None:
        return {"machine": counted[1], "cpus": int(counted[2])}
    # Where a paragraph names two, which of them the table is of is not said.
    named = {*models, *(one[1] for one in _ON.finditer(text))}
    return {"machine": named.pop()} if len(named) == 1 else None
