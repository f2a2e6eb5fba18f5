# SPDX-License-Identifier: GPL-2.0-only
"""Like with like: what is refused, what is flagged, and what is pooled."""

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from history_world import kernel, machine, series, written
from ream.errors import BadUsage, ReamError
from ream.history import comparison
from ream.history.compare import compare
from ream.history.like import MOST_SAID, differences, machine_key, refuse_unlike
from ream.history.ratios import ratios_of
from ream.paths import CHECKOUT
from ream.record.record import Record
from ream.report.contract import Summary
from ream.width import WIDEST

RECORDS = CHECKOUT / "docs/records"
SHIPPED = sorted(path.parent for path in RECORDS.glob("*/run.json"))


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: str(path.name))
def test_the_ratios_of_a_record_are_those_that_it_printed(path: Path) -> None:
    record = Record.load(str(path), RECORDS)
    found = ratios_of(record)
    summary = Summary.from_object(record.run, source=str(path))
    printed = {
        (row.row, name): result
        for row in summary.rows
        for name, result in row.variants.items()
        if name != "before" and result.ratio is not None
    }
    unit = {row.row: row.unit for row in summary.rows}
    assert found.keys() == printed.keys()
    assert list(found) == list(printed)
    for place, result in printed.items():
        assert found[place].ratio == pytest.approx(result.ratio, rel=1e-4)
        # Records of before counts were looked at printed all of them as exact, repeating or not.
        as_exact = unit[place[0]] == "instructions" and not found[place].exact
        if result.low is not None and not as_exact:
            assert found[place].low == pytest.approx(result.low, rel=1e-4)
            assert found[place].high == pytest.approx(result.high, rel=1e-4)


def test_where_a_kernel_gave_up_the_ratio_is_of_the_time_for_all_of_it(tmp_path: Path) -> None:
    run = {"experiment": "compact"}
    record = written(tmp_path, launches=2, rounds=1, sd=0, rows=("row",), run=run)
    path = record.path / "samples.jsonl"
    path.write_text(
        path.read_text().replace(
            '"subject": "ream"', '"asked": 100, "allocated": 50, "subject": "ream"'
        )
    )
    assert ratios_of(record)["row", "ream"].ratio == pytest.approx(0.8)
    assert ratios_of(record)["row", "published"].ratio == pytest.approx(0.6)


def test_a_broken_sample_is_named(tmp_path: Path) -> None:
    record = written(tmp_path, launches=2, rounds=1)
    with (record.path / "samples.jsonl").open("a") as file:
        file.write('{"row": ')
    with pytest.raises(ReamError, match=r"samples\.jsonl:17: not a sample"):
        ratios_of(record)


def test_the_same_run_again_is_alike(tmp_path: Path) -> None:
    assert differences(written(tmp_path, 1), written(tmp_path, 2)) == ()


def changed_row(record: Record, **changes: Any) -> dict[str, Any]:
    first, *others = record.run["rows"]
    return {"rows": [{**first, **changes}, *others]}


@pytest.mark.parametrize(
    ("run", "what", "row"),
    [
        ({"experiment": "fork"}, "experiment", None),
        ({"stage": "vm"}, "stage", None),
        ({"unit": "instructions"}, "unit of fsdax", "fsdax"),
        ({"params": {"order": 9, "type": "FS_DAX", "nr_pages": 65536}}, "order of fsdax", "fsdax"),
    ],
)
def test_numbers_of_different_things_are_refused(
    tmp_path: Path, run: Mapping[str, Any], what: str, row: str | None
) -> None:
    one = written(tmp_path, 1)
    other = written(tmp_path, 2, run=run if row is None else changed_row(one, **run))
    (found,) = differences(one, other)
    assert (found.what, found.gravity, found.row) == (what, "refuse", row)
    with pytest.raises(BadUsage, match=f"are not alike: {what}: "):
        refuse_unlike([one, other], "--force")


@pytest.mark.parametrize(
    ("receipt", "whats"),
    [
        ({"machine": machine(id="other")}, {"machine"}),
        ({"machine": machine(cpu="Newer CPU", kernel="6.13")}, {"CPU", "running kernel"}),
        ({"machine": machine(id=None)}, {"machine"}),
        ({"kernel": kernel(tree_key="ef" * 32)}, {"tree"}),
        ({"kernel": kernel(compiler="gcc 14")}, {"compiler"}),
        ({"kernel": kernel(config_sha256="00" * 32)}, {"configuration"}),
        (
            {"kernel": kernel(variants={"before": [], "published": series("a"), "ream": []})},
            {"series of ream"},
        ),
        ({"benchmark": None}, {"benchmark"}),
        ({"guest": {"accel": None, "qemu": "QEMU 9"}}, {"QEMU"}),
    ],
)
def test_what_may_matter_is_flagged(
    tmp_path: Path, receipt: Mapping[str, Any], whats: set[str]
) -> None:
    found = differences(written(tmp_path, 1), written(tmp_path, 2, receipt=receipt))
    assert {one.what for one in found} == whats
    assert {one.gravity for one in found} == {"flag"}


