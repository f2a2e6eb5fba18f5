# SPDX-License-Identifier: GPL-2.0-only
"""What records of several machines say together, where the truth is known."""

import json
import math
import shutil
from pathlib import Path
from typing import Any

import pytest
from inline_snapshot import snapshot

from history_world import kernel, machine, written
from ream.errors import BadUsage
from ream.experiment import named
from ream.fleet.cell import Cell
from ream.fleet.merge import Merge, merge_records, read_records
from ream.fleet.plan import Wish, plan_cells
from ream.fleet.render import render
from ream.width import WIDEST
from shipped import SHIPPED


def on(name: str, **changes: Any) -> dict[str, Any]:
    """A receipt of another machine."""
    return {"machine": machine(id=name * 12, cpu=f"CPU {name}", **changes)}


def described(name: str, **run: Any) -> dict[str, Any]:
    return {"receipt": {"machine": f"CPU {name}, 2 CPUs"}, **run}


def two_machines(runs: Path, **otherwise: Any) -> Merge:
    for number, name in enumerate("bba"):
        truth = {"published": 0.6, "ream": 0.4 if name == "a" else 0.5}
        written(
            runs,
            number,
            truth=truth,
            rows=("fsdax",),
            receipt=on(name) | otherwise.get(name, {}),
            run=described(name),
        )
    return merge_records(read_records([runs]))


def test_each_machine_and_all_of_them_have_a_ratio(tmp_path: Path) -> None:
    merge = two_machines(tmp_path)
    assert [(m.letter, m.nr_records) for m in merge.machines] == [("A", 1), ("B", 2)]
    (row,) = merge.rows
    assert [one.variant for one in row.variants] == ["before-again", "published", "ream"]
    ours = row.variants[-1]
    assert {k: len(v.per_launch) for k, v in ours.by_machine.items()} == {"A": 8, "B": 16}
    assert ours.by_machine["A"].ratio == pytest.approx(0.4, rel=0.02)
    assert ours.by_machine["B"].ratio == pytest.approx(0.5, rel=0.02)
    # Each machine weighs the same, however often it was measured.
    assert ours.whole.ratio == pytest.approx(math.sqrt(0.4 * 0.5), rel=0.02)
    assert (ours.over, ours.differ) == ("machines", True)
    assert row.variants[1].differ is False


def test_the_table_says_what_the_records_say(tmp_path: Path) -> None:
    text = render(two_machines(tmp_path), again="")
    assert all(len(line) <= WIDEST for line in text.splitlines())
    assert text == snapshot("""\
ream merge: 3 records, 2 machines
machine   A: CPU a, 2 CPUs (aaaaaaaaaaaa), 1 record
machine   B: CPU b, 2 CPUs (bbbbbbbbbbbb), 2 records
read      ratio = variant / before, lower is better; of a machine with its 95 % interval over its
          launches, of all with one over machines: what it takes to speak of a machine that is not
          among them. Only ratios are pooled, each machine with the same weight.
note      an interval over two machines is wide, however many their launches: a third machine
          narrows it

zone-device native, fsdax: fsdax, order 0
                                  launches  ratio [low .. high]
  before-again      A                    8  0.999 [0.990 .. 1.008]
                    B                   16  0.997 [0.991 .. 1.003]
                    all 2               24  0.998 [0.985 .. 1.012]
                    the machines differ no more than their launches explain (p 0.67)
  technique         A                    8  0.595 [0.589 .. 0.601]
                    B                   16  0.599 [0.595 .. 0.603]
                    all 2               24  0.597 [0.572 .. 0.624]
                    the machines differ no more than their launches explain (p 0.21)
  ours              A                    8  0.399 [0.396 .. 0.402]
                    B                   16  0.499 [0.496 .. 0.502]
                    all 2               24  0.446 [0.108 .. 1.850]
                    the machines DIFFER more than their launches explain (p < 0.0001 by chance)
""")


