# SPDX-License-Identifier: GPL-2.0-only
"""The table of migration: rates by channels and size, beside the published one."""

import json
from collections.abc import Callable, Mapping
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.migrate.rows import MigrateRow
from ream.experiment import named
from ream.measure.sample import Sample
from ream.published import load_tables
from ream.record.receipt import GuestFacts, Receipt
from ream.report import letter, table
from ream.report.contract import RowResult, Summary
from ream.stage.suit import suit_rows
from ream.width import WIDEST
from summary_world import summarise

Simulated = Callable[..., list[Sample]]

SHIPPED = named("migrate").at("native")
TABLES = load_tables()
NAMES = (
    *(f"{size}-{who}" for who in ("serial", "1-channel", "2-channels") for size in ("4k", "2m")),
    "2m-4-channels",
    "2m-8-channels",
    "64k-metadata",
    "2m-metadata",
)
STILL = {"launch_sd": 0.0, "round_sd": 0.0001}
COPIES = {("memcpy", 1): 500.0, ("movnti-8", 1): 400.0}
TWICE = {("memcpy", 2): 300.0, ("movnti-8", 2): 200.0}


def times(row: MigrateRow) -> Mapping[str, float]:
    """Nanoseconds per page: half for the copy, which channels share, half for the rest."""
    rest = {"before": 400.0, "published": 400.0, "ream": 200.0}
    if row.measure == "metadata":
        copy = dict.fromkeys(rest, 0.0)
    else:
        copy = {**dict.fromkeys(rest, 600.0 / min(row.channels or 1, 2)), "before": 600.0}
    each = {name: rest[name] + copy[name] for name in rest}
    return {"before": each["before"], "before-again": each["before"], **each}


def measured(simulated: Simulated, rows: Any, **options: Any) -> list[Sample]:
    samples = []
    for seed, row in enumerate(rows):
        fills = {} if row.measure == "metadata" else {**COPIES, **(TWICE if row.channels else {})}
        threads = dict.fromkeys(("published", "ream"), min(row.channels or 1, 2))
        samples += simulated(
            row, times(row), options.get("fills", fills), threads=threads, seed=seed, **STILL
        )
    return samples


def summary_of(
    simulated: Simulated, receipt: Receipt, *, engine_model: str | None = None, **options: Any
) -> Summary:
    """engine_model: of rows with channels, instead of their own."""
    rows = [row for row in SHIPPED.rows if row.name in NAMES]
    if engine_model is not None:
        rows = [row.model_copy(update={"engine_model": engine_model}) for row in rows]
    suited = suit_rows(rows, lambda row: row.channels, what="channel", cpus=2)
    as_run = {row.name: row for row in suited.rows}
    return summarise(
        SHIPPED,
        [as_run.get(row.name, row) for row in rows],
        measured(simulated, suited.rows, **options),
        TABLES,
        receipt,
        run="20261121T021500Z-migrate-native-ab12",
        stage="native",
        skipped=suited.skipped,
        remarks=suited.remarks,
    )


@pytest.fixture(scope="module")
def summary(simulated: Simulated, receipt: Receipt) -> Summary:
    return summary_of(simulated, receipt)


def guest(accel: Literal["kvm", "tcg"]) -> GuestFacts:
    return GuestFacts(
        qemu="7.2",
        accel=accel,
        accel_reason="for a test",
        icount=False,
        cpus=1,
        memory_bytes={},
        commands={},
        kernels={},
    )


def one(summary: Summary, name: str) -> RowResult:
    return next(row for row in summary.rows if row.row == name)


def test_rates_are_decimal_bytes_of_memory_a_nanosecond(summary: Summary) -> None:
    serial = one(summary, "4k-serial")
    assert (serial.unit, serial.better, serial.bytes_of) == ("ns", "lower", "memory")
    assert serial.variants["before"].gb_per_s == pytest.approx(4.096, rel=1e-3)
    assert serial.variants["before"].ns_per_page == pytest.approx(1000, rel=1e-3)
    assert serial.published_table is None
    assert serial.limit is not None
    assert serial.limit.ns_per_page == pytest.approx(400, rel=1e-3)


def test_a_published_rate_becomes_a_ratio_of_times(summary: Summary) -> None:
    """14.4 GB/s with 2 channels against 10.88 without; here 0.7 of the time."""
    compared = one(summary, "2m-2-channels").published_table
    assert compared is not None
    assert (compared.before, compared.published, compared.unit) == (10.88, 14.4, "GB/s")
    assert (compared.better, compared.ratio) == ("higher", 0.75556)
    assert (compared.gb_per_s, compared.verdict) == (14.4, "modelled")
    assert "about 14.4 GB/s there, 5.85 here" in compared.differs
    slower = one(summary, "4k-1-channel").published_table
    assert slower is not None
    assert slower.ratio == pytest.approx(3.55 / 2.63, rel=1e-4)
    assert slower.verdict == "modelled"


