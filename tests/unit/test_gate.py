# SPDX-License-Identifier: GPL-2.0-only
"""The gate: how often it fails where nothing changed, and where something did."""

import math
import random
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from history_world import kernel, written
from ream.errors import BadUsage
from ream.gate import words
from ream.gate.gate import gate, judge, parse_percent
from ream.measure.across import RatioChange, change
from ream.measure.statistics import Estimate, over_launches
from ream.report import junit, ktap
from ream.report.case import Case

LIMIT = 5.0


def drawn(draw: random.Random, ratio: float, sd: float, launches: int = 8) -> Estimate:
    found = over_launches([draw.gauss(math.log(ratio), sd) for _ in range(launches)])
    assert found is not None
    return found


def share(word: str, truth: float, *, sd: float, nr_times: int = 600) -> float:
    """Share of simulated pairs of runs judged with this word when the truth changes this much."""
    draw = random.Random(f"{truth} {sd}")
    found = 0
    for _ in range(nr_times):
        now, base = drawn(draw, 0.4 * truth, sd), drawn(draw, 0.4, sd)
        found += judge(change(now, base), LIMIT)[0] == word
    return found / nr_times


@pytest.mark.parametrize("sd", [0.005, 0.02, 0.05, 0.2])
def test_where_nothing_changed_the_gate_hardly_ever_fails(sd: float) -> None:
    assert share("fail", 1.0, sd=sd) < 0.025


def test_where_the_truth_is_the_limit_one_in_forty_fails() -> None:
    assert share("fail", 1.05, sd=0.03) < 0.04


def test_a_regression_well_beyond_the_limit_nearly_always_fails() -> None:
    assert share("fail", 1.15, sd=0.02) > 0.99
    assert share("pass", 1.15, sd=0.02) == 0


def test_with_little_noise_no_change_passes_and_with_much_it_is_inconclusive() -> None:
    assert share("pass", 1.0, sd=0.01) > 0.99
    assert share("inconclusive", 1.0, sd=0.2) > 0.9


@given(st.floats(0.2, 5), st.floats(0, 0.5), st.floats(0, 50))
def test_a_verdict_is_what_the_interval_says(ratio: float, half: float, limit_pct: float) -> None:
    low, high = ratio * math.exp(-half), ratio * math.exp(half)
    word, _ = judge(RatioChange(ratio, low, high), limit_pct)
    limit = 1 + limit_pct / 100
    if word == "fail":
        assert ratio > limit
        assert low > limit
    elif word == "pass":
        assert high <= limit * 1.0001
    else:
        assert low <= limit * 1.0001
        assert high > limit


def test_exactly_the_limit_is_allowed() -> None:
    assert judge(RatioChange(1.05, 1.05, 1.05), LIMIT)[0] == "pass"


def test_without_an_interval_nothing_is_decided() -> None:
    word, reason = judge(RatioChange(2.0, None, None), LIMIT)
    assert word == "inconclusive"
    assert "two launches" in reason


@pytest.mark.parametrize(
    ("text", "value"),
    [("5%", 5), ("5", 5), (" 2.5 % ", 2.5), ("0", 0), ("0.5%", 0.5), (".5%", 0.5)],
)
def test_a_limit_is_read_as_per_cent(text: str, value: float) -> None:
    assert parse_percent(text) == value


@pytest.mark.parametrize("text", ["", "5 per cent", "-5%", "0.05", "nan%", "1e3", "9999%"])
def test_a_limit_that_is_none_or_may_mean_two_things_is_refused(text: str) -> None:
    with pytest.raises(BadUsage, match=r"--max-regression .*"):
        parse_percent(text)


def test_a_run_as_fast_as_its_baseline_passes(tmp_path: Path) -> None:
    base, now = written(tmp_path, 1), written(tmp_path, 2)
    found = gate(now, base, LIMIT)
    assert found.word == "pass"
    assert [case.name for case in found.cases] == [
        "fsdax.technique",
        "fsdax.ours",
        "devdax.technique",
        "devdax.ours",
    ]
    assert 0 < found.by_chance < 0.025 * 4


def test_one_failing_row_fails_whatever_the_others_are(tmp_path: Path) -> None:
    base = written(tmp_path, 1, truth={"published": 0.6, "ream": 0.4, "noisy": 1.0})
    now = written(tmp_path, 2, truth={"published": 0.6, "ream": 0.5, "noisy": 1.0}, sd=0.02)
    found = gate(now, base, LIMIT)
    assert found.word == "fail"
    assert {case.variant for case in found.cases if case.word == "fail"} == {"ream"}
    assert gate(now, base, LIMIT, variants=["published"]).word != "fail"
    assert gate(now, base, 40).word != "fail"


def test_a_noisy_run_is_inconclusive_and_never_a_pass(tmp_path: Path) -> None:
    base, now = written(tmp_path, 1), written(tmp_path, 2, sd=0.5)
    assert gate(now, base, LIMIT).word == "inconclusive"


