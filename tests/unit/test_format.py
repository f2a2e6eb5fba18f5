# SPDX-License-Identifier: GPL-2.0-only
"""docs/format.md and docs/commands.md describe every field: a rule nobody keeps by hand."""

import importlib
import re
from pathlib import Path

import pytest
from pydantic import BaseModel

from judge_world import judgement
from ream.count.counter import OF_MEMORY, QUANTITIES
from ream.errors import ReamError, kind_of
from ream.experiment.registry import columns_of
from ream.folders import names
from ream.judge import page
from ream.judge.unexamined import unexamined
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


def test_every_field_of_a_judgement_is_described() -> None:
    its = page.to_object(judgement())
    assert set(its) <= set(re.findall(r"`([a-z_0-9]+)`", _section("judge")))
    assert its["not_examined"] == [*unexamined(judgement())] != []


def _section(command: str) -> str:
    return TEXT.partition(f"## `ream {command} --json`\n")[2].partition("\n## ")[0]


def test_every_kind_of_error_is_described_with_its_exit_status() -> None:
    sources = {path: path.read_text() for path in (CHECKOUT / "lab/ream").rglob("*.py")}
    known, before = {"ReamError"}, set[str]()
    while known != before:
        before = set(known)
        for text in sources.values():
            for name, bases in re.findall(r"^class (\w+)\(([^)]*)\):", text, re.MULTILINE):
                known |= {name} if known & set(re.findall(r"\w+", bases)) else set()
    classes = {name: _class(name, sources) for name in known}
    said = re.findall(r"^\| `([a-z-]+)` \| (\d+) \|", _section("judge"), re.MULTILINE)
    assert {kind: int(code) for kind, code in said} == {
        kind_of(one): one.exit_code for one in classes.values()
    }


def _class(name: str, sources: dict[Path, str]) -> type[ReamError]:
    (path,) = (one for one, text in sources.items() if f"\nclass {name}(" in text)
    module = ".".join(path.relative_to(CHECKOUT / "lab").with_suffix("").parts)
    its = getattr(importlib.import_module(module), name)
    assert issubclass(its, ReamError)
    return its


@pytest.mark.parametrize("document", ["format", "commands"])
def test_help_names_the_document_that_has_the_object(document: str) -> None:
    text = (CHECKOUT / "docs" / f"{document}.md").read_text()
    commands = re.findall(r"^## `ream (\w+) --json`$", text, re.MULTILINE)
    assert commands
    for command in commands:
        said = (CHECKOUT / "lab/help" / f"{command}.txt").read_text()
        assert f"(docs/{document}.md)" in said, command


def test_the_schema_number_is_the_one_described() -> None:
    assert f"Schema number: **{SCHEMA}**" in TEXT
