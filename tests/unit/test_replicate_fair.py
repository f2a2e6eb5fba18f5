# SPDX-License-Identifier: GPL-2.0-only
"""No verdict of a replication is one that the author of its table would call unfair."""

import re
from dataclasses import replace

import pytest

from ream.experiment import Experiment, named
from ream.folders import names
from ream.measure.verdict import Verdict
from ream.published import load_tables, lookup
from ream.record.record import Record
from ream.replicate.contract import to_object
from ream.replicate.defence import defence
from ream.replicate.outcome import JudgedRecord, Replication, one_machine, replicate_all
from ream.replicate.render import render, verdict_words
from ream.replicate.why import bound, same_measurements
from shipped import RECORDS, SHIPPED

TABLES = load_tables()


@pytest.fixture(scope="module")
def experiments() -> list[Experiment]:
    return [named(name) for name in names()]


def of(*ends: str) -> list[JudgedRecord]:
    """The shipped records whose names end so."""
    paths = [path for path in SHIPPED if path.name.endswith(ends)]
    its = [JudgedRecord.of(Record.load(str(path), RECORDS)) for path in paths]
    assert len(its) == len(ends)
    one_machine(its)
    return its


def replicated(tables, sources, experiments) -> tuple[Replication, ...]:
    timed = [source for source in sources if not source.counted]
    machine = max(timed, key=lambda source: source.name).machine
    return replicate_all(tables, sources, experiments, machine, absent={}, failed={})


def of_records(experiments, table: str, *ends: str) -> Replication:
    (one,) = replicated([lookup(TABLES, table)], of(*ends), experiments)
    return one


@pytest.fixture(scope="module")
def replications(experiments) -> dict[str, Replication]:
    ends = ("eda0", "65a6", "8a7b", "be1f", "a05f", "f113", "a408")
    return {one.table.id: one for one in replicated(TABLES, of(*ends), experiments)}


def flat(one: Replication) -> str:
    return " ".join(render([one]).split())


def test_tables_of_one_measurement_are_said_to_be_one_piece_of_evidence(replications) -> None:
    v4, v3 = replications["zone-device-v4"], replications["zone-device-v3"]
    assert same_measurements([v4, v3]) == (("zone-device-v4", "zone-device-v3"),)
    assert same_measurements([v4, replications["fork-pte-batch-v3"]]) == ()
    text = " ".join(render([v4, v3]).split())
    assert "once zone-device-v4, zone-device-v3 rest on the same measurement" in text
    told = to_object([v4, v3])
    assert told["same_measurement"] == [["zone-device-v4", "zone-device-v3"]]
    assert told["totals"] is None  # tables of different kinds have no sum


# --- what the numbers cannot decide ---------------------------------------------------------


@pytest.mark.parametrize("ends", [("65a6",), ("6e45",)])
def test_fork_on_amd_is_not_decided_and_says_how_far_hosted_code_is(experiments, ends) -> None:
    one = of_records(experiments, "fork-pte-batch-v3", *ends)
    assert {line.verdict.word for line in one.lines} == {"inconclusive"}
    for line in one.lines:
        factor = re.search(r"hosted code is ([\d.]+) times faster", line.verdict.reason)
        assert factor is not None
        assert float(factor[1]) == pytest.approx(line.parts.ratio, abs=0.05)
        assert line.parts.ratio > 1.5
        here = to_object([one])["tables"][0]["lines"][0]["here"]
        assert here["live_over_hosted"] == here["live_part_ns"] / here["hosted_part_ns"]
    said = render([one])
    assert "live/hosted" in said
    assert said.count("left out: ") == said.count("not decided: hosted code is ") - 1 == 1
    for row in {line.row.row: line.row for line in one.lines}.values():
        assert re.search(rf"^  {row.row} +[\d.]+ % +[\d.]+ +[\d.]+ +[\d.]+ ", said, re.MULTILINE)


def test_fork_on_an_intel_cpu_agrees_with_the_table_of_another(experiments) -> None:
    one = of_records(experiments, "fork-pte-batch-v3", "c3d4")
    assert one.word == "agrees"
    assert one.counts["agrees"] == 8
    assert [line.control for line in one.controls] == ["undecided"]  # 1.8 times apart


def test_rows_that_host_the_whole_call_are_preferred_to_those_of_a_part(experiments) -> None:
    for end in ("65a6", "c3d4"):
        one = of_records(experiments, "unmap-pte-batch-v1", end)
        assert all(line.row.row.startswith("munmap-free-") for line in one.lines)


