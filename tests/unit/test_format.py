# SPDX-License-Identifier: GPL-2.0-only
"""docs/format.md and docs/commands.md describe every field: a rule nobody keeps by hand."""

import re

import pytest
from pydantic import BaseModel

from ream.count.counter import OF_MEMORY, QUANTITIES
from ream.experiment.registry import columns_of
from ream.folders import names
from ream.measure.sample import FUNCTIONS, INCLUSIVE, OWN, STAND_INS, TIMES
from ream.paths import CHECKOUT
from ream.record import machine, moment, noise, receipt
from ream.record.record import SCHEMA
from ream.report import contract
from ream.values import Value

TEXT = "".join((CHECKOUT / "docs" / f"{name}.md").read_text() for name in ("format", "commands"))
DESCRIBED = set(re.findall(r"`([a-z_0-9]+)`", TEXT))

RECEIPT_PARTS = (
    receipt.Receipt,
    receipt.BuiltKernel,
    receipt.BuiltTree,
    receipt.GuestFacts,
    receipt.GuestKind,
    receipt.CountFacts,
    receipt.Ream,
    receipt.Settings,
    receipt.SeriesEntry,
    receipt.PatchEntry,
    machine.Machine,
    machine.Cache,
    machine.Node,
    machine.Conditions,
    noise.Noise,
    noise.ForeignChange,
    moment.Moment,
)
RUN_PARTS = (
    contract.Summary,
    contract.RowResult,
    contract.Counted,
    contract.PatchStep,
    contract.Result,
    contract.Layout,
    contract.Ratio,
    contract.Fill,
    contract.Comparison,
    contract.Grid,
    contract.GridLine,
    contract.PrintedTable,
    contract.PrintedLine,
    contract.Batch,
    contract.ReceiptLines,
)


@pytest.mark.parametrize("part", [*RECEIPT_PARTS, *RUN_PARTS])
def test_every_field_is_described(part: type[BaseModel]) -> None:
    names = {str(field.validation_alias or name) for name, field in part.model_fields.items()}
    assert names <= DESCRIBED


def test_every_field_of_a_sample_is_described() -> None:
    assert {*OWN, TIMES, FUNCTIONS, INCLUSIVE, STAND_INS, *QUANTITIES, *OF_MEMORY} <= DESCRIBED


def test_every_column_that_an_experiment_declares_is_described() -> None:
    own = {column.name for name in names() for column in columns_of(name).columns}
    assert own
    assert {part for name in own for part in name.split(".")} <= DESCRIBED


def test_the_parts_above_are_all_there_are() -> None:
    for module, parts in ((part, RECEIPT_PARTS) for part in (receipt, machine, moment, noise)):
        own = {
            one
            for one in vars(module).values()
            if isinstance(one, type) and issubclass(one, Value) and one is not Value
        }
        assert own - {machine.Snapshot} <= set(parts)


def test_the_schema_number_is_the_one_described() -> None:
    assert f"Schema number: **{SCHEMA}**" in TEXT
