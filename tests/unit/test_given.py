# SPDX-License-Identifier: GPL-2.0-only
"""Other values for fields of rows: `--set FIELD=VALUE`."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from ream.errors import BadUsage
from ream.experiment import Row, given, named
from ream.fleet.cell import read_cell
from ream.fleet.plan import Wish, plan_cells
from ream.fleet.run import request_of

DEFERRED = named("deferred-init")
DEVICES = named("zone-device")


def deferred(*texts: str, rows: Sequence[str] = ("2-threads",)) -> tuple[Row, ...]:
    return given(DEFERRED.only(rows), texts).rows


def test_all_rows_that_are_chosen_have_the_value_and_the_rest_of_their_own() -> None:
    rows = deferred("memory_bytes=384GiB", "rounds=2", rows=("2-threads", "50-pct"))
    assert [(row.memory_bytes >> 30, row.rounds) for row in rows] == [(384, 2), (384, 2)]
    assert [(row.threads, row.node_pct) for row in rows] == [(2, None), (None, 50)]
    assert rows[0].published == DEFERRED.only(["2-threads"]).rows[0].published


@pytest.mark.parametrize("text", ["layout=holes", 'layout="holes"', "layout = 'holes'"])
def test_a_text_needs_no_quotes(text: str) -> None:
    (row,) = deferred(text.replace(" = ", "="))
    assert row.layout == "holes"


def test_nothing_set_changes_nothing() -> None:
    assert given(DEFERRED, ()) == DEFERRED


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        (["memory_bytes"], "--set memory_bytes: say FIELD=VALUE, as in --set threads=4"),
        (["memory=1GiB"], "--set memory: no field of a row (did you mean memory_bytes?); a row"),
        (["memory_bytes=1GB"], "--set: row 2-threads: memory_bytes: not a size"),
        (["threads=many"], "--set: row 2-threads: threads: must be a valid integer"),
        (["threads=0"], "--set: row 2-threads: threads: must be greater than or equal"),
        (["node_pct=50"], "--set: row 2-threads: give threads or node_pct, not both"),
        (["layout=holes", "measure=boot"], "--set: row 2-threads: natively a boot is of nodes"),
        (["threads=1", "threads=2"], "--set threads: given twice"),
        (["stage=vm"], "--set stage: is what a row is known by"),
        (["published=x"], "--set published: is what a row is known by"),
        (["part_of=x"], "--set part_of: is what a row is known by"),
        (["on_request=true"], "--set on_request: is what a row is known by"),
        (["=1"], "--set : no field of a row"),
    ],
)
def test_a_value_that_no_row_can_have_is_refused_by_name(texts: list[str], said: str) -> None:
    with pytest.raises(BadUsage) as refused:
        deferred(*texts)
    assert str(refused.value).startswith(said)


def test_a_row_of_something_else_gets_no_verdict_on_its_tables() -> None:
    assert deferred("memory_bytes=16GiB", "threads=3")[0].no_verdict is None
    (row,) = deferred("layout=holes", "threads=3")
    assert str(row.no_verdict).startswith("layout=holes was set")
    (device,) = given(DEVICES.only(["fsdax-100GB"]), ["order=9"]).rows
    assert str(device.no_verdict).startswith("order=9 was set")
    (same,) = given(DEVICES.only(["fsdax-100GB"]), ["rounds=2"]).rows
    assert same.no_verdict is None


def test_a_boot_of_other_memory_gets_no_verdict() -> None:
    (row,) = deferred("memory_bytes=1GiB", rows=("vm-boot-16g-4cpu",))
    assert str(row.no_verdict).startswith("memory_bytes=1GiB was set")


def test_a_cell_asks_for_the_row_as_it_was_set(tmp_path: Path) -> None:
    wish = Wish((DEFERRED,), rows=("2-threads",), settings=("memory_bytes=4GiB",))
    (cell,) = plan_cells(wish)
    assert cell.params["nr_pages"] == 1 << 20
    request = request_of(read_cell(cell.to_line(), where="a line"), runs=tmp_path, cache=tmp_path)
    assert request.experiment.rows == deferred("memory_bytes=4GiB")
