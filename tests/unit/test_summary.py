# SPDX-License-Identifier: GPL-2.0-only
import dataclasses
import json
import re
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from ream.errors import BadUsage
from ream.experiment import Row, named
from ream.measure.sample import Sample
from ream.published import load_tables
from ream.record.receipt import Receipt
from ream.report import letter, table
from ream.report.contract import Summary
from ream.report.html import tables
from summary_world import summarise

EXPERIMENT = named("zone-device").resized(rounds=2)
TABLES = load_tables()
FILLS = {("movnti-8", 1): 2.7, ("rep-stosq", 1): 6.0, ("movnti-8", 2): 1.4}
CPUS = {"ream": 2}

Simulated = Callable[..., list[Sample]]


def row(name: str) -> Row:
    found = EXPERIMENT.row(name)
    assert found is not None
    return found


def times(before: float, published: float, ream: float) -> Mapping[str, float]:
    """Nanoseconds per struct page; the second copy of before is as fast as the first."""
    return {"before": before, "before-again": before, "published": published, "ream": ream}


def summary_of(rows: list[Row], samples: list[Sample], receipt: Receipt, **options: Any) -> Summary:
    return summarise(
        EXPERIMENT,
        rows,
        samples,
        TABLES,
        receipt,
        run="20261121T021500Z-zone-device-native-ab12",
        stage="native",
        **options,
    )


def test_the_numbers_are_those_of_the_samples(simulated: Simulated, receipt: Receipt) -> None:
    fsdax = row("fsdax-100GB")
    still = {"launch_sd": 0.0, "round_sd": 0.0}
    samples = simulated(fsdax, times(6.0, 3.0, 1.6), FILLS, threads=CPUS, **still)
    (found,) = summary_of([fsdax], samples, receipt).rows
    published, ream = found.variants["published"], found.variants["ream"]
    assert published.median == 26214400 * 3
    assert (published.ratio, published.low, published.high) == (0.5, 0.5, 0.5)
    assert (published.ns_per_page, published.gb_per_s) == (3.0, 21.333)  # 64 bytes in 3 ns
    assert (published.of_limit, published.limit_threads) == (0.9, 1)
    assert (ream.of_limit, ream.limit_threads, ream.threads) == (0.875, 2, 2)
    assert ream.over_published is not None
    assert ream.over_published.ratio == 0.53333
    assert found.variants["before"].of_limit == 0.45
    assert [fill.how for fill in found.limits] == ["movnti-8", "rep-stosq", "movnti-8"]
    assert published.effect == "faster"
    assert found.published_table is not None
    # 0.5 against 0.413: 0.5 / 1.15 = 0.435
    assert found.published_table.verdict == "weaker"


def test_a_cpu_thread_in_the_place_of_a_device_decides_nothing_and_the_record_says_so(
    simulated: Simulated, receipt: Receipt, monkeypatch: pytest.MonkeyPatch
) -> None:
    fsdax = row("fsdax-100GB")
    samples = simulated(fsdax, times(6.0, 6.0, 1.6), FILLS, launch_sd=0.0, round_sd=0.0001)
    (found,) = summary_of([fsdax], samples, receipt).rows
    assert found.published_table is not None
    assert (found.published_table.verdict, found.published_table.stand_in) == ("contradicts", None)
    monkeypatch.setattr(type(fsdax), "stands_in", "a CPU thread")
    (found,) = summary_of([fsdax], samples, receipt).rows
    assert found.published_table is not None
    assert found.published_table.stand_in == "a CPU thread"
    assert found.published_table.verdict == "inconclusive"


def test_what_a_second_thread_costs_is_said_beside_what_it_gains(
    simulated: Simulated, receipt: Receipt
) -> None:
    fsdax = row("fsdax-100GB")
    still = {"launch_sd": 0.001, "round_sd": 0.001}
    samples = [
        dataclasses.replace(one, cpu_ns=round(one.time_ns * (2.1 if one.threads > 1 else 1)))
        for one in simulated(fsdax, times(6.0, 6.0, 3.0), FILLS, threads=CPUS, **still)
    ]
    summary = summary_of([fsdax], samples, receipt)
    (found,) = summary.rows
    before, ream = found.variants["before"], found.variants["ream"]
    assert before.cpu_ns == pytest.approx(before.median, rel=0.001)
    assert before.cpu_over_before is None
    assert ream.cpu_over_before is not None
    assert ream.cpu_over_before.low is not None
    assert ream.cpu_over_before.ratio == pytest.approx(1.05, rel=0.01)
    assert ream.cpu_s_per_gib == pytest.approx(
        (ream.cpu_ns or 0) / 1e9 / (ream.nr_bytes / 2**30), rel=1e-3
    )
    (said,) = [note for note in found.notes if "of the CPU time" in note]
    assert said.startswith("ream, 2 CPUs: 2.0")
    assert "x faster for 1.0" in said
    for text in (table.render(summary), letter.render(summary)):
        assert re.search(r"CPU time:? +before [0-9.]+ ms, [0-9.]+ CPU s/GiB; technique", text)
    assert "ratio of CPU time" in tables.of_row(found, "limit").head