def test_one_machine_has_an_interval_over_its_launches_and_says_so(tmp_path: Path) -> None:
    for number in range(2):
        written(tmp_path, number)
    merge = merge_records(read_records([tmp_path]))
    for row in merge.rows:
        for one in row.variants:
            assert (one.over, one.differ, len(one.whole.per_launch)) == ("launches", None, 16)
    text = " ".join(render(merge, again="").split())
    assert "of the ONE machine, with its 95 % interval over launches" in text


def test_the_same_records_give_the_same_bytes_wherever_they_lie(tmp_path: Path) -> None:
    there, here = tmp_path / "there", tmp_path / "here"
    first = render(two_machines(there), again="")
    for path in sorted(there.iterdir(), reverse=True):
        shutil.copytree(path, here / "deep" / path.name[-1] / path.name)
    assert render(merge_records(read_records([here])), again="") == first
    # Fetched twice it is still one record.
    assert render(merge_records(read_records([here, there, here])), again="") == first


def test_what_cannot_be_pooled_is_refused_and_what_differs_all_the_same_is_noted(
    tmp_path: Path,
) -> None:
    merge = two_machines(tmp_path / "noted", a={"kernel": kernel(compiler="gcc 13")})
    assert merge.notes == ("compiler: gcc 12 in one, gcc 13 in the other",)
    with pytest.raises(BadUsage) as refused:
        two_machines(tmp_path, b={"kernel": kernel(tree_key="ef" * 32)})
    first, last = str(refused.value).splitlines()
    assert " are not alike: tree: linux-source-6.12 6.12.117-1 (" in first
    assert last.startswith("zone-device fsdax cannot be pooled; name records that are alike")


def test_a_table_is_plain_text_whatever_names_a_record_has(tmp_path: Path) -> None:
    record = written(tmp_path, 1, run=described("\u00b5"))
    for name in ("run.json", "samples.jsonl"):
        file = record.path / name
        file.write_text(file.read_text().replace('"ream"', '"\\ud800"'))
    text = render(merge_records(read_records([tmp_path])), again="")
    assert text.isascii()
    assert "\\ud800" in text
    assert "CPU \\xb5" in text


def test_two_machines_may_draw_one_run_id(tmp_path: Path) -> None:
    for name in "ab":
        written(tmp_path / name, 1, receipt=on(name))
    merge = merge_records(read_records([tmp_path]))
    assert [(m.letter, m.nr_records) for m in merge.machines] == [("A", 1), ("B", 1)]
    assert {len(one.by_machine) for row in merge.rows for one in row.variants} == {2}


def test_rows_that_no_two_records_share_need_not_be_alike(tmp_path: Path) -> None:
    written(tmp_path, 1, rows=("fsdax",))
    written(tmp_path, 2, rows=("devdax",), receipt={"benchmark": "ba9876543210"})
    assert [row.row for row in merge_records(read_records([tmp_path])).rows] == ["devdax", "fsdax"]


