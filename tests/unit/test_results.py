# SPDX-License-Identifier: GPL-2.0-only
"""The tables of docs/results.md are made of the records."""

import pytest

import results
from quoted_results import JUDGED, replications
from ream.published import load_tables
from ream.record.record import is_record
from shipped import RECORDS


@pytest.fixture(scope="module")
def text() -> str:
    return results.PAGE.read_text(encoding="utf-8")


def test_the_page_is_made_of_its_records(text: str) -> None:
    assert results.filled(text) == text, "PYTHONPATH=lab:tests python tests/results.py"


def test_the_page_names_every_published_table(text: str) -> None:
    assert [one.id for one in load_tables() if f"`{one.id}` |" not in text] == []


def test_its_rows_are_those_of_records(text: str) -> None:
    for experiment, rows in results.ROWS.items():
        for row in rows:
            assert f"| {experiment} `{row}` |" in text


@pytest.mark.parametrize("cpu", JUDGED)
def test_nothing_of_another_architecture_or_of_a_model_is_contradicted(cpu: str) -> None:
    assert all(is_record(RECORDS / name) for name in JUDGED[cpu])
    its = [one for one in replications(cpu, load_tables()) if one.word == "contradicts"]
    # Of a call on x86 without any device: here it gains where its author found a small loss.
    assert {one.table.id for one in its} <= {"zone-device-private-popple"}
