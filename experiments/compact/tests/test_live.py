# SPDX-License-Identifier: GPL-2.0-only
"""The live stage of compact before it takes anything: how much memory, which settings, or why not.

And after it: what is made of the workload's words.
"""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.compact.live import (
    HUGE_BYTES,
    MARGIN_BYTES,
    PROACTIVE,
    PSI,
    LiveCompactSample,
    MemoryPlan,
    background_settings,
    free_in_blocks,
    measure_compactions,
    plan_here,
    plan_memory,
    read_sample,
    remarks_of,
    reserve_bytes,
    taken_of,
    wanted_settings,
    why_not_compact,
)
from experiments.compact.rows import CompactRow
from ream.errors import BadUsage, CannotRunHere, ReamError
from ream.stage.live import THP, Visits

GIB = 1 << 30
BUDDYINFO = """\
Node 0, zone      DMA      0      0      0      0      0      0      0      0      1      1      3
Node 0, zone    DMA32      5      4      3      2      1      0      0      0      0      1      2
Node 0, zone   Normal    100     90     80     70     60     50     40     30     20     10   1000
"""
FREE_BLOCKS = (1 + 10) * HUGE_BYTES + (2 + 1000) * 2 * HUGE_BYTES

SAID: dict[str, Any] = {
    "asked": 4,
    "allocated": 3,
    "missed": 1,
    "stalled": 3,
    "compacted": 2,
    "time_ns": 9_000_000,
    "longest_ns": 5_000_000,
    "elapsed_ns": 9_500_000,
    "plain_ns": 250_000,
    "user_ns": 1000,
    "system_ns": 8_000_000,
    "hog_ns": None,
    "machine": {"user_ns": 10_000_000, "system_ns": 20_000_000, "idle_ns": 0, "steal_ns": 0},
    "hog_iterations": None,
    "holes_bytes": 64 << 20,
    "ballast_bytes": 1 << 30,
    "least_available_bytes": 2 << 30,
    "resident_pages": 8192,
    "wrong_words": 0,
    "counters": {"compact_stall": 3, "thp_fault_alloc": 5},
}


def machine(
    root: Path,
    *,
    enabled: str = "always [madvise] never",
    defrag: str = "always defer defer+madvise [madvise] never",
    of_size: str | None = "always [inherit] madvise never",
    psi: bool = True,
    available: int = 8 * GIB,
) -> Path:
    """A machine's files."""
    for path, text in {
        "/proc/meminfo": f"MemTotal: {20 << 20} kB\nMemAvailable: {available >> 10} kB\n",
        "/proc/buddyinfo": BUDDYINFO,
        PSI: "some avg10=0.00 total=1\n" if psi else None,
        PROACTIVE: "20\n",
        f"{THP}/enabled": f"{enabled}\n",
        f"{THP}/defrag": f"{defrag}\n",
        f"{THP}/hugepages-2048kB/enabled": of_size and f"{of_size}\n",
    }.items():
        if text is not None:
            place = root / path.lstrip("/")
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text)
    return root


def sample(**fields: Any) -> LiveCompactSample:
    return LiveCompactSample.model_validate({**SAID, **fields})


def test_what_is_free_in_huge_pages_is_counted_but_for_the_dma_zone(tmp_path: Path) -> None:
    assert free_in_blocks(machine(tmp_path)) == FREE_BLOCKS


def test_a_tenth_stays_and_at_least_a_gibibyte(tmp_path: Path) -> None:
    assert reserve_bytes(machine(tmp_path)) == 2 * GIB
    (tmp_path / "proc/meminfo").write_text(f"MemTotal: {4 << 20} kB\n")
    assert reserve_bytes(tmp_path) == GIB