def test_a_row_that_was_asked_for_and_did_not_run_is_no_pass(tmp_path: Path) -> None:
    base, now = written(tmp_path, 1), written(tmp_path, 2)
    lines = (now.path / "samples.jsonl").read_text().splitlines(keepends=True)
    (now.path / "samples.jsonl").write_text("".join(line for line in lines if "devdax" not in line))
    for row in now.run["rows"]:
        if row["row"] == "devdax":
            row |= {"variants": {}, "skipped": "too little memory"}
    found = gate(now, base, LIMIT)
    lost = [case for case in found.cases if case.row == "devdax"]
    assert {case.word for case in lost} == {"inconclusive"}
    assert {case.reason for case in lost} == {"not measured in this run: too little memory"}
    assert found.word == "inconclusive"


def test_counts_of_instructions_are_compared_exactly(tmp_path: Path) -> None:
    base = written(tmp_path, 1, launches=1, sd=0, unit="instructions")
    same = written(tmp_path, 2, launches=1, sd=0, unit="instructions")
    more = written(
        tmp_path, 3, launches=1, sd=0, unit="instructions", truth={"published": 0.6, "ream": 0.43}
    )
    assert gate(same, base, 0).word == "pass"
    found = gate(more, base, LIMIT)
    assert found.word == "fail"
    assert found.by_chance == 0
    assert "counts do not fail by chance" in words.text(found)


def test_unlike_runs_are_judged_only_by_force(tmp_path: Path) -> None:
    base = written(tmp_path, 1)
    other = {"benchmark": "ffff", "kernel": kernel(compiler="gcc 14")}
    now = written(tmp_path, 2, receipt=other)
    with pytest.raises(BadUsage, match="(?s)benchmark: .*--unlike judges them all the same"):
        gate(now, base, LIMIT)
    with pytest.raises(BadUsage, match="A benchmark id is a digest of ream's files"):
        gate(now, base, LIMIT)
    text = words.text(gate(now, base, LIMIT, unlike=True))
    ids = "(ids: 0123456789ab in the baseline, ffff now)"
    flat = " ".join(text.split())
    assert f"UNLIKE benchmark: ream's own code that measures has changed {ids}" in flat
    assert "To rule that out, measure both again with one version of ream." in flat
    assert "differs   compiler: gcc 12 in the baseline, gcc 14 now" in text


def test_a_run_is_not_its_own_baseline_and_a_variant_must_be_there(tmp_path: Path) -> None:
    base, now = written(tmp_path, 1), written(tmp_path, 2)
    with pytest.raises(BadUsage, match="its own baseline"):
        gate(base, base, LIMIT)
    with pytest.raises(BadUsage, match="neither run has it; there is before-again, technique"):
        gate(now, base, LIMIT, variants=["mine"])


# --- KTAP and JUnit ----------------------------------------------------------------------

CASES = (
    Case("fork-64k", "ream", "pass", "-1 %", (("run_ratio", "0.4"),)),
    Case("fork-64k", "published", "fail", "+20 %"),
    Case("fork-2m", "ream", "skip", "not in the baseline"),
    Case("fork #2\n", "my\x1b<é>&", "pass", "a \x00 reason"),
)


def test_ktap_has_a_version_a_plan_and_a_verdict_for_each_case() -> None:
    lines = ktap.render(CASES, ["a comment"]).splitlines()
    assert lines[:3] == ["KTAP version 1", "1..4", "# ream: a comment"]
    verdicts = [line for line in lines if not line.startswith(("#", "KTAP", "1.."))]
    assert verdicts == [
        "ok 1 fork-64k.ream",
        "not ok 2 fork-64k.published",
        "not ok 3 fork-2m.ream # SKIP not in the baseline",
        "ok 4 fork _2 .my <\\xe9>&",
    ]
    assert "# ream: fork-64k.ream: run_ratio=0.4" in lines


def test_the_kernels_own_parser_reads_our_ktap(tmp_path: Path) -> None:
    found = sorted(Path.home().glob(".cache/ream/tree/*/linux/tools/testing/kunit/kunit.py"))
    if not found:
        pytest.skip("no kernel tree in ~/.cache/ream: `ream run` puts one there")
    (tmp_path / "gate.ktap").write_text(ktap.render(CASES))
    process = subprocess.run(
        [sys.executable, found[0], "parse", tmp_path / "gate.ktap"],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    said = process.stdout + process.stderr
    assert "Testing complete. Ran 4 tests: passed: 2, failed: 1, skipped: 1" in said
    assert "rror" not in said.replace("errors: 0", "")


def test_junit_is_xml_with_what_failed_and_what_was_skipped() -> None:
    root = ET.fromstring(junit.render("ream.fork", CASES, {"run": "<1>"}))  # noqa: S314, our own
    (suite,) = root.findall("testsuite")
    counts = {name: suite.get(name) for name in ("tests", "failures", "errors", "skipped")}
    assert counts == {"tests": "4", "failures": "1", "errors": "0", "skipped": "1"}
    cases = suite.findall("testcase")
    assert [case.get("classname") for case in cases][:3] == [
        "ream.fork.fork-64k",
        "ream.fork.fork-64k",
        "ream.fork.fork-2m",
    ]
    assert [case.find("failure") is not None for case in cases] == [False, True, False, False]
    skipped = cases[2].find("skipped")
    assert skipped is not None
    assert skipped.get("message") == "not in the baseline"
    (said,) = suite.findall("properties/property")
    assert (said.get("name"), said.get("value")) == ("run", "<1>")