@pytest.mark.parametrize("file", ["run.json", "receipt.json", "samples.jsonl"])
def test_a_damaged_record_is_named_and_left_out(file: str, tmp_path: Path) -> None:
    written(tmp_path, 1)
    damaged = written(tmp_path, 2).path / file
    whole = damaged.read_bytes()
    damaged.write_bytes(whole[: len(whole) // 2 + 3])
    merge = merge_records(read_records([tmp_path]))
    (one,) = merge.damaged
    assert one.path == str(damaged.parent)
    assert f" damaged left out: {damaged}:" in " ".join(render(merge, again="").split())
    assert damaged.read_bytes() == whole[: len(whole) // 2 + 3]
    assert all(len(row.runs) == 1 for row in merge.rows)


def test_a_directory_without_a_record_is_refused_with_what_is_damaged(tmp_path: Path) -> None:
    with pytest.raises(BadUsage, match="no record in there"):
        read_records([tmp_path])
    with pytest.raises(BadUsage, match="nowhere: no such directory"):
        read_records([tmp_path / "nowhere"])
    (written(tmp_path, 1).path / "run.json").write_text("{")
    with pytest.raises(BadUsage, match=r"no record in there\n.*run.json: not JSON"):
        read_records([tmp_path])


def test_an_unfinished_record_is_none(tmp_path: Path) -> None:
    written(tmp_path, 1)
    path = written(tmp_path, 2).path
    path.rename(path.with_name(f".{path.name}.partial"))
    assert len(read_records([tmp_path]).records) == 1


def planned(machines: int) -> tuple[Cell, ...]:
    whole = named("zone-device")
    rows = ("small-256MB", "small-256MB-dirty")
    return plan_cells(Wish((whole,), rows=rows, seed=3, machines=machines))


def recorded(runs: Path, number: int, cell: Cell, name: str) -> None:
    settings = {"settings": {"seed": 3, "cell": cell.id}}
    written(runs, number, rows=(cell.row_name,), receipt=on(name) | settings)


def test_cells_without_a_record_are_missing(tmp_path: Path) -> None:
    plan = planned(machines=1)
    recorded(tmp_path, 1, plan[0], "a")
    written(tmp_path, 2, receipt=on("b"))  # of no cell
    merge = merge_records(read_records([tmp_path]), plan)
    assert [(m.cell, m.row, m.done) for m in merge.missing] == [(plan[1].id, plan[1].row_name, 0)]
    text = render(merge, again="sh run.sh")
    assert "plan      1 of 2 cells have their records\n" in text
    assert f"missing   {plan[1].id}: zone-device native, small-256MB-dirty\n" in text
    assert text.endswith("again     sh run.sh\n")


def test_a_cell_wanted_from_every_machine_is_missing_until_all_have_it(tmp_path: Path) -> None:
    plan = planned(machines=2)
    recorded(tmp_path, 1, plan[0], "a")
    recorded(tmp_path, 2, plan[0], "a")
    recorded(tmp_path, 3, plan[1], "a")
    recorded(tmp_path, 4, plan[1], "b")
    merge = merge_records(read_records([tmp_path]), plan)
    assert [(m.cell, m.done, m.wanted) for m in merge.missing] == [(plan[0].id, 1, 2)]
    assert "from 1 of 2 machines" in render(merge, again="")


def test_records_that_may_be_biased_are_counted(tmp_path: Path) -> None:
    written(tmp_path, 1, receipt=on("a") | {"warnings": ["other programs used 77 %"]})
    written(tmp_path, 2, receipt=on("a"))
    merge = merge_records(read_records([tmp_path]))
    assert [machine.nr_doubtful for machine in merge.machines] == [1]
    assert "\ndoubt     A: 1 of 2 records may be biased;" in render(merge, again="")


def test_json_has_what_the_table_has_and_unknown_is_null(tmp_path: Path) -> None:
    written(tmp_path, 1, launches=1, rows=("fsdax",), receipt=on("a"))
    written(tmp_path, 2, launches=2, rows=("fsdax",), receipt=on("b"))
    merge = merge_records(read_records([tmp_path]))
    said = json.loads(json.dumps(merge.to_object(again=None), allow_nan=False))
    ours = said["rows"][0]["variants"]["ream"]
    assert ours["machines"]["A"] == {
        "ratio": ours["machines"]["A"]["ratio"],
        "low": None,
        "high": None,
        "launches": 1,
    }
    assert (ours["chance_of_alike"], ours["machines_differ"]) == (None, None)
    assert (ours["nr_machines"], ours["nr_launches"], ours["over"]) == (2, 3, "machines")
    assert (said["planned"], said["again"]) == (None, None)
    assert "cannot be said" in render(merge, again="")


@pytest.mark.vm
def test_the_shipped_records_can_be_merged() -> None:
    # Each by itself: a series that was mended between two of them forbids more.
    merges = [merge_records(read_records([path])) for path in SHIPPED]
    assert all(merge.damaged == () and render(merge, again="") for merge in merges)
    assert sum(len(merge.rows) for merge in merges) > 100
