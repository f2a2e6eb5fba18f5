# SPDX-License-Identifier: GPL-2.0-only
"""A plain loop is never called a limit of the hardware, and a control has the words of one."""

import math

import pytest

from ream.record.record import Record
from ream.report import explain, letter, table
from ream.report.contract import Comparison, Ratio, Result, RowResult, Summary
from ream.report.html.page import render as page
from ream.report.words import shown_verdict
from shipped import RECORDS, SHIPPED

LOOPS = ("fork-native-c3d4", "mprotect-native-71ab", "mremap-native-cd6d")
BOUNDS = ("zone-device-native-a408", "migrate-native-8a7b")


def record(end: str) -> Record:
    (path,) = (path for path in SHIPPED if path.name.endswith(end))
    return Record.load(str(path), RECORDS)


def summary(end: str) -> Summary:
    return Summary.from_object(record(end).run, source=end)


@pytest.mark.parametrize("end", LOOPS)
def test_a_plain_loop_is_named_so_in_tables_letters_and_pages(end: str) -> None:
    of = summary(end)
    for text in (table.render(of), letter.render(of)):
        words = " ".join(text.split())
        assert "plain loop" in words
        assert "of limit" not in words
        assert "hardware's limit" not in words
        assert "no bound" in words
    assert " of loop " in " ".join(table.render(of).split())
    assert "|loop" in letter.render(of)
    its = page(record(end))
    assert "share of a plain loop" in its
    assert "share of limit" not in its
    assert "hardware's limit" not in its


@pytest.mark.parametrize("end", BOUNDS)
def test_a_fill_of_the_same_bytes_is_a_limit_as_before(end: str) -> None:
    of = summary(end)
    assert " of limit " in " ".join(table.render(of).split())
    assert "|limit" in letter.render(of)
    assert "plain loop" not in table.render(of)


def test_a_variant_beyond_a_plain_loop_is_no_error() -> None:
    its = row(1.5, 1.4, 1.6).variants["ream"]
    beyond = row(1.5, 1.4, 1.6).model_copy(
        update={"variants": {"ream": its.model_copy(update={"of_limit": 1.3})}}
    )
    assert any("an error in the limit" in note for note in explain.notes(beyond))
    assert not any("in the limit" in note for note in explain.notes(beyond, is_bound=False))


def row(ratio: float, low: float, high: float) -> RowResult:
    result = Result(
        median=1000, rounds=3, nr_bytes=64, verified=True, ratio=ratio, low=low, high=high,
        effect="undecided", p_value=0.03,
    )  # fmt: skip
    before = result.model_copy(update={"ratio": 1.0, "effect": None})
    return RowResult(
        row="small", params={}, unit="ns", better="lower", limit=None, published_table=None,
        floor=Ratio(ratio=1.0, low=0.96, high=1.04),
        variants={"before": before, "ream": result, "published": result},
    )  # fmt: skip


def test_what_is_undecided_though_its_interval_excludes_1_says_which_condition_failed() -> None:
    within = [note for note in explain.notes(row(1.03, 1.01, 1.05)) if "excludes 1" in note]
    bound = 100 * math.expm1(abs(math.log(0.96)))
    said = f"it lies within the noise floor, which reaches {bound:.2g} % here"
    assert within[0] == f"ream is undecided, although its interval excludes 1: {said}"
    beyond = [note for note in explain.notes(row(1.08, 1.01, 1.15)) if "excludes 1" in note]
    assert "it does not stand the correction for multiple comparisons (p = 0.03" in beyond[0]
    assert not [n for n in explain.notes(row(1.08, 0.99, 1.15)) if "excludes 1" in n]


@pytest.mark.parametrize(
    ("published", "verdict", "here", "word"),
    [
        (0.98, "contradicts", 1.03, "as published"),
        (0.98, "contradicts", 1.30, "not as published"),
        (0.98, "inconclusive", 1.03, "undecided"),
        (0.98, "not-run", 1.03, "not-run"),
        (0.70, "contradicts", 1.03, "contradicts"),
    ],
)
def test_a_row_that_claims_nothing_has_the_word_of_a_control(
    published: float, verdict: str, here: float, word: str
) -> None:
    one = Comparison(id="table", ratio=published, verdict=verdict)
    assert shown_verdict(one, row(here, here * 0.99, here * 1.01)) == word


def test_the_4_kib_row_of_fork_is_not_said_to_contradict_a_published_2_per_cent() -> None:
    of = summary("fork-native-65a6")
    (its,) = (row for row in of.rows if row.row == "fork-4k")
    assert its.comparisons[0].verdict == "contradicts"  # as that version recorded it
    only = of.model_copy(update={"rows": (its,)})
    assert "CONTRADICTS" not in table.render(only)
    assert "AS PUBLISHED" in table.render(only)