def test_a_verdict_on_a_device_names_its_model_and_threads_get_none(
    simulated: Simulated, receipt: Receipt, summary: Summary
) -> None:
    modelled = one(summary, "4k-1-channel")
    assert modelled.params["engine_model"] == "ptdma-v4-grid"
    assert modelled.published_table is not None
    assert modelled.published_table.stand_in is None
    said = " ".join(table.render(summary).split())
    assert (
        "verdict MODELLED: the device is a model here (ptdma-v4-grid: 570 ns a descriptor, 6.18 "
        "GB/s a channel), so the line shows what the software around a device with these numbers "
        "allows, and nothing about the device itself"
    ) in said
    by_threads = summary_of(simulated, receipt, engine_model="none")
    threads = one(by_threads, "4k-1-channel")
    assert threads.params["engine_model"] == "none"
    assert threads.published_table is not None
    assert threads.published_table.stand_in == "a CPU thread"
    assert threads.published_table.verdict == "inconclusive"
    assert "MODELLED" not in table.render(by_threads)


def test_channels_that_share_cpus_get_no_verdict_and_nothing_is_explained(
    summary: Summary,
) -> None:
    crowded = one(summary, "2m-4-channels")
    assert crowded.published_table is not None
    assert crowded.published_table.verdict == "not-run"
    assert crowded.published_table.reason == "oversubscribed: 4 channels shared 2 CPUs"
    assert crowded.explanation is None


@pytest.mark.parametrize(
    ("others_pct", "verdict"), [(None, "inconclusive"), (20.0, "inconclusive"), (30.0, "not-run")]
)
def test_channels_need_idle_cpus(
    simulated: Simulated, receipt: Receipt, others_pct: float | None, verdict: str
) -> None:
    busy = receipt.conditions.model_copy(update={"others_pct": others_pct})
    receipt = receipt.model_copy(update={"conditions": busy})
    found = summary_of(simulated, receipt, engine_model="none")
    compared = one(found, "2m-2-channels").published_table
    assert compared is not None
    assert compared.verdict == verdict
    # A model has no threads.
    modelled = one(summary_of(simulated, receipt), "2m-2-channels").published_table
    assert modelled is not None
    assert modelled.verdict == "modelled"
    if verdict == "not-run":
        assert compared.reason == (
            "oversubscribed: 2 CPUs wanted, and others left 1.4 of 2 idle: stop them and run again"
        )


def test_channels_need_cpus_of_their_guest(simulated: Simulated, receipt: Receipt) -> None:
    receipt = receipt.model_copy(update={"guest": guest(accel="kvm")})
    assert summary_of(simulated, receipt).grids
    found = summary_of(simulated, receipt, engine_model="none")
    compared = one(found, "2m-2-channels").published_table
    assert compared is not None
    assert compared.reason == "oversubscribed: 2 CPUs wanted, 1 there are"


def test_metadata_are_told_by_the_entry_and_beside_published(summary: Summary) -> None:
    by_ptes, by_pmd = one(summary, "64k-metadata"), one(summary, "2m-metadata")
    assert by_ptes.variants["ream"].per_entry == pytest.approx(200, rel=1e-3)
    assert by_pmd.variants["ream"].per_entry == pytest.approx(200 * 512, rel=1e-3)
    (note,) = by_ptes.notes
    assert note.startswith("ream takes 200 ns for each PTE, published 400: 0.500 [0.")
    (note,) = by_pmd.notes
    assert note.startswith("ream takes 1.02e+05 ns for each PMD, published 2.05e+05: 0.500 [0.")
    assert one(summary, "4k-serial").variants["ream"].per_entry is None


def test_a_copy_that_is_no_faster_than_before_is_told_as_what_forbids_a_gain(
    simulated: Simulated, receipt: Receipt, summary: Summary
) -> None:
    assert not any("forbids" in note for row in summary.rows for note in row.notes)
    slow = {("memcpy", 1): 900.0, ("memcpy", 2): 800.0, ("movnti-8", 2): 820.0}
    found = summary_of(simulated, receipt, fills=slow)
    said = {row.row: [note for note in row.notes if "forbids" in note] for row in found.rows}
    assert said["2m-2-channels"] == [
        (
            "the bandwidth of copying forbids 1.3x here: the fastest copy of the same bytes "
            "(memcpy, 2 CPUs) alone is 1.25x as fast as before"
        )
    ]
    (with_one,) = said["2m-1-channel"]
    assert with_one.endswith("(memcpy, 1 CPU) alone is 1.11x as fast as before")
    assert said["2m-serial"] == []


