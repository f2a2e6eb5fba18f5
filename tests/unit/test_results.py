# SPDX-License-Identifier: GPL-2.0-only
"""What docs/results.md quotes is what `ream replicate` says of the records that it names."""

import re

import pytest

from ream.experiment import named
from ream.folders import names
from ream.paths import CHECKOUT
from ream.published import load_tables, lookup
from ream.record.record import Record
from ream.replicate.outcome import JudgedRecord, replicate_all
from ream.replicate.render import render
from shipped import RECORDS

RECORD = re.compile(r"`(?:docs/records/)?(\d{8}T\d{6}Z-[a-z0-9-]+)`")
TABLE = re.compile(r"^  ([a-z]\S+)", re.MULTILINE)

_, PART = (CHECKOUT / "docs/results.md").read_text().split("## Every published table\n")
_, COMMAND, _, *RESULTS = PART.split("```\n")
QUOTED = list(zip(RESULTS[::2], RESULTS[1::2], strict=True))
"""Each result, and the text below it."""


@pytest.mark.parametrize(
    ("result", "below"), QUOTED, ids=["all", "zen-3", "intel-207", "intel-167"]
)
def test_a_quoted_result_is_that_of_its_records(result: str, below: str) -> None:
    records = [
        JudgedRecord.of(Record.load(str(RECORDS / name), RECORDS)) for name in RECORD.findall(below)
    ]
    tables = [lookup(load_tables(), name) for name in TABLE.findall(result)]
    every = replicate_all(
        tables,
        records,
        [named(name) for name in names()],
        max((one for one in records if not one.counted), key=lambda one: one.name).machine,
        absent={},
        failed={},
    )
    said = render(every).split("\n\n")[-1]
    assert result in said


@pytest.mark.parametrize(
    ("result", "_below"), QUOTED, ids=["all", "zen-3", "intel-207", "intel-167"]
)
def test_nothing_of_another_architecture_or_of_a_model_is_contradicted(
    result: str, _below: str
) -> None:
    contradicted = re.findall(r"^  (\S+) +contradicts", result, re.MULTILINE)
    # Of a call on x86 without any device: here it gains where its author found a small loss.
    assert set(contradicted) <= {"zone-device-private-popple"}
    tables = [lookup(load_tables(), name) for name in contradicted]
    assert [one.id for one in tables if one.architecture not in (None, "x86_64")] == []


def test_the_first_result_is_of_every_table() -> None:
    assert COMMAND.strip() == "./ream replicate --all"
    assert set(TABLE.findall(QUOTED[0][0])) == {table.id for table in load_tables()}
