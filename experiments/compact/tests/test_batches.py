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


BATCHES = """\
where the time of a page goes, in ns, by pages of a call: whole with
flushes where these are measured; copying; flushing; the rest; whole by
DMA without flushes. Of a call: how long its first page cannot be used at
most
                   a page     copy    flush     rest   by DMA  a call, us
before
  32               1500.0    399.9    100.1   1000.0        -        48.0
  64               1450.0    400.0     50.0   1000.0        -        92.8
  128              1425.2    400.0     25.3    999.9        -       182.4
  256              1412.6    399.8     12.7   1000.1        -       361.6
  512              1406.3    400.1      6.2   1000.0        -       720.0
published
  32               1500.1    399.8    100.3   1000.0   1900.0        48.0
  64               1450.0    399.9     50.1   1000.0   1900.1        92.8
  128              1425.1    400.0     25.2    999.9   1900.1       182.4
  256              1412.6    399.7     12.8   1000.1   1900.0       361.6
  512              1406.3    400.0      6.3   1000.0   1900.0       720.0
ream
  32               1300.0    399.8    100.1    800.1   1400.0        41.6
  64               1250.0    399.8     50.1    800.1   1400.1        80.0
  128              1225.2    399.8     25.4    800.0   1400.1       156.8
  256              1212.6    399.9     12.7    800.0   1399.9       310.4
  512              1206.3    400.1      6.2    800.0   1399.9       617.6
"""


def test_the_batches_are_in_table_and_letter(native: Summary) -> None:
    for text in (table.render(native), letter.render(native)):
        assert BATCHES in text
    assert max(map(len, letter.render(native).splitlines())) < 75


def test_the_limit_of_a_batch_is_a_copy_of_its_bytes(native: Summary) -> None:
    text = " ".join(table.render(native).split())
    assert "of limit = the fastest plain copy of the same bytes / variant" in text
    assert "the fastest plain copy of the same bytes" in " ".join(letter.render(native).split())
