# SPDX-License-Identifier: GPL-2.0-only
"""The page of a judgement for a browser: times, curves, what each patch adds, and listings."""

import re
from typing import Any

import pytest

from judgement_world import REACH
from ream.judge import html
from ream.judge.judgement import (
    CountedChange,
    Judgement,
    Listing,
    Operation,
    PatchStep,
    TimedChange,
)
from ream.judge.listings import by_head
from ream.judge.pictures import Picture, pictures

SORT = f"\n{(html.REPORT / html.SCRIPT).read_text()}"


def step(number: int, instructions: float) -> PatchStep:
    changes = {"instructions": instructions} if instructions else {}
    return PatchStep(number, f"change {number}", changes)


def operation(row: str, *steps: PatchStep, ratio: float | None = None) -> Operation:
    added = sum(one.changes.get("instructions", 0.0) for one in steps)
    timed = None
    if ratio is not None:
        timed = TimedChange(ratio, ratio - 0.1, ratio + 0.1, "slower", None, 1.02)
    return Operation(
        "fork",
        row,
        "a title",
        counted=CountedChange("page", {"instructions": 50.0}, {"instructions": 50.0 + added}, True),
        timed=timed,
        steps=steps,
    )


def judgement(*operations: Operation, **fields: Any) -> Judgement:
    return Judgement("mine", ("a", "b"), "a tree", "a machine", REACH, operations, **fields)


def named(its: Judgement) -> dict[str, Picture]:
    return {one.title: one for one in pictures(its)}


def texts(one: Picture) -> set[str]:
    """What is written in a picture."""
    return set(re.findall(">([^<]+)</text>", one.svg))


def test_nothing_that_was_measured_is_no_picture() -> None:
    assert pictures(judgement()) == ()


def test_times_are_a_picture() -> None:
    its = judgement(operation("fork-4k", ratio=1.25), operation("fork-64k"))
    (one,) = pictures(its)
    assert one.alt == "Ratios of times: fork-4k 1.250."
    assert one.svg.startswith("<svg")
    assert "fork-4k" in texts(one)


def test_a_waterfall_begins_where_the_last_patch_ended() -> None:
    its = judgement(operation("fork-4k", step(1, 7.0), step(2, 0.0), step(3, -2.5)))
    one = named(its)["fork-4k: instructions for each page, patch by patch"]
    assert one.alt == (
        "fork-4k: without 50.0, patch 1 +7.0, patch 2 0, patch 3 -2.5, with all 54.5."
    )
    assert {"50.0", "+7.0", "0", "-2.5", "54.5", "patch 1", "with all"} <= texts(one)


def test_what_one_patch_adds_is_a_picture_and_no_waterfall() -> None:
    (one,) = pictures(judgement(operation("fork-4k", step(1, 7.0)), operation("fork-64k")))
    assert one.alt == "Instructions added: fork-4k +14.0 %, fork-64k +0.0 %."
    assert {"fork-4k", "fork-64k", "10"} <= texts(one)


def test_as_many_instructions_as_without_the_series_are_no_picture() -> None:
    assert not pictures(judgement(operation("fork-4k", step(1, 0.0))))


LISTED = """fork-4k, before: copy_page_range()
        100      0  push   %rbp
         50      4  ret

fork-4k, before-again: copy_page_range()
        100      0  push   %rbp

fork-4k, patched: copy_page_range()
        100      0  nop

fork-4k, patched: copy_page_range.cold()
          1      0  ud2

"""


def test_listings_are_told_apart() -> None:
    found = by_head(LISTED)
    assert found["fork-4k", "before", "copy_page_range"].count("\n") == 1
    assert found["fork-4k", "patched", "copy_page_range"].split() == (
        ["100", "0", "nop", "1", "0", "ud2"]
    )


@pytest.mark.parametrize("after", ["  100      0  <b>nop", ""])
def test_the_page_has_pictures_and_listings_and_no_script_but_that_which_sorts(after: str) -> None:
    listing = Listing("fork", "fork-4k", "copy_page_range", "  100      0  push", after)
    its = judgement(operation("fork-4k", ratio=1.25), listings=(listing,), guests=("fork: 9",))
    text = html.render(its)
    assert text.count("<svg") == 1
    assert re.findall(r"<script>(.*?)</script>", text, re.DOTALL) == [SORT]
    assert "<b>nop" not in text
    assert ("With the series it is not executed." in text) == (not after)
    assert "fork: 9" in text
    assert "listings" not in its.to_object()