def test_cpu_time_that_is_the_rows_time_is_not_said_twice(
    simulated: Simulated, receipt: Receipt
) -> None:
    fsdax = row("fsdax-100GB")
    once = simulated(fsdax, times(6.0, 3.0, 1.5), FILLS)
    same = [dataclasses.replace(one, cpu_ns=one.time_ns) for one in once]
    for samples in (once, same):
        assert "CPU time" not in table.render(summary_of([fsdax], samples, receipt))
    assert summary_of([fsdax], once, receipt).rows[0].variants["ream"].cpu_ns is None


@pytest.mark.parametrize("seed", range(20))
def test_a_series_that_changes_nothing_reads_no_difference(
    simulated: Simulated, receipt: Receipt, seed: int
) -> None:
    fsdax = row("fsdax-100GB")
    samples = simulated(fsdax, times(6.7, 6.7, 6.7), FILLS, seed=seed, launch_sd=0.05)
    (found,) = summary_of([fsdax], samples, receipt).rows
    effects = [found.variants[name].effect for name in ("published", "ream")]
    assert set(effects) <= {"equal", "undecided"}
    assert found.published_table is not None
    assert found.published_table.verdict in ("contradicts", "inconclusive")


def test_a_variant_better_than_its_limit_is_an_error_in_the_limit(
    simulated: Simulated, receipt: Receipt
) -> None:
    fsdax = row("fsdax-100GB")
    samples = simulated(fsdax, times(6.7, 2.5, 2.68), FILLS, launch_sd=0.0, round_sd=0.001)
    (found,) = summary_of([fsdax], samples, receipt).rows
    (note,) = (note for note in found.notes if "error in the limit" in note)
    assert note == (
        "published is at 1.08 of its limit: that is an error in the limit (a better fill exists, "
        "or the fills met worse weather), not a triumph"
    )


def test_a_variant_slower_than_published_says_so_with_numbers(
    simulated: Simulated, receipt: Receipt
) -> None:
    fsdax = row("fsdax-100GB")
    samples = simulated(fsdax, times(6.0, 3.0, 3.6), FILLS, launch_sd=0.0, round_sd=0.0001)
    (found,) = summary_of([fsdax], samples, receipt).rows
    (note,) = found.notes
    assert note.startswith("ream is slower than published: 1.200 [1.")
    assert note.endswith("of its time, 3.6 ns against 3 ns per struct page")


def test_one_launch_gives_ratios_but_no_verdict(simulated: Simulated, receipt: Receipt) -> None:
    fsdax = row("fsdax-100GB")
    samples = simulated(fsdax, times(6.7, 3.0, 1.5), FILLS, launches=1)
    (found,) = summary_of([fsdax], samples, receipt).rows
    published = found.variants["published"]
    assert published.ratio == pytest.approx(0.45, rel=0.1)
    assert (published.low, published.high, published.effect) == (None, None, "undecided")
    assert found.published_table is not None
    assert found.published_table.verdict == "inconclusive"
    assert any("takes two launches" in note for note in found.notes)


def test_a_wide_floor_is_pointed_out(simulated: Simulated, receipt: Receipt) -> None:
    fsdax = row("fsdax-100GB")
    samples = simulated(fsdax, times(6.7, 3.0, 1.5), FILLS, launch_sd=0.3)
    (found,) = summary_of([fsdax], samples, receipt).rows
    assert any(note.startswith("the noise floor reaches ") for note in found.notes)


