# SPDX-License-Identifier: GPL-2.0-only
"""The names that readers see of variants, and where they stand."""

import re

import pytest

from ream.cli.listed import _print_rows
from ream.errors import BadUsage
from ream.experiment import BEFORE, load, recorded, shown, shown_in
from ream.folders import given_file
from ream.record.record import Record
from ream.report import letter, table
from ream.report.contract import Summary
from ream.report.readers import for_readers
from ream.variants import choose_variants, only_variants
from shipped import RECORDS, SHIPPED

AN_ADJECTIVE = re.compile(
    r"published (?:technique|series|table|ratio|effect|times|CPUs|for|\d)|(?:is|was|as) published"
    r"|published, \d+ channels?"
)
"""What `published` is where it names no variant, as in the grid of a published table."""
THE_TOOL = re.compile(r"(?:\./)?\bream (?:\d|[a-z-]+(?:,| native| vm| live| \S))")


@pytest.mark.parametrize(
    ("name", "its"),
    [
        ("published", "technique"),
        ("ream", "ours"),
        ("ream-again", "ours-again"),
        ("published+fix", "technique+fix"),
        ("before", "before"),
        ("published-1of2", "published-1of2"),
        ("upstream", "upstream"),
    ],
)
def test_a_variant_has_a_name_for_readers(name: str, its: str) -> None:
    assert shown(name) == its


def test_a_reader_may_name_a_variant_by_either_of_its_names() -> None:
    assert [recorded(name) for name in ("technique", "published", "ours", "base")] == [
        *("published", "published", "ream", "base")
    ]


@pytest.mark.parametrize(
    ("text", "its"),
    [
        (
            "undecided: published, base, ream; with 9",
            "undecided: technique, base, ours; with 9",
        ),
        ("base takes 1.1 of published's time", "base takes 1.1 of technique's time"),
        ("ream is slower than published: 1.1", "ours is slower than technique: 1.1"),
        ("the published ratio is within the interval", None),
        ("the published 1.34x", None),
        ("where at least 10 % is published", None),
        ("`ream run fork`: what is this", None),
        ("as published, 1 not tried", None),
    ],
)
def test_a_sentence_names_variants_for_readers(text: str, its: str | None) -> None:
    assert shown_in(text) == (its or text)


@pytest.mark.parametrize("end", ["011d", "54e8", "843b", "c451", "a5d9", "fe86"])
def test_no_report_has_the_names_of_records(end: str) -> None:
    """The list of words that follow a name knows all sentences of these records."""
    (path,) = (one for one in SHIPPED if one.name.endswith(f"-{end}"))
    summary = Summary.from_object(Record.load(str(path), RECORDS).run, source=end)
    for text in (table.render(summary), letter.render(summary)):
        words = THE_TOOL.sub("", AN_ADJECTIVE.sub("", " ".join(text.split())))
        assert not re.findall(r".{30}\b(?:published|ream)\b(?:[:,'].{20}| (?:is|takes).*)", words)


def test_what_records_hold_has_other_names() -> None:
    (path,) = (one for one in SHIPPED if one.name.endswith("-011d"))
    summary = Summary.from_object(Record.load(str(path), RECORDS).run, source="011d")
    before = summary.to_object()
    its = for_readers(summary)
    assert summary.to_object() == before
    assert [*its.rows[0].variants] == [*map(shown, summary.rows[0].variants)]
    assert its.rows[0].published == summary.rows[0].variants["published"]


def test_a_list_of_rows_has_the_names_for_readers(capsys: pytest.CaptureFixture[str]) -> None:
    _print_rows(load(given_file("fork")), [])
    assert "technique, base, ours" in " ".join(capsys.readouterr().out.split())


def test_only_takes_the_names_for_readers() -> None:
    chosen = choose_variants(load(given_file("zone-device")))
    assert {one.name for one in only_variants(chosen, ["ours"])} == {
        *(BEFORE, "before-again", "ream")
    }
    with pytest.raises(BadUsage, match="ourz: no variant .did you mean ours.*technique"):
        only_variants(chosen, ["ourz"])
