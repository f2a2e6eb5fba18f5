# SPDX-License-Identifier: GPL-2.0-only
"""Documents can be read in a terminal: no line of 100 columns and more, no long paragraph."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from ream.paths import CHECKOUT

MOST_COLUMNS = 99
PRINTED_COLUMNS = 100
"""What ream prints by default, and so what a block of its output has."""

MOST_LINES = 8

NO_TEXT = re.compile(r"[|#]|```|<!--|[-*] |\d+\. ")
"""Begins a line that ends the paragraph before it: a table, a heading, an item of a list."""

DOCUMENTS = sorted(
    path.relative_to(CHECKOUT)
    for pattern in (
        "*.md",
        "docs/*.md",
        "docs/questions/*.md",
        "contrib/*/*.md",
        "experiments/*/*.md",
    )
    for path in CHECKOUT.glob(pattern)
)


def too_wide(text: str) -> Iterator[str]:
    """Lines that are too wide; a row of a table cannot be split."""
    in_block = False
    for number, line in enumerate(text.splitlines(), start=1):
        in_block ^= line.lstrip().startswith("```")
        most = PRINTED_COLUMNS if in_block else MOST_COLUMNS
        if len(line) > most and not line.startswith("|"):
            yield f"line {number}: {len(line)} columns: {line[:60]}"


def too_long(text: str) -> Iterator[str]:
    """Paragraphs of more than eight lines, by their first words; blocks and tables are none."""
    in_block = False
    paragraph: list[str] = []
    for line in [*text.splitlines(), ""]:
        in_block ^= line.lstrip().startswith("```")
        if in_block or not line or NO_TEXT.match(line):
            if len(paragraph) > MOST_LINES:
                yield f"{len(paragraph)} lines: {paragraph[0][:60]}"
            paragraph = []
        if line and not in_block and not line.startswith(("|", "#", "```", "<!--")):
            paragraph.append(line)


@pytest.mark.parametrize("document", DOCUMENTS, ids=str)
def test_a_document_fits_a_terminal(document: Path) -> None:
    found = [*too_wide((CHECKOUT / document).read_text(encoding="utf-8"))]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("document", DOCUMENTS, ids=str)
def test_no_paragraph_is_longer_than_eight_lines(document: Path) -> None:
    found = [*too_long((CHECKOUT / document).read_text(encoding="utf-8"))]
    assert not found, "\n".join(found)


def test_what_is_too_wide_or_too_long_is_found() -> None:
    assert (
        len([*too_wide(f"{'a ' * 50}\n\n| {'a ' * 99}|\n```\n{'b' * 100}\n{'b' * 101}\n```\n")])
        == 2
    )
    assert len([*too_long("a\n" * 8 + "\n" + "b\n" * 9)]) == 1