def test_where_much_is_available_the_holes_are_as_asked_for() -> None:
    plan = plan_memory(256, GIB, available=20 * GIB, free_blocks=12 * GIB, reserve=2 * GIB)
    assert plan == MemoryPlan(GIB, 11 * GIB, GIB // 2, 20 * GIB, 2 * GIB)
    assert plan.taken == 12 * GIB
    assert plan.left == 8 * GIB
    assert str(plan).startswith("takes 12 GiB of the 20 GiB of memory that are available")
    assert "less than 2 GiB" in str(plan)


def test_where_nearly_all_is_free_in_huge_pages_more_is_made_full_of_holes() -> None:
    plan = plan_memory(256, GIB, available=20 * GIB, free_blocks=19 * GIB, reserve=2 * GIB)
    assert plan.holes > 2 * (2 * GIB - GIB)
    assert 0 <= plan.left - (plan.reserve + MARGIN_BYTES) < 2 * HUGE_BYTES


def test_what_does_not_fit_is_refused_with_the_figures() -> None:
    with pytest.raises(
        CannotRunHere, match=r"4 GiB in free.* of holes; of the 16 GiB .* 2 GiB are"
    ):
        plan_memory(256, 4 * GIB, available=16 * GIB, free_blocks=2 * GIB, reserve=GIB)
    with pytest.raises(CannotRunHere, match="so that 1 GiB stay available; .*ask for fewer"):
        plan_memory(256, GIB, available=2 * GIB, free_blocks=2 * GIB, reserve=GIB)


@given(
    nr_huge=st.integers(1, 1 << 12),
    holes=st.integers(1, 1 << 12).map(lambda nr: nr * HUGE_BYTES),
    free_blocks=st.integers(0, 1 << 15).map(lambda nr: nr * HUGE_BYTES),
    more=st.integers(0, 1 << 35),
    reserve=st.integers(1, 1 << 34),
)
def test_a_plan_leaves_the_reserve(
    nr_huge: int, holes: int, free_blocks: int, more: int, reserve: int
) -> None:
    """It leaves no free huge page, either: those become ballast or are filled with holes."""
    try:
        plan = plan_memory(
            nr_huge, holes, available=free_blocks + more, free_blocks=free_blocks, reserve=reserve
        )
    except CannotRunHere:
        return
    assert plan.left >= reserve
    assert plan.holes >= holes
    assert plan.holes % HUGE_BYTES == 0
    assert plan.holes + plan.ballast == free_blocks


def test_a_machine_that_allows_it_keeps_its_settings(tmp_path: Path) -> None:
    assert wanted_settings(machine(tmp_path)) == ()
    assert wanted_settings(machine(tmp_path, of_size=None)) == ()
    assert wanted_settings(machine(tmp_path, enabled="[always] madvise never")) == ()
    assert wanted_settings(machine(tmp_path, defrag="always defer [defer+madvise] never")) == ()


@pytest.mark.parametrize(
    ("files", "setting"),
    [
        ({"enabled": "always madvise [never]"}, "enabled"),
        ({"of_size": "always inherit madvise [never]"}, "hugepages-2048kB/enabled"),
        ({"defrag": "always defer defer+madvise madvise [never]"}, "defrag"),
        ({"defrag": "always [defer] defer+madvise madvise never"}, "defrag"),
    ],
)
def test_only_what_forbids_it_is_changed_and_that_is_roots_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: dict[str, str], setting: str
) -> None:
    root = machine(tmp_path, **files)  # type: ignore[arg-type]
    assert [(it.path, it.value) for it in wanted_settings(root)] == [
        (f"{THP}/{setting}", "madvise")
    ]
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    reason = why_not_compact(4, 64 << 20, root=root)
    assert reason == f"only root can do what it takes: echo madvise > {THP}/{setting}"


def test_a_size_that_is_enabled_by_itself_needs_no_top_level(tmp_path: Path) -> None:
    of_size = "always inherit [madvise] never"
    assert (
        wanted_settings(machine(tmp_path, enabled="always madvise [never]", of_size=of_size)) == ()
    )


