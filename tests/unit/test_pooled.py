# SPDX-License-Identifier: GPL-2.0-only
"""Runs, not launches, are the replicates of a type of CPU."""

import math
import re
from pathlib import Path

import numpy as np
import pytest

from ream.errors import BadUsage
from ream.history.pooled import (
    REMOVED,
    RunRatio,
    between_runs,
    coverage,
    how_to_read,
    lines,
    pooled,
    ratios_in,
    read_removed,
    write_removed,
)
from ream.measure.power import smallest_effect
from ream.measure.statistics import over_launches, t_quantile
from ream.paths import CHECKOUT, RECORDS
from ream.record.record import is_record

PLACE = ("fork", "fork-64k", "published")
ZEN, XEON = "AMD EPYC (family 25 model 17)", "Intel Xeon (family 6 model 207)"


def run(
    number: int,
    ratio: float,
    *,
    cpu: str = ZEN,
    kernels: str = "6.12 a:b",
    place: tuple[str, str, str] = PLACE,
) -> RunRatio:
    ends = ratio * 0.99, ratio * 1.01
    return RunRatio(f"run-{number:02}", cpu, *place, kernels, ratio, *ends, launches=8)


def test_the_interval_of_several_runs_is_over_runs() -> None:
    ratios = [0.90, 0.96, 1.02]
    (its,) = pooled(run(number, ratio) for number, ratio in enumerate(ratios)).values()
    found, expected = its[ZEN].estimate, over_launches([math.log(ratio) for ratio in ratios])
    assert expected is not None
    assert (found.ratio, found.low, found.high) == (expected.ratio, expected.low, expected.high)
    assert its[ZEN].runs == ("run-00", "run-01", "run-02")
    assert found.low is not None
    assert found.low < 0.9 * 0.99  # a single run's interval does not reach there


def test_a_single_run_keeps_its_interval_and_is_labelled_as_one() -> None:
    found = pooled([run(1, 0.75, cpu=XEON), run(2, 0.9), run(3, 0.95)])
    said = [line for line in lines(found) if XEON in line]
    assert re.search(r"0\.750 \[0\.74. \.\. 0\.75.\]  1 run, over launches$", said[0])
    assert [line.strip().split("]  ")[1] for line in lines(found) if ZEN in line] == ["2 runs"]


def test_runs_of_other_kernels_are_no_replicates() -> None:
    found = pooled([run(1, 0.5, kernels="6.12 a:old"), run(2, 0.9), run(3, 0.95)])
    assert found[PLACE][ZEN].runs == ("run-02", "run-03")
    older = pooled([run(1, 0.5, kernels="6.12 a:old", cpu=XEON), run(2, 0.9)])
    assert (older[PLACE][XEON].earlier, older[PLACE][ZEN].earlier) == (True, False)
    assert [line.endswith(" *") for line in lines(older)] == [False, False, True]
    assert "newer kernels" in how_to_read(older)
    assert "newer kernels" not in how_to_read(found)


def test_intervals_over_runs_cover_where_those_of_one_run_do_not() -> None:
    """Runs that differ by more than their launches show."""
    draw, nr_held, tried = np.random.default_rng(1), 0, 1000
    single: list[RunRatio] = []
    for number in range(tried):
        true, place = 0.8, ("fork", f"row-{number}", "published")
        logs = math.log(true) + draw.normal(0, 0.05, 5)
        its = [run(one, math.exp(log), place=place) for one, log in enumerate(logs)]
        single += its
        found = pooled(its)[place][ZEN].estimate
        assert found.low is not None
        assert found.high is not None
        nr_held += found.low <= true <= found.high
    assert 0.93 <= nr_held / tried <= 0.97
    held, of = coverage(single)
    assert of == 5 * tried
    assert held / of < 0.3


def test_what_launches_show_is_no_difference_between_runs() -> None:
    draw, true = np.random.default_rng(2), 0.05
    error = math.log(1.01 / 0.99) / 2 / t_quantile(7)
    found = []
    for number in range(400):
        place = ("fork", f"row-{number}", "published")
        logs = draw.normal(0, math.hypot(true, error), 5)
        its = pooled(run(one, math.exp(log), place=place) for one, log in enumerate(logs))
        between = its[place][ZEN].between
        assert between is not None
        found.append(between**2)
    assert math.sqrt(sum(found) / len(found)) == pytest.approx(true, rel=0.1)
    same = pooled(run(number, 0.9) for number in range(3))[PLACE][ZEN]
    assert same.between == 0


def test_the_smallest_effect_includes_what_differs_between_runs() -> None:
    estimate = over_launches([0.01, -0.01, 0.02, -0.02, 0.0, 0.01, -0.01, 0.0])
    assert estimate is not None
    without, with_it = (smallest_effect([estimate], estimate, between) for between in (0.0, 0.05))
    assert without is not None
    assert with_it is not None
    # 90 % of a normal distribution lie below 1.28 standard deviations.
    assert with_it > math.exp(1.28 * 0.05) > without


EXAMPLE = re.compile(r"an effect of ([\d.]+) s, which is (\d+) % for an s of (0\.\d)")


def test_method_md_says_what_the_tool_prints_for_its_example() -> None:
    text = " ".join((CHECKOUT / "docs/method.md").read_text().split())
    times, share, sd = EXAMPLE.findall(text)[0]
    logs = np.array([-1.0, 1.0] * 4)
    estimate = over_launches(list(logs * float(sd) / logs.std(ddof=1)))
    assert estimate is not None
    found = smallest_effect([estimate], estimate)
    assert found is not None
    assert round(math.log(found) / float(sd), 1) == float(times)
    assert round(100 * (found - 1)) == int(share)


def test_the_spread_between_runs_is_that_of_the_shipped_records() -> None:
    found = between_runs(RECORDS, "fork", ZEN)
    assert 0.005 < found["fork-64k"] < 0.2
    assert between_runs(RECORDS, "fork", "another CPU") == {}


def test_a_table_of_removed_runs_is_read_as_it_was_written(tmp_path: Path) -> None:
    path, ratios = tmp_path / REMOVED, [run(1, 0.9), run(2, 1.1)]
    write_removed(path, ratios)
    assert list(read_removed(path)) == ratios
    path.write_text(path.read_text().replace("0.9\t", "fast\t"))
    with pytest.raises(BadUsage, match=f"{REMOVED}:2: not a ratio"):
        list(read_removed(path))


def test_removed_runs_are_not_among_those_that_were_kept() -> None:
    removed = {one.run for one in read_removed(RECORDS / REMOVED)}
    assert removed
    assert not [run for run in removed if is_record(RECORDS / run)]


MEASURED = re.compile(r"in (\d+) of (\d+) rows \((\d+) %\) on a (Zen \d)")
MODELS = {"Zen 3": "AMD EPYC (family 25 model 1)", "Zen 4": ZEN}


def test_method_md_states_the_coverage_that_the_records_have() -> None:
    text = " ".join((CHECKOUT / "docs/method.md").read_text().split())
    ratios = [one for one in ratios_in(RECORDS, "fork") if one.variant == "published"]
    stated = MEASURED.findall(text)
    assert len(stated) == len(MODELS)
    for held, of, share, name in stated:
        found = coverage([one for one in ratios if one.cpu == MODELS[name]])
        assert (int(held), int(of)) == found
        assert int(share) == round(100 * found[0] / found[1])