def test_a_series_is_the_same_if_its_diffs_are_however_it_was_sent(tmp_path: Path) -> None:
    def sent(letter: str, diff: str | None) -> dict[str, Any]:
        entries = [{**one, **({"diff_id": diff} if diff else {})} for one in series(letter)]
        return {"kernel": kernel(variants={"before": [], "published": [], "ream": entries})}

    first = written(tmp_path, 1, receipt=sent("b", "dd" * 32))
    again = written(tmp_path, 2, receipt=sent("c", "dd" * 32))
    assert not differences(first, again)
    assert all(line.why_not is None for line in compare([first, again]).lines)
    changed = written(tmp_path, 3, receipt=sent("b", "ee" * 32))
    assert [one.what for one in differences(first, changed)] == ["series of ream"]
    older, other = (written(tmp_path, n, receipt=sent(a, None)) for n, a in ((4, "b"), (5, "c")))
    assert not differences(first, older)
    assert [one.what for one in differences(first, other)] == ["series of ream"]


def test_another_benchmark_or_accelerator_is_refused(tmp_path: Path) -> None:
    other = written(tmp_path, 2, receipt={"benchmark": "ffff", "guest": {"accel": "tcg"}})
    found = differences(written(tmp_path, 1), other)
    assert {one.what for one in found if one.gravity == "refuse"} == {"benchmark", "accelerator"}


def test_a_parameter_that_only_a_younger_record_has_is_flagged(tmp_path: Path) -> None:
    one = written(tmp_path, 1)
    params = {**one.run["rows"][0]["params"], "threads": 2}
    (found,) = differences(one, written(tmp_path, 2, run=changed_row(one, params=params)))
    assert (found.what, found.gravity) == ("threads of fsdax", "flag")


def test_records_that_name_no_machine_are_told_apart_by_its_description(tmp_path: Path) -> None:
    old = [written(tmp_path, number, receipt={"machine": machine(id=None)}) for number in (1, 2)]
    assert machine_key(old[0]) == machine_key(old[1])
    assert [str(one) for one in differences(*old)] == ["machine's id: not said in either"]


def test_launches_of_runs_on_a_machine_are_pooled(tmp_path: Path) -> None:
    found = compare([written(tmp_path, number, sd=0.02) for number in (1, 2, 3)])
    line = found.lines[0]
    assert (line.row, line.variant, line.nr_machines) == ("fsdax", "before-again", 1)
    ream = next(one for one in found.lines if one.variant == "ream")
    assert ream.pooled is not None
    assert len(ream.pooled.per_launch) == 24
    assert ream.pooled.ratio == pytest.approx(0.4, rel=0.03)
    assert all(one.differ is False for one in found.lines)
    text = comparison.text(found)
    assert "in none of 6 lines do the runs differ more than their launches explain" in text
    assert max(map(len, text.splitlines())) <= WIDEST


def test_runs_that_differ_more_than_their_launches_explain_are_named(tmp_path: Path) -> None:
    found = compare([written(tmp_path, number, sd=0.01, run_sd=0.2) for number in (1, 2, 3)])
    assert any(line.differ for line in found.lines)
    text = comparison.text(found)
    assert "RUNS DIFFER: over runs " in text
    assert "the one over runs is to be believed" in text
    line = next(one for one in found.lines if one.differ)
    assert line.over_runs is not None
    assert line.pooled is not None
    assert line.pooled.low is not None
    assert line.over_runs.low is not None
    assert line.over_runs.low < line.pooled.low


def test_over_machines_the_machine_is_the_replicate(tmp_path: Path) -> None:
    found = compare(
        [
            written(tmp_path, 1),
            written(tmp_path, 2),
            written(tmp_path, 3, receipt={"machine": machine(id="other")}),
        ]
    )
    assert set(found.machines) == {"feedc0ffee00", "other"}
    ream = next(one for one in found.lines if one.variant == "ream")
    assert ream.pooled is not None
    assert (ream.nr_machines, len(ream.pooled.per_launch)) == (2, 2)
    assert "pooled of 2 machines" in comparison.text(found)


def test_a_record_without_a_machine_id_is_not_pooled_as_one_machine_more(tmp_path: Path) -> None:
    old = written(tmp_path, 1, receipt={"machine": machine(id=None)})
    found = compare([old, written(tmp_path, 2)])
    assert {line.pooled for line in found.lines} == {None}
    assert all(line.chance is not None for line in found.lines)
    text = comparison.text(found)
    assert "not pooled: one has no machine id: one machine or two is not known" in text
    assert "differs   machine: no id in [1], feedc0ffee00 in [2]" in text
    far = written(tmp_path, 3, run={"receipt": {**old.run["receipt"], "machine": "Another CPU"}})
    assert all(line.pooled is not None for line in compare([old, far]).lines)