def test_compaction_in_the_background_is_off_where_we_may(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = machine(tmp_path)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert [str(it) for it in background_settings(root)] == [f"echo 0 > {PROACTIVE}"]
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert background_settings(root) == ()
    (root / PROACTIVE.lstrip("/")).write_text("0\n")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert background_settings(root) == ()


def test_what_cannot_be_measured_here_is_said(tmp_path: Path) -> None:
    root = machine(tmp_path)
    assert why_not_compact(4, 64 << 20, root=root) is None
    assert "ask for fewer" in str(why_not_compact(4096, 16 * GIB, root=root))
    assert "stay available" in str(why_not_compact(4, 64 << 20, 7 * GIB, root=root))
    (root / PSI.lstrip("/")).unlink()
    assert PSI in str(why_not_compact(4, 64 << 20, root=root))
    (root / THP.lstrip("/") / "defrag").unlink()
    assert "no transparent huge pages" in str(why_not_compact(4, 64 << 20, root=root))
    (root / "proc/buddyinfo").unlink()
    assert "/proc/buddyinfo" in str(why_not_compact(4, 64 << 20, root=root))


def test_a_plan_is_of_the_machine_as_it_is(tmp_path: Path) -> None:
    plan = plan_here(4, 64 << 20, None, machine(tmp_path))
    assert plan == MemoryPlan(64 << 20, FREE_BLOCKS - (64 << 20), 8 << 20, 8 * GIB, 2 * GIB)


@pytest.mark.parametrize(("nr_huge", "nr_bytes"), [(0, 64 << 20), (4, 0), (4, 4096), (-1, 2 << 20)])
def test_what_cannot_be_asked_for_is_refused(tmp_path: Path, nr_huge: int, nr_bytes: int) -> None:
    samples = measure_compactions(
        ["baseline"],
        nr_huge=nr_huge,
        buffer_bytes=nr_bytes,
        reserve=None,
        rounds=1,
        visits=Visits(1, 1, tmp_path, print),
    )
    with pytest.raises(BadUsage, match="more than 0"):
        next(samples)


def test_the_sample_is_found_among_the_workloads_words() -> None:
    lines = ({"hello": {}}, {"ballast": {"bytes": 4}}, {"compact": SAID}, {"end": {"ok": True}})
    assert read_sample("\n".join(map(json.dumps, lines))) == sample()
    with pytest.raises(ReamError, match="gave no sample"):
        read_sample(json.dumps({"end": {"ok": True}}))
    with pytest.raises(ReamError, match="asked"):
        read_sample(json.dumps({"compact": {**SAID, "asked": "many"}}))


def test_remarks_say_where_huge_pages_came_from_and_what_was_held() -> None:
    held = "held at most: {} MiB as ballast, 32 MiB of 64 full of holes; at least {} MiB stayed"
    assert list(remarks_of([sample()])) == [
        "2 of 3 huge pages came from compaction",
        "huge pages that were free in one piece: 1",
        "faults that gave small pages: 1",
        "a fault that gave a free huge page took 250 us on average",
        held.format("1,024", "2,048") + " available",
        "counters are the system's: 2 huge pages were given to others meanwhile",
    ]
    plain = sample(missed=0, compacted=3, plain_ns=0, counters={"thp_fault_alloc": 3})
    assert next(remarks_of([plain])) == "3 of 3 huge pages came from compaction"
    more = sample(ballast_bytes=2 << 30, least_available_bytes=1 << 30)
    both = list(remarks_of([sample(), more, plain]))
    assert both[0] == "7 of 9 huge pages came from compaction"
    assert both[3] == "a fault that gave a free huge page took 250 us on average"
    assert both[4] == held.format("2,048", "1,024") + " available"
    scanned = sample(counters={"compact_daemon_migrate_scanned": 1234})
    assert "background scanned 1,234 pages" in list(remarks_of([scanned]))[-1]


def test_a_record_has_what_the_workload_said() -> None:
    row = CompactRow.model_validate(
        {"name": "live-busy", "stage": "live", "mode": "busy-baseline", "nr_huge": 4}
    )
    said = sample(hog_ns=7_000_000, hog_iterations=99)
    taken = taken_of(said, row, launch=1, round_number=2)
    assert taken.sample.verified
    assert (taken.sample.launch, taken.sample.round) == (1, 2)
    assert taken.sample.time_ns == 9_000_000
    assert taken.sample.nr_bytes == 3 * HUGE_BYTES
    beside = taken.sample.beside
    assert set(taken.extra) == {"page_copy_ns", "idle_ns"}
    assert beside["user_ns"] == 7_001_000
    assert beside["system_ns"] == 8_000_000
    assert taken.sample.cpu_ns == 30_000_000
    assert beside["hog_iterations"] == 99
    assert beside["ballast"] == 512
    assert beside["thp_fault_alloc"] == 5
