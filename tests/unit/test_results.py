# SPDX-License-Identifier: GPL-2.0-only
"""What docs/results.md quotes is what `ream replicate` says of the records that it names."""

import re

import pytest

from quoted_results import COMMAND, RESULTS, replications
from ream.published import load_tables, lookup
from ream.replicate.render import render

TABLE = re.compile(r"^  ([a-z]\S+)", re.MULTILINE)


@pytest.mark.parametrize(("result", "below"), RESULTS.values(), ids=RESULTS)
def test_a_quoted_result_is_that_of_its_records(result: str, below: str) -> None:
    tables = [lookup(load_tables(), name) for name in TABLE.findall(result)]
    assert result in render(replications(below, tables)).split("\n\n")[-1]


@pytest.mark.parametrize(("result", "_below"), RESULTS.values(), ids=RESULTS)
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
    result, _ = next(iter(RESULTS.values()))
    assert set(TABLE.findall(result)) == {table.id for table in load_tables()}