GRIDS = """\
GB/s by size of folio, higher is better, here
                                  4K      2M
before, serial                  4.10    4.10
technique, offloading off       4.10    4.10
technique, 1 channel            4.10    4.10
technique, 2 channels           5.85    5.85
technique, 4 channels              -    5.85
ours, offloading off            5.12    5.12
ours, 1 channel                 5.12    5.12
ours, 2 channels                8.19    8.19
ours, 4 channels                   -    8.19
  note      technique, 4 channels; ours, 4 channels: oversubscribed: 4 channels shared 2 CPUs
  note      not run: 8 channels on 2 CPUs

GB/s by size of folio, higher is better, in migrate-offload-v4 (Shivank Garg, 2026-03-09; AMD Zen 3
EPYC, 2 sockets, 32 cores, SMT, 1 node per socket, v7.0-rc2, DVFS performance, PTDMA)
                                  4K     16K     64K    256K      1M      2M
before, serial                  3.55    5.66    6.16    7.12    6.93   10.88
published, 1 channel            2.63    2.92    3.16    4.75    7.38   12.64
published, 2 channels           3.20    4.68    5.16    7.42    8.05   14.40
published, 4 channels           3.78    6.45    7.36    9.70   11.68   27.16
published, 8 channels           4.32    8.20    9.45   12.99   13.18   46.17
published, 12 channels          4.35    8.80   11.65   15.46   14.69   60.89
published, 16 channels          4.40    9.25   11.02   13.56   18.04   66.86
"""

METADATA = """\
64k-metadata: unmap and remap 256 MiB, folios of 64 KiB, nothing is copied
                          ms    ratio [low .. high]  effect                       ns/PTE   GB/s CPUs
  before               26.21                      1                               399.98"""


def test_the_table_ends_with_both_grids(summary: Summary) -> None:
    text = table.render(summary)
    assert text.endswith(f"\n\n{GRIDS}")
    assert METADATA in text
    assert "10.88 (0.19) -> 14.4 (0.1) GB/s, ratio of\n            times 0.756" in text
    assert all(len(line) <= WIDEST for line in text.splitlines())


def test_rows_that_did_not_run_leave_their_published_numbers_to_the_grid(
    summary: Summary,
) -> None:
    text = " ".join(table.render(summary).split())
    assert (
        "2m-8-channels: move 256 MiB, folios of 2 MiB, 8 channels, engine modelled as ptdma-v4-grid"
        " (570 ns a descriptor, 6.18 GB/s a channel) note not run: 8 channels on 2 CPUs"
    ) in text


def test_the_letter_has_the_grids_in_its_width(summary: Summary) -> None:
    text = letter.render(summary)
    assert "technique, 4 channels           -   5.85\n" in text
    assert "published, 16 channels       4.40   9.25  11.02  13.56  18.04  66.86\n" in text
    assert "Note: not run: 8 channels on 2 CPUs.\n" in text
    assert all(len(line) <= letter.WIDTH for line in text.splitlines())


def test_the_grids_are_in_the_object_and_come_back(summary: Summary) -> None:
    value = json.loads(json.dumps(summary.to_object()))
    own, published = value["grids"]
    assert (own["unit"], own["better"], own["id"]) == ("GB/s", "higher", None)
    assert own["lines"][0]["subject"] == "before"
    assert own["lines"][0]["cells"] == pytest.approx([4.096, 4.096], rel=1e-3)
    assert (published["id"], len(published["lines"])) == ("migrate-offload-v4", 7)
    assert published["lines"][-1]["sd"][-1] == 0.81
    again = Summary.from_object(value, source="run.json")
    assert table.render(again) == table.render(summary)


def test_a_long_name_of_a_variant_has_a_line_of_its_own(summary: Summary) -> None:
    value = summary.to_object()
    for grid in value["grids"]:
        grid["lines"] = grid["lines"][:1]
        grid["lines"][0]["subject"] = "a-series-of-patches-of-somebody-v12"
    text = table.render(Summary.from_object(value, source="run.json"))
    assert f"\na-series-of-patches-of-somebody-v12, offloading off\n{'4.10':>36}    4.10\n" in text


@given(
    text=st.text(max_size=300),
    number=st.floats(allow_nan=False, allow_infinity=False),
    nr_columns=st.integers(0, 40),
)
def test_no_damage_to_a_grid_breaks_a_report(
    summary: Summary, text: str, number: float, nr_columns: int
) -> None:
    line = {"subject": text, "channels": 3, "cells": [number, None] * nr_columns, "note": text}
    grid = {"unit": text, "better": text, "columns": [text] * nr_columns, "lines": [line, line]}
    named = {**grid, "source": text, "id": text, "notes": [text]}
    value = {**summary.to_object(), "rows": [], "grids": [grid, named]}
    damaged = Summary.from_object(value, source="run.json")
    assert all(len(line) <= WIDEST for line in table.render(damaged).splitlines())
    assert all(len(line) <= letter.WIDTH for line in letter.render(damaged).splitlines())


def test_an_emulated_guest_has_no_rates(simulated: Simulated, receipt: Receipt) -> None:
    emulated = receipt.model_copy(update={"guest": guest(accel="tcg")})
    assert summary_of(simulated, emulated).grids == ()


def test_a_row_of_its_own_is_a_grid_of_one_cell(simulated: Simulated, receipt: Receipt) -> None:
    row = next(row for row in SHIPPED.rows if row.name == "64k-serial")
    found = summarise(
        SHIPPED,
        [row],
        measured(simulated, [row]),
        TABLES,
        receipt,
        run="run",
        stage="native",
    )
    assert found.grids[0].columns == ("64K",)
    assert [len(line.cells) for line in found.grids[0].lines] == [1, 1, 1]
