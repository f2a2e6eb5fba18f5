# SPDX-License-Identifier: GPL-2.0-only
"""Finds results in sentences. One form of them is read as a table, others are reported."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ream.mail.layout import Parsed
from ream.mail.text import NUMBER, MailLine, number
from ream.published import RATIO_UNIT, TableRow

PRIVATE = "about 3% worse ... ZONE_DEVICE_PRIVATE ... memremap_pages() ... 64GB memremaps"

_AMOUNT = re.compile(rf"(?<![\w.]){NUMBER} ?(?:%|x\b|times\b|per ?cent\b)")
_COMPARED = re.compile(
    r"\b(?:worse|(?<!is )better|slower|faster|improv\w+|regress\w*|reduc\w+|increas\w+|decreas\w+"
    r"|speed-?ups?|drop\w*|gain\w*|instead of|more|less|fewer|lower\w*|higher|rais\w+|sav\w+"
    r"|cuts?|outperform\w*)\b",
    re.IGNORECASE,
)
_WORSE = re.compile(rf"(~|(?:about|around|roughly|approximately) )({NUMBER}) ?% (?:worse|slower)\b")
_SIZE = re.compile(r"\b([0-9]{1,6}) ?(?:G|GB|GiB) memremaps?\b")
_BOTH = re.compile(
    r"\bBoth an? ([\w -]{2,40}?)(?: based)? machine and an? ([\w -]{2,40}?)(?: based)? machine\b"
)
_END = re.compile(r"(?<=[.!?])[\"')]* ")


@dataclass(frozen=True)
class Sentence:
    """One sentence, and the numbers of its lines."""

    text: str
    lines: frozenset[int]

    @property
    def is_result(self) -> bool:
        """Whether it compares two numbers, or a number with another state."""
        return bool(_AMOUNT.search(self.text) and _COMPARED.search(self.text))


def sentences(lines: Sequence[MailLine]) -> Iterator[Sentence]:
    """The sentences of every paragraph."""
    paragraph: list[MailLine] = []
    for line in (*lines, MailLine(0, "")):
        if line.text:
            paragraph.append(line)
            continue
        yield from _of_paragraph(paragraph)
        paragraph = []


def _of_paragraph(paragraph: Sequence[MailLine]) -> Iterator[Sentence]:
    parts: list[str] = []
    numbers: list[int] = []
    for line in paragraph:
        for part in _END.split(line.text):
            if parts and _END.search(f"{parts[-1]} "):
                yield Sentence(" ".join(parts), frozenset(numbers))
                parts, numbers = [], []
            parts.append(part)
            numbers.append(line.number)
    if parts:
        yield Sentence(" ".join(parts), frozenset(numbers))


def private_starts(lines: Sequence[MailLine]) -> Sequence[int]:
    """The places of sentences that read_private() reads."""
    numbers = [min(one.lines) for one in sentences(lines) if _is_private(one)]
    return [next(n for n, line in enumerate(lines) if line.number == number) for number in numbers]


def _is_private(sentence: Sentence) -> bool:
    return "ZONE_DEVICE_PRIVATE" in sentence.text and _WORSE.search(sentence.text) is not None


def read_private(lines: Sequence[MailLine], start: int, end: int) -> Parsed | None:
    """A complete memremap_pages() of private memory that is slower by some per cent."""
    sentence = next((one for one in sentences(lines[start:]) if _is_private(one)), None)
    near = " ".join(line.text for line in lines[start:end])
    size = _SIZE.search(near)
    if sentence is None or size is None or "memremap_pages" not in near:
        return None
    found = _WORSE.search(sentence.text)
    if found is None:
        return None
    config = f"private, {size[1]} GiB, whole memremap_pages()"
    machines = both.groups() if (both := _BOTH.search(sentence.text)) is not None else ()
    slower = round(1 + number(found[2]) / 100, 6)
    return Parsed(
        unit=RATIO_UNIT,
        better="lower",
        method="a sentence of the mail: whole calls of memremap_pages(), no spread given",
        rows=tuple(
            TableRow(
                params={"config": config, **({"machine": one} if one else {})},
                values={"published": slower},
            )
            for one in machines or ("",)
        ),
        facts={
            "approximate": True,
            "claims": f"{found[0].strip()} than the kernel before",
            **({"machine": " and ".join(machines)} if machines else {}),
        },
        notes={"rows": f"made from the sentence's {found[2]}%"},
        lines=sentence.lines,
    )
