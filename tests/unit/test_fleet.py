# SPDX-License-Identifier: GPL-2.0-only
"""Cells: one line that says all there is to do, and notices what would do something else."""

import json
import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ream import __version__
from ream.errors import BadUsage
from ream.experiment import named
from ream.fleet.cell import SCHEMA, Cell, TreeWanted, id_of, read_cell, read_cells
from ream.fleet.plan import Wish, plan_cells
from ream.fleet.run import check_tree, done, request_of
from ream.folders import names
from ream.kernel.base import base_named
from ream.paths import CHECKOUT
from ream.record.record import Record

PATCH = CHECKOUT / "tests/native/patches/no-change.patch"
STAGES = [
    (name, stage)
    for name in names()
    for stage in ("native", "vm", "live")
    if any(row.stage == stage for row in named(name).rows)
]


def cells_of(experiment: str = "zone-device", **wish: object) -> tuple[Cell, ...]:
    whole = named(experiment)
    return plan_cells(Wish((whole,), **wish))  # type: ignore[arg-type]


@pytest.fixture
def cell() -> Cell:
    return cells_of(rows=("small-256MB",), seed=5)[0]


def changed(cell: Cell, **fields: object) -> Cell:
    """The cell that a checkout with other things in it would have planned."""
    return Cell.model_validate({**cell.content(), **fields})


