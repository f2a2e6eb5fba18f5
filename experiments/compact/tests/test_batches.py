# SPDX-License-Identifier: GPL-2.0-only
"""Where the time of a batch of compaction goes, from rows that differ in one thing."""

from collections.abc import Callable, Mapping

import pytest

from experiments.compact.rows import CompactRow
from experiments.compact.tests.world import batches
from ream.measure.sample import Sample
from ream.published import load_tables
from ream.record.receipt import Receipt
from ream.report import letter, table
from ream.report.contract import RowResult, Summary
from summary_world import summarise

Simulated = Callable[..., list[Sample]]

TABLES = load_tables()
VARIANTS = ("before", "before-again", "published", "ream")
STILL = {"launch_sd": 0.0, "round_sd": 0.0001}


def one(summary: Summary, name: str) -> RowResult:
    return next(row for row in summary.rows if row.row == name)


def times(row: CompactRow) -> Mapping[str, float]:
    """Nanoseconds of a page: a flush takes 3200 for each call, copying 400, by DMA 900."""
    assert row.batch_pages is not None
    copy = {"published": 900.0, "ream": 600.0} if row.uses_dma else {}
    whole = {}
    for name in VARIANTS:
        whole[name] = 1000.0 if name != "ream" else 800.0
        whole[name] += copy.get(name, 400.0) if row.measure == "move" else 0
        whole[name] += 3200 / row.batch_pages if row.tlb_flush == "measured" else 0
    return whole


@pytest.fixture(scope="module")
def native(simulated: Simulated, receipt: Receipt) -> Summary:
    asked = batches()
    samples = []
    for number, row in enumerate(asked.rows):
        assert isinstance(row, CompactRow)
        fills = {("memcpy", 1): 300.0} if row.measure == "move" else {}
        samples += simulated(row, times(row), fills, seed=number, **STILL)
    return summarise(
        asked,
        asked.rows,
        samples,
        TABLES,
        receipt,
        run="20261121T021500Z-compact-native-ab12",
        stage="native",
    )


def test_a_batch_is_taken_apart(native: Summary) -> None:
    assert [(one.subject, one.batch_pages) for one in native.batches] == [
        (name, pages)
        for name in ("before", "published", "ream")
        for pages in (32, 64, 128, 256, 512)
    ]
    its = next(one for one in native.batches if (one.subject, one.batch_pages) == ("ream", 32))
    assert its.page_ns == pytest.approx(1300, rel=1e-3)
    assert its.copy_ns == pytest.approx(400, rel=1e-2)
    assert its.flush_ns == pytest.approx(100, rel=1e-2)
    assert its.rest_ns == pytest.approx(800, rel=1e-3)
    assert its.dma_page_ns == pytest.approx(1400, rel=1e-3)
    assert its.call_ns == pytest.approx(32 * 1300, rel=1e-3)
    assert native.batches[0].dma_page_ns is None


def test_a_row_of_batches_says_what_a_call_takes(native: Summary) -> None:
    found = one(native, "batch-512").variants["before"]
    assert found.per_batch == pytest.approx(512 * 1400, rel=1e-3)
    assert found.columns is None
    assert native.tables == ()


def test_what_was_not_measured_is_not_known(simulated: Simulated, receipt: Receipt) -> None:
    asked = batches().only(["batch-32", "batch-64-metadata"])
    samples = []
    for row in asked.rows:
        assert isinstance(row, CompactRow)
        samples += simulated(row, times(row), {}, **STILL)
    found = summarise(
        asked, asked.rows, samples, TABLES, receipt, run="r-compact-native-ab12", stage="native"
    )
    alone = found.batches[0]
    assert (alone.batch_pages, alone.copy_ns, alone.flush_ns, alone.rest_ns) == (32, *[None] * 3)
    assert alone.page_ns == pytest.approx(1400, rel=1e-3)
    assert found.batches[1].rest_ns == pytest.approx(1000, rel=1e-3)


def test_the_limit_of_a_batch_is_a_copy_of_its_bytes(native: Summary) -> None:
    text = " ".join(table.render(native).split())
    assert "of limit = the fastest plain copy of the same bytes / variant" in text
    assert "the fastest plain copy of the same bytes" in " ".join(letter.render(native).split())