def test_a_fill_of_other_bytes_is_no_limit(simulated: Simulated, receipt: Receipt) -> None:
    fsdax = row("fsdax-100GB")
    samples = [
        dataclasses.replace(one, nr_bytes=one.nr_bytes // 2) if one.subject == "ream" else one
        for one in simulated(fsdax, times(6.7, 3.0, 1.5), FILLS)
    ]
    (found,) = summary_of([fsdax], samples, receipt).rows
    assert found.variants["ream"].of_limit is None
    (note,) = found.notes
    assert note == (
        "ream writes 838,860,800 bytes of map, before 1,677,721,600: no fill of as many ran"
    )


def test_more_cpus_than_any_fill_had_leave_the_limit_unknown(
    simulated: Simulated, receipt: Receipt
) -> None:
    fsdax = row("fsdax-100GB")
    samples = simulated(fsdax, times(6.7, 3.0, 1.5), FILLS, threads={"ream": 8})
    (found,) = summary_of([fsdax], samples, receipt).rows
    assert found.variants["ream"].of_limit is None
    assert found.notes == ("ream: no fill of the same bytes ran with 8 CPUs or more",)


def test_a_smaller_device_than_asked_for_is_told(simulated: Simulated, receipt: Receipt) -> None:
    small = row("fsdax-100GB").model_copy(update={"device_bytes": 16 << 30})
    samples = simulated(small, times(6.7, 3.0, 1.5), FILLS)
    (found,) = summary_of([small], samples, receipt).rows
    assert found.asked_params is not None
    assert found.asked_params["nr_pages"] == 26214400
    assert found.params["nr_pages"] == 4194304
    assert found.notes[0] == "the device is 16 GiB here, 100 GiB was asked for: memory is short"
    assert found.published_table is not None
    assert "100 GiB, FS_DAX" in found.published_table.differs[-1]


def test_a_before_at_its_limit_leaves_nothing_to_gain(
    simulated: Simulated, receipt: Receipt
) -> None:
    private = row("private-64GB")
    still = {"launch_sd": 0.0, "round_sd": 0.0}
    samples = simulated(private, times(2.7, 2.8, 2.8), {("movnti-8", 1): 2.7}, **still)
    (found,) = summary_of([private], samples, receipt).rows
    assert "before is at the limit already" in (found.explanation or "")
    assert "it cannot make" not in (found.explanation or "")


def test_a_users_own_variants_come_in_the_order_given(
    simulated: Simulated, receipt: Receipt
) -> None:
    fsdax = row("fsdax-100GB")
    truth = {**times(6.7, 3.0, 1.5), "mine": 2.0}
    samples = simulated(fsdax, truth, FILLS)
    names = ("before", "before-again", "mine", "published")
    (found,) = summary_of([fsdax], samples, receipt, variants=names).rows
    assert tuple(found.variants) == names


def test_an_unverified_sample_is_not_hidden(simulated: Simulated, receipt: Receipt) -> None:
    fsdax = row("fsdax-100GB")
    samples = simulated(fsdax, times(6.7, 3.0, 1.5), FILLS)
    bad = next(n for n, one in enumerate(samples) if one.subject == "published")
    samples[bad] = dataclasses.replace(samples[bad], verified=False)
    (found,) = summary_of([fsdax], samples, receipt).rows
    assert [name for name, one in found.variants.items() if not one.verified] == ["published"]


def test_an_object_read_back_is_the_same_summary(simulated: Simulated, receipt: Receipt) -> None:
    fsdax = row("fsdax-100GB")
    summary = summary_of([fsdax], simulated(fsdax, times(6.7, 3.0, 1.5), FILLS), receipt)
    text = json.dumps(summary.to_object(), allow_nan=False)
    assert Summary.from_object(json.loads(text), source="run.json") == summary


def test_fields_of_a_later_ream_are_left_alone(simulated: Simulated, receipt: Receipt) -> None:
    fsdax = row("fsdax-100GB")
    summary = summary_of([fsdax], simulated(fsdax, times(6.7, 3.0, 1.5), FILLS), receipt)
    later = summary.to_object()
    later["new"] = 1
    later["rows"][0]["new"] = {"a": []}
    assert Summary.from_object(later, source="run.json") == summary


def test_a_damaged_object_is_told_field_by_field(simulated: Simulated, receipt: Receipt) -> None:
    fsdax = row("fsdax-100GB")
    value = summary_of([fsdax], simulated(fsdax, times(6.7, 3.0, 1.5), FILLS), receipt).to_object()
    value["run"] = 7
    value["rows"][0]["variants"]["ream"]["median"] = 0
    value["rows"][0]["floor"]["ratio"] = float("nan")
    with pytest.raises(BadUsage) as refused:
        Summary.from_object(value, source="run.json")
    assert [line.split(": ")[1] for line in str(refused.value).splitlines()] == [
        "run",
        "rows.0.floor.ratio",
        "rows.0.variants.ream.median",
    ]