@pytest.mark.parametrize(("experiment", "stage"), STAGES)
def test_every_row_of_every_experiment_is_asked_for_as_it_was_planned(
    experiment: str, stage: str, tmp_path: Path
) -> None:
    whole = named(experiment).at(stage).unasked()  # type: ignore[arg-type]
    cells = cells_of(experiment, stage=stage, launches=3, seed=9)
    assert [cell.row_name for cell in cells] == [row.name for row in whole.rows]
    for cell in cells:
        read = read_cell(cell.to_line(), where="a line")
        assert (read, read.id) == (cell, cell.id)
    for cell in cells[:: max(1, len(cells) // 3)]:
        request = request_of(cell, runs=tmp_path, cache=tmp_path)
        assert request.experiment.rows == (whole.row(cell.row_name),)
        assert request.experiment.variant_names() == whole.variant_names()
        assert (request.experiment.launches, request.seed, request.cell) == (3, 9, cell.id)


def test_a_cell_holds_every_variant_so_that_before_and_after_share_a_machine(cell: Cell) -> None:
    assert list(cell.variants) == ["before", "before-again", "published", "ream"]
    assert "\n" not in cell.to_line()


def test_an_id_is_of_the_content_alone_whatever_the_order_of_its_keys(cell: Cell) -> None:
    line = json.loads(cell.to_line())
    backwards = json.dumps(dict(reversed(line.items())))
    assert read_cell(backwards, where="x").id == cell.id == line["id"]
    assert cells_of(rows=("small-256MB",), seed=5)[0].id == cell.id
    assert cells_of(rows=("small-256MB",), seed=6)[0].id != cell.id


def test_repetitions_are_cells_of_their_own_with_seeds_of_their_own() -> None:
    cells = cells_of(rows=("small-256MB",), seed=5, repeat=3)
    assert len({cell.id for cell in cells}) == 3
    assert [(cell.seed, cell.repeat) for cell in cells] == [(5, 0), (6, 1), (7, 2)]


def test_patches_of_the_user_travel_inside_of_the_cell(tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "0001-mine.patch").write_bytes(PATCH.read_bytes())
    (mine / "native.config").write_text("CONFIG_MINE=y\n")
    (cell,) = cells_of(rows=("small-256MB",), series=(mine,))
    (mine / "0001-mine.patch").unlink()
    request = request_of(read_cell(cell.to_line(), where="x"), runs=tmp_path, cache=tmp_path)
    (series,) = request.variants[-1].series
    assert (request.variants[-1].name, series.name) == ("mine", "mine")
    assert series.patches[0].body == PATCH.read_bytes()
    assert series.patches[0].options == (("native.config", "CONFIG_MINE=y\n"),)


def test_a_patch_that_is_not_utf_8_is_refused_when_it_is_planned(tmp_path: Path) -> None:
    (tmp_path / "mine.patch").write_bytes(PATCH.read_bytes().replace(b"Mark", b"M\xe4rk"))
    with pytest.raises(BadUsage, match=r"mine.patch: byte \d+ is not UTF-8"):
        cells_of(rows=("small-256MB",), series=(tmp_path / "mine.patch",))


def test_another_checkout_is_refused_with_everything_that_differs(
    cell: Cell, tmp_path: Path
) -> None:
    variants = cell.content()["variants"]
    variants["published"][0]["id"] = "f" * 64
    variants["ream"][0]["folder"] = "quux"
    other = changed(cell, ream="9.9", benchmark="0" * 12, variants=variants)
    with pytest.raises(BadUsage) as refused:
        request_of(other, runs=tmp_path, cache=tmp_path)
    head = f"cell {other.id} is not what this checkout would measure: "
    lines = [line.removeprefix(head) for line in str(refused.value).splitlines()]
    assert lines[:2] == [
        f"version of ream: 9.9 in the plan, {__version__} here",
        (
            "benchmark: ream's own code that measures has changed"
            f" (ids: {'0' * 12} in the plan, {cell.benchmark} here)"
        ),
    ]
    ours = cell.variants["published"][0].id[:12]
    assert lines[2] == f"series of published: ffffffffffff in the plan, {ours} here"
    assert re.match(r"series of ream: \w{12}.* in the plan, .*quux: .* here", lines[3])
    with pytest.raises(BadUsage, match="no experiment 'quux'; there is compact"):
        request_of(changed(cell, experiment="quux"), runs=tmp_path, cache=tmp_path)
    other = changed(cell, params={**cell.params, "order": 9})
    with pytest.raises(BadUsage, match="order of small-256MB: 9 in the plan, 0 here"):
        request_of(other, runs=tmp_path, cache=tmp_path)


def test_another_kernel_source_is_refused_if_the_plan_says_which(
    cell: Cell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = SimpleNamespace(key="a" * 64, version="6.12.117")
    monkeypatch.setattr("ream.fleet.run.fetch_tree", lambda *_, **__: tree)
    request = request_of(cell, runs=tmp_path, cache=tmp_path)
    check_tree(cell, request, step=print, fetch=True)
    other = changed(cell, tree={"key": "0" * 64, "version": "6.12.1"})
    with pytest.raises(BadUsage, match=r"tree: 6.12.1 \(0{12}\) in the plan, 6.12.117 \(a{12}\)"):
        check_tree(other, request, step=print, fetch=True)
    check_tree(other, request, step=print, fetch=False)  # none in the cache: not known


def test_a_row_that_breaks_a_rule_names_cell_and_field(cell: Cell, tmp_path: Path) -> None:
    wrong = changed(cell, row={**cell.row, "device_bytes": 1})
    with pytest.raises(BadUsage, match=f"cell {wrong.id}: row: device_bytes: "):
        request_of(wrong, runs=tmp_path, cache=tmp_path)


def test_a_cell_that_was_changed_since_it_was_planned_is_refused(cell: Cell) -> None:
    with pytest.raises(BadUsage, match=f"cell '{cell.id}' was changed after it was planned"):
        read_cell(cell.to_line().replace('"seed": 5', '"seed": 6'), where="x")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "not one line of JSON"),
        ('{"id": "00", "schema": 1', "not one line of JSON"),
        ("[" * 100_000, "not one line of JSON"),
        ("[1]", "an object with an id"),
        ('{"schema": 1}', "an object with an id"),
        ('{"id": "00", "schema": 2}', "a cell of schema 2; this ream reads schema 1"),
        ('{"id": "00", "schema": true}', "a cell of schema True"),
    ],
)
def test_what_is_no_cell_is_refused_in_one_line(text: str, said: str) -> None:
    with pytest.raises(BadUsage, match="mine.json: ") as refused:
        read_cell(text, where="mine.json")
    assert said in str(refused.value)
    assert len(str(refused.value).splitlines()) == 1


def test_a_field_that_is_missing_or_unknown_is_named() -> None:
    content = {"schema": SCHEMA, "quux": 1}
    with pytest.raises(BadUsage) as refused:
        read_cell(json.dumps({"id": id_of(content), **content}), where="x")
    assert "quux: Extra inputs are not permitted" in str(refused.value)
    assert "launches: Field required" in str(refused.value)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"variants": {"before": []}}, "variants: no before-again to compare with"),
        ({"tree": None}, "it is null in the live stage, and only there"),
        ({"launches": 0}, "launches: "),
        ({"variants": {"../x": []}}, "variants"),
        (
            {"variants": {"x": [{"name": "x", "id": "0", "folder": "../../etc"}]}},
            "variants.x.0.folder: ",
        ),
    ],
)
def test_a_cell_that_makes_no_sense_is_refused(
    cell: Cell, fields: dict[str, object], said: str
) -> None:
    content = {**cell.content(), **fields}
    with pytest.raises(BadUsage) as refused:
        read_cell(json.dumps({"id": id_of(content), **content}), where="x")
    assert said in str(refused.value)