@pytest.mark.parametrize("whole", [False, True])
def test_samples_that_were_cut_between_two_lines_are_no_ratio(tmp_path: Path, whole: bool) -> None:
    record = written(tmp_path, 1)
    samples = record.path / "samples.jsonl"
    lines = [] if whole else samples.read_text().splitlines(keepends=True)[:-8]
    samples.write_text("".join(lines))
    said = "0 samples of fsdax before" if whole else "22 samples of devdax before"
    with pytest.raises(ReamError, match=f"{said}, run.json has 24: the record is damaged"):
        ratios_of(record)


def test_a_sample_that_is_not_verified_makes_no_ratio(tmp_path: Path) -> None:
    record = written(tmp_path)
    path = record.path / "samples.jsonl"
    path.write_text(path.read_text().replace('"verified": true', '"verified": false', 1))
    with pytest.raises(ReamError, match="is not verified; no number of this record counts"):
        ratios_of(record)


def test_of_many_runs_that_are_not_alike_few_differences_are_named(tmp_path: Path) -> None:
    runs = [written(tmp_path, n, run={"stage": f"stage {n}"}) for n in range(1, 8)]
    with pytest.raises(BadUsage) as found:
        compare(runs)
    lines = str(found.value).splitlines()
    assert len(lines) == MOST_SAID + 2
    assert lines[-2] == "and 13 more differences of this kind"
    assert "--force" in lines[-1]


def test_a_comparison_is_plain_text_whatever_a_record_says(tmp_path: Path) -> None:
    other = written(tmp_path, 2, receipt={"kernel": kernel(compiler="gcc \x1b[31m\u202e")})
    text = comparison.text(compare([written(tmp_path, 1), other]))
    assert text.isascii()
    assert text.replace("\n", "").isprintable()


def test_variants_of_other_patches_or_trees_are_not_pooled(tmp_path: Path) -> None:
    other = kernel(variants={"before": [], "published": series("a"), "ream": series("c")})
    found = compare([written(tmp_path, 1), written(tmp_path, 2, receipt={"kernel": other})])
    pooled = {line.variant: line.pooled for line in found.lines}
    assert pooled["ream"] is None
    assert pooled["published"] is not None
    assert "not pooled: its series is not the same in all runs" in comparison.text(found)
    tree = kernel(tree_key="ef" * 32)
    found = compare([written(tmp_path, 3), written(tmp_path, 4, receipt={"kernel": tree})])
    assert {line.why_not for line in found.lines} == {"the tree is not the same in all runs"}


def test_unlike_runs_are_compared_only_by_force(tmp_path: Path) -> None:
    runs = [written(tmp_path, 1), written(tmp_path, 2, receipt={"benchmark": "ffff"})]
    with pytest.raises(BadUsage, match="(?s)benchmark: .*--force compares them all the same"):
        compare(runs)
    assert "UNLIKE    benchmark: 0123456789ab in [1], ffff in [2]" in comparison.text(
        compare(runs, force=True)
    )


def test_what_cannot_be_compared_is_refused(tmp_path: Path) -> None:
    one = written(tmp_path, 1)
    with pytest.raises(BadUsage, match="it takes two runs"):
        compare([one])
    with pytest.raises(BadUsage, match="is named twice"):
        compare([one, one])
    live = [RECORDS / name for name in ("20261121T101155Z-fork-live-5179",)]
    copy = tmp_path / "20261121T101156Z-fork-live-5180"
    shutil.copytree(live[0], copy)
    run = (copy / "run.json").read_text()
    (copy / "run.json").write_text(
        run.replace("T101155Z-fork-live-5179", "T101156Z-fork-live-5180")
    )
    with pytest.raises(BadUsage, match="has a ratio to before: nothing to compare"):
        compare([Record.load(str(live[0]), tmp_path), Record.load(str(copy), tmp_path)])


def test_rows_of_some_runs_alone_are_named(tmp_path: Path) -> None:
    found = compare([written(tmp_path, 1), written(tmp_path, 2, rows=("fsdax",))])
    assert dict(found.missing) == {found.runs[1]: ("devdax",)}
    assert "not in    [2]: devdax" in comparison.text(found)


def test_the_object_of_a_comparison_has_what_the_text_has(tmp_path: Path) -> None:
    found = compare([written(tmp_path, 1), written(tmp_path, 2, launches=1)])
    value = comparison.to_object(found)
    assert value["schema"] == 1
    assert value["runs"] == list(found.runs)
    line = next(one for one in value["lines"] if one["variant"] == "ream")
    assert line["runs"][1]["low"] is None
    assert line["differ"] is None
    assert line["pooled"]["replicates"] == 9
    assert comparison.text(found).count("[one launch]") == 6
    assert "no line has what it takes" in comparison.text(found)