ARM64 = (
    "mprotect-native-a05f", "mprotect-native-149a", "mremap-native-f113", "mremap-native-5f83",
)  # fmt: skip


@pytest.mark.parametrize(
    ("table", "counts"),
    [
        ("mprotect-pte-batch-v5", (296.8, 80.7)),
        ("mprotect-pte-batch-v4", (296.8, 80.7)),
        ("mremap-pte-batch-v4", (170.2, 64.8)),
    ],
)
def test_tables_of_arm64_are_not_run_here_and_our_counts_stand_beside(
    experiments, table, counts
) -> None:
    one = of_records(experiments, table, *ARM64)
    assert one.word == "not-run"
    for line in one.deciding:
        assert line.verdict.reason == "published for arm64, and this is x86_64"
        assert line.ratio is None
    found = [each for line in one.lines for each in line.counts]
    assert counts in {(round(each.before, 1), round(each.published, 1)) for each in found}
    assert f"{counts[0]} -> {counts[1]} instructions for each page" in flat(one)
    assert "contradicts" not in flat(one)
    assert to_object([one])["tables"][0]["architecture"] == "arm64"


@pytest.mark.parametrize(
    ("table", "end"),
    [("migrate-offload-v4", "8a7b"), ("migrate-offload-v4", "3e93"), ("compact-dma", "be1f"),
     ("compact-dma", "5c66")],
)  # fmt: skip
def test_tables_of_a_device_that_is_modelled_are_said_to_be(experiments, table, end) -> None:
    one = of_records(experiments, table, end)
    assert one.word == "modelled"
    assert {line.verdict.word for line in one.compared} <= {"modelled", "not-run"}
    assert "ptdma-v4-grid" in flat(one)
    assert "contradicts" not in flat(one)


def test_the_row_of_a_control_has_the_word_that_its_table_counts(experiments) -> None:
    one = of_records(experiments, "unmap-pte-batch-v1", "65a6")
    (line,) = (text for text in render([one]).splitlines() if text.startswith("* 4 "))
    assert line.endswith(" as published")
    assert "controls: 1 of 1 as published" in verdict_words(one)


def test_every_verdict_is_defended_in_one_sentence(replications) -> None:
    for one in replications.values():
        said = defence(one)
        assert said
        assert said in to_object([one])["tables"][0]["fair"]
        assert f"fair {said}" in flat(one)
        if one.word == "not-run" and one.deciding:
            assert "cannot be tried here: " in said
        if one.word == "modelled":
            assert "the device is a model here (" in said
    assert "published for arm64" in defence(replications["mprotect-pte-batch-v5"])


def test_a_table_of_controls_that_none_decides_is_defended_too(replications) -> None:
    one = replications["unmap-pte-batch-v1"]
    (control,) = one.controls
    alone = replace(one, lines=(replace(control, verdict=Verdict("contradicts", "a sign")),))
    assert alone.word == "inconclusive"
    assert defence(alone) == "no word is for or against the table: a sign"


# --- what is a bound, and what is not -------------------------------------------------------


def test_a_plain_loop_is_no_bound_and_none_is_printed(experiments) -> None:
    for table, end in (("fork-pte-batch-v3", "c3d4"), ("mprotect-regression-yang", "a05f")):
        one = of_records(experiments, table, end)
        for line in one.lines:
            if (its := bound(line)) is not None:
                assert its.most is None
                assert not its.excludes(1000)
        text = flat(one)
        assert "of loop = of a plain loop" in text
        assert "at most" not in text
        assert "no more than" not in text


def test_a_limit_that_the_table_exceeds_is_in_error_and_bounds_nothing(replications) -> None:
    line = replications["zone-device-v4"].lines[1]
    its = bound(line)
    assert its is not None
    assert its.of_limit is not None
    its = replace(its, of_limit=0.8, of_limit_low=0.78, found=1.2)
    assert its.most == 1.25
    assert its.excludes(2)
    beyond = replace(its, found=1.27)
    assert beyond.is_in_error
    assert beyond.most is None
    assert not beyond.excludes(2)


def test_no_bound_stands_beside_a_gain_that_exceeds_it(experiments) -> None:
    for end in ("a408", "007a", "eda0", "8a7b"):
        for one in replicated(TABLES, of(end), experiments):
            for line in one.lines:
                its = bound(line)
                if its is not None and its.most is not None and line.ratio is not None:
                    assert 1 / (line.ratio.low or line.ratio.ratio) <= its.most
                if its is not None and its.is_in_error:
                    assert "so the limit is in error" in flat(one)
