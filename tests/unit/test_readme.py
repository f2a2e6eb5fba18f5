# SPDX-License-Identifier: GPL-2.0-only
"""README is what its records and its program make of it."""

import re
from xml.etree import ElementTree as ET

import pytest

import readme
from judge_world import judgement
from ream.experiment import BEFORE
from ream.judge import page
from ream.judge.judgement import CountedChange, Operation, TimedChange
from ream.width import as_wide_as

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


SLOW = (readme.SAID / "slow.txt").read_text(encoding="utf-8").splitlines()
ROW = re.compile(
    r"(?P<row>\S+) +(?:(?:(?P<time>[\d.]+) (?P<unit>ns|us) )?"
    r"(?P<ratio>[\d.]+) \[(?P<low>[\d.]+) \.\. (?P<high>[\d.]+)\] +)?"
    r"(?P<found>slower|more locked|same) +\+(?P<share>[\d.]+) % +\+(?P<locked>[\d.]+)"
)


def shown_again(found: re.Match[str]) -> Operation:
    """An operation of which the table prints this line."""
    share, locked = float(found["share"]) / 100, float(found["locked"])
    before = {"instructions": 100.0, "locked": 10.0}
    after = {"instructions": 100.0 * (1 + share), "locked": 10 + (locked or 0.001)}
    if found["found"] == "more locked":
        before["locked"] = locked / share
        after = {"instructions": 100.0, "locked": locked / share + locked}
    time = None
    if found["ratio"] is not None:
        ratio, low, high = (float(found[name]) for name in ("ratio", "low", "high"))
        effect = "slower" if found["found"] == "slower" else None
        scale = {"ns": 1.0, "us": 1e3}
        before_ns = found["time"] and float(found["time"]) * scale[found["unit"]]
        time = TimedChange(
            *(ratio, low, high, effect, None, 1.115), control=False, before_ns=before_ns, per="page"
        )
    counted = CountedChange("page", before, after, repeats=True)
    return Operation("fork", found["row"], "a title", counted, time)


def test_the_block_of_a_slow_patch_has_the_form_of_a_judgement() -> None:
    matches = [found for line in SLOW if (found := ROW.fullmatch(line))]
    shown = [shown_again(found) for found in matches]
    assert {one.outcome for one in shown} == {"slower", "more", "same"}
    least = CountedChange("page", {"locked": 100.0}, {"locked": 101.0}, repeats=True)
    left = [Operation("fork", f"left-{number}", "a title", least) for number in range(27)]
    with as_wide_as(84):
        said = page.render(judgement(*shown, *left, controls=("fork: found",))).splitlines()
    begin = next(number for number, line in enumerate(SLOW) if line.startswith("operation "))
    end = SLOW.index("", begin)
    table = said[said.index(SLOW[begin]) :]
    assert [line for line in SLOW[begin:end] if line not in table] == []
    labels = [line[: page.LABEL].strip() for line in SLOW[1:] if line not in SLOW[begin:end]]
    known = {line[: page.LABEL].strip() for line in said}
    assert {*labels} - known == {"all of mm/", "note", "records"}
