# SPDX-License-Identifier: GPL-2.0-only
"""README is what its records and its program make of it."""

from xml.etree import ElementTree as ET

import pytest

import readme
from ream.experiment import BEFORE

LONGEST = 145
"""Lines of a page that is read in a few minutes."""


def texts(svg: str) -> set[str]:
    return {one.text for one in ET.fromstring(svg).iter() if one.text}  # noqa: S314, our own


def test_the_page_is_made_of_its_records() -> None:
    text = readme.PAGE.read_text(encoding="utf-8")
    assert readme.filled(text) == text, "PYTHONPATH=lab:tests python tests/readme.py"
    assert text.count("\n") <= LONGEST


def test_the_picture_is_that_of_its_record() -> None:
    shown = readme.PICTURE.read_text(encoding="utf-8")
    assert texts(shown) == texts(readme.svg())
    assert {BEFORE, *readme.SHOWN.values()} <= texts(shown)
    assert not set(readme.SHOWN) & texts(shown)


def test_a_part_that_is_out_of_date_is_written_again() -> None:
    text = readme.PAGE.read_text(encoding="utf-8")
    (line,) = (one for one in text.splitlines() if one.startswith("| [Li Zhe]"))
    assert readme.filled(text.replace(line, "| old |")) == text


@pytest.mark.parametrize(
    ("ratio", "words"), [(0.5, "2.00x faster"), (1.0, "1.00x faster"), (1.25, "1.25x slower")]
)
def test_a_ratio_of_times_is_said_in_words(ratio: float, words: str) -> None:
    assert readme.factor(ratio) == words