def test_a_cell_keeps_the_base_that_was_asked_for(cell: Cell, tmp_path: Path) -> None:
    (asked,) = cells_of(rows=("small-256MB",), seed=5, tree=TreeWanted(base="7.3"))
    assert asked.id != cell.id
    again = read_cell(asked.to_line(), where="a line")
    request = request_of(again, runs=tmp_path, cache=tmp_path)
    assert request.tree == base_named("7.3")
    assert request_of(cell, runs=tmp_path, cache=tmp_path).tree is None
    with pytest.raises(ValueError, match="it has a path and a base"):
        changed(cell, tree={"base": "7.3", "path": "/linux"})


def test_a_row_of_another_stage_than_its_cell_is_refused(cell: Cell, tmp_path: Path) -> None:
    row = {**cell.row, "stage": "vm", "altmap": True, "published": [], "differs": []}
    with pytest.raises(BadUsage, match="row: stage: vm, in a cell of native"):
        request_of(changed(cell, row=row), runs=tmp_path, cache=tmp_path)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner),
    max_leaves=9,
)


@given(st.dictionaries(st.sampled_from([*Cell.model_fields, "schema", "x"]), json_values))
def test_no_object_but_a_cell_is_taken_for_one(content: dict[str, object]) -> None:
    content["schema"] = SCHEMA
    with pytest.raises(BadUsage):
        read_cell(json.dumps({"id": id_of(content), **content}), where="x")


def test_a_file_of_cells_names_the_line_that_is_none(cell: Cell, tmp_path: Path) -> None:
    file = tmp_path / "cells.jsonl"
    file.write_text(f"{cell.to_line()}\n\nquux\n")
    with pytest.raises(BadUsage, match=r"cells.jsonl:3: not a cell"):
        read_cells(file)
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(BadUsage, match="not a text file"):
        read_cells(file)
    with pytest.raises(BadUsage, match="No such file"):
        read_cells(tmp_path / "nowhere")


def test_rows_that_no_experiment_has_are_all_named() -> None:
    with pytest.raises(BadUsage, match="no row foo, quux in zone-device"):
        cells_of(rows=("small-256MB", "quux", "foo"))


def test_a_pattern_asks_for_rows_that_run_on_request() -> None:
    names = [cell.row_name for cell in cells_of(rows=("why-chunks*",))]
    assert names == ["why-chunks", "why-chunks-zeroed", "why-chunks-list"]


def test_an_experiment_that_is_named_twice_is_planned_once() -> None:
    whole = named("zone-device")
    twice = plan_cells(Wish((whole, whole), rows=("small-256MB",), repeat=2))
    assert twice == plan_cells(Wish((whole,), rows=("small-256MB",), repeat=2))
    assert len(twice) == 2


def test_the_row_that_was_meant_is_named() -> None:
    with pytest.raises(BadUsage, match=r"no row small-256M \(did you mean small-256MB"):
        cells_of(rows=("small-256M",))


def test_rows_are_taken_from_whichever_experiment_has_them() -> None:
    both = tuple(named(name) for name in ("zone-device", "migrate"))
    row = both[1].at("native").rows[0].name
    cells = plan_cells(Wish(both, rows=("small-256MB", row)))
    assert [(c.experiment, c.row_name) for c in cells] == [
        ("zone-device", "small-256MB"),
        ("migrate", row),
    ]


def test_a_cell_is_done_where_this_machine_has_its_record(cell: Cell, tmp_path: Path) -> None:
    assert done(cell, tmp_path / "none", "me") is None
    for name, machine in (("1", None), ("2", "me"), ("3", "damaged")):
        receipt = {"schema": 1, "machine": {"id": machine}, "settings": {"cell": cell.id}}
        (tmp_path / name).mkdir()
        (tmp_path / name / "run.json").write_text('{"schema": 1}')
        text = json.dumps(receipt)
        (tmp_path / name / "receipt.json").write_text(text[: -1 if name == "3" else None])
    found = done(cell, tmp_path, "me")
    assert isinstance(found, Record)
    assert found.path == tmp_path / "2"
    for other in ("another", "damaged", None):  # a machine without an id is not known again
        assert done(cell, tmp_path, other) is None
    assert done(cells_of(rows=("small-256MB",), seed=6)[0], tmp_path, "me") is None


def test_a_plan_has_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ream.fleet.plan.MOST_CELLS", 2)
    whole = named("zone-device")
    wish = Wish((whole,), rows=("small-256MB",), repeat=2)
    assert len(plan_cells(wish)) == 2
    with pytest.raises(BadUsage, match="3 cells; a plan has at most 2"):
        plan_cells(replace(wish, repeat=3))
