# SPDX-License-Identifier: GPL-2.0-only
"""Like with like: what is refused, what is flagged, and what is pooled."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from history_world import kernel, machine, series, written
from ream.errors import BadUsage, ReamError
from ream.history import comparison
from ream.history.compare import compare
from ream.history.ratios import ratios_of
from ream.record.record import Record
from ream.report.contract import Summary
from ream.width import WIDEST, as_wide_as
from shipped import EACH, RECORDS, unpacked


@pytest.mark.parametrize("path", EACH)
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


def test_the_ratio_of_a_given_series_is_to_the_tree_it_stands_on(tmp_path: Path) -> None:
    record = written(tmp_path, launches=2, rounds=1, sd=0, rows=("row",))
    to_before = {name: found.ratio for (_, name), found in ratios_of(record).items()}
    path = record.path / "run.json"
    run = json.loads(path.read_text())
    [row] = run["rows"]
    row["variants"]["ream"]["compared_with"] = "published"
    path.write_text(json.dumps(run))
    given = ratios_of(Record.load(str(record.path), tmp_path))
    expected = to_before["ream"] / to_before["published"]
    assert given["row", "ream"].ratio == pytest.approx(expected)
    assert given["row", "published"].ratio == pytest.approx(to_before["published"])


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


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda text: text + '{"row": ', r"samples\.jsonl:193: not a sample"),
        (lambda _: "", "0 samples of fsdax before, run.json has 24: the record is damaged"),
        (lambda text: "".join(text.splitlines(keepends=True)[:-8]), "22 samples of devdax before"),
        (
            lambda text: text.replace('"verified": true', '"verified": false', 1),
            "is not verified; no number of this record counts",
        ),
    ],
)
def test_samples_that_are_damaged_or_wrong_make_no_ratio(
    tmp_path: Path, damage: Callable[[str], str], said: str
) -> None:
    record = written(tmp_path)
    path = record.path / "samples.jsonl"
    path.write_text(damage(path.read_text()))
    with pytest.raises(ReamError, match=said):
        ratios_of(record)


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
    assert "6 of 6 lines were tested. In none of them do the runs differ more than" in text
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


def test_a_comparison_is_plain_text_whatever_a_record_says(tmp_path: Path) -> None:
    other = written(tmp_path, 2, receipt={"kernel": kernel(compiler="gcc \x1b[31m\u202e")})
    text = comparison.text(compare([written(tmp_path, 1), other]))
    assert text.isascii()
    assert text.replace("\n", "").isprintable()


def test_unlike_runs_are_compared_only_by_force_and_other_code_is_not_pooled(
    tmp_path: Path,
) -> None:
    other = {"kernel": kernel(tree_key="ef" * 32)}
    runs = [written(tmp_path, 1), written(tmp_path, 2, receipt=other, run={"stage": "vm"})]
    with pytest.raises(BadUsage, match="(?s)stage: .*--unlike compares them all the same"):
        compare(runs)
    found = compare(runs, unlike=True)
    text = comparison.text(found)
    assert "UNLIKE    stage: native in [1], vm in [2]" in text
    assert "differs   tree: " in text
    assert {line.pooled for line in found.lines} == {None}
    assert text.count("not pooled") == text.count("not pooled\n") == len(found.lines)
    not_pooled = comparison.to_object(found)["lines"][0]["not_pooled"]
    assert "tree: linux-source-6.12 6.12.117-1 (abababababab) in one, " in not_pooled
    said = comparison.to_object(found)["unlike"][0]
    assert (said["what"], said["first"], said["gravity"]) == ("stage", "native", "refuse")


def test_every_variant_of_both_records_is_tested_whatever_its_patches_are(tmp_path: Path) -> None:
    other = {
        "benchmark": "ffff",
        "kernel": kernel(variants={"before": [], "published": series("a"), "ream": series("c")}),
    }
    runs = [
        written(tmp_path, 1, sd=0.01),
        written(tmp_path, 2, sd=0.01, receipt=other, truth={"published": 0.6, "ream": 0.8}),
    ]
    found = compare(runs)
    assert {line.untested for line in found.lines} == {None}
    assert {line.variant: line.differ for line in found.lines} == {
        "before-again": False,
        "published": False,
        "ream": True,
    }
    assert {line.pooled for line in found.lines} == {line.over_runs for line in found.lines}
    assert {line.pooled for line in found.lines} == {None}
    text = comparison.text(found)
    assert "benchmark: ream's own code that measures has changed (ids: 0123456789ab in [1]," in text
    assert "A benchmark id is a digest of" in text
    assert "not pooled: series of ours: its one patch differs\n" in text
    assert "bbbbbbbbbbbb" not in text
    words = " ".join(text[text.index("in short") :].split())
    assert "6 of 6 lines were tested. In 2 of them the runs differ" in words
    assert "In all of these, what was measured differs, too: benchmark, series" in words


def test_a_line_that_is_not_tested_says_why(tmp_path: Path) -> None:
    runs = [written(tmp_path, 1), written(tmp_path, 2, launches=1, rows=("fsdax",))]
    text = comparison.text(compare(runs))
    assert text.count("not tested: of one launch in a run") == 3
    assert text.count("not tested: in one run alone") == 3
    words = " ".join(text[text.index("in short") :].split())
    assert "0 of 6 lines were tested; 6 not: 3 of one launch in a run, 3 in one run alone." in words
    counts = written(tmp_path, 3, unit="instructions")
    with pytest.raises(BadUsage, match="unit of fsdax: ns in one, instructions in the other"):
        compare([runs[0], counts])
    forced = compare([runs[0], counts], unlike=True)
    assert {line.untested for line in forced.lines} == {
        "of times in one run and of counts in another"
    }


def test_where_it_may_be_one_machine_or_two_nothing_is_pooled(tmp_path: Path) -> None:
    found = compare(
        [written(tmp_path, 1, receipt={"machine": machine(id=None)}), written(tmp_path, 2)]
    )
    assert {line.pooled for line in found.lines} == {None}
    assert all(line.chance is not None for line in found.lines)
    text = comparison.text(found)
    assert "not pooled: one has no machine id: one machine or two is not known" in text


def test_what_cannot_be_compared_is_refused(tmp_path: Path) -> None:
    one = written(tmp_path, 1)
    with pytest.raises(BadUsage, match="it takes two runs"):
        compare([one])
    with pytest.raises(BadUsage, match="is named twice"):
        compare([one, one])
    live = [RECORDS / name for name in ("20261121T101155Z-fork-live-5179",)]
    copy = tmp_path / "20261121T101156Z-fork-live-5180"
    unpacked(live[0], copy, lambda run: run.update(run=copy.name))
    with pytest.raises(BadUsage, match="has a ratio to before: nothing to compare"):
        compare([Record.load(str(live[0]), tmp_path), Record.load(str(copy), tmp_path)])


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
    assert "0 of 6 lines were tested; 6 not: 6 of one launch in a run" in comparison.text(found)
    assert line["not_tested"] == "of one launch in a run"


def test_a_long_comparison_is_a_table_with_each_reason_once(tmp_path: Path) -> None:
    rows = tuple(f"fsdax-{number}" for number in range(6))
    variants = {"before": [], "published": series("a"), "ream": series("c")}
    other = {"kernel": kernel(variants=variants)}
    runs = [
        written(tmp_path, 1, sd=0.01, rows=rows),
        written(tmp_path, 2, sd=0.01, rows=rows, receipt=other, truth={"ream": 0.8}),
    ]
    found = compare(runs)
    said = comparison.overview(found)
    assert said.index("in short") < said.index("row ") < said.index("fsdax-0") < said.index("read")
    assert said.count("not pooled") == said.count("not tested:") == 1
    lines = said.splitlines()
    assert all(any(line.startswith(row) for line in lines) for row in rows)
    assert sum(line.endswith("DIFFER b") for line in lines) == len(rows)
    (reason,) = (line for line in lines if line.startswith("b "))
    assert "series of ours" in reason
    assert "--rows" in lines[-1]
    assert len(lines) < len(comparison.text(found).splitlines())


@pytest.mark.parametrize("columns", [60, 80, 100])
def test_a_line_of_a_comparison_is_no_longer_than_the_terminal(
    tmp_path: Path, columns: int
) -> None:
    other = {"kernel": kernel(compiler="gcc " + "of a long name " * 20)}
    found = compare([written(tmp_path, 1), written(tmp_path, 2, receipt=other)])
    with as_wide_as(columns):
        for said in (comparison.text(found), comparison.overview(found)):
            assert max(map(len, said.splitlines())) <= columns
