# SPDX-License-Identifier: GPL-2.0-only
"""What is said of compaction: the published columns, and where the time of a batch goes."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.compact.columns import DECLARED, CpuTimes, known
from experiments.compact.rows import Compact, CompactRow
from experiments.compact.tests.world import SHIPPED, lines
from ream.errors import BadUsage
from ream.experiment import RUNNING
from ream.measure.sample import Sample
from ream.published import load_tables
from ream.record.receipt import GuestFacts, GuestKind, Receipt
from ream.report import letter, table
from ream.report.columns import columns_of
from ream.report.contract import RowResult, Summary
from summary_world import summarise

TABLES = load_tables()
VARIANTS = ("before", "before-again", "published", "ream")
HUGE = 2048
COPY = 1000

Columns = Mapping[str, Any]

MOVED = {"before": 279, "before-again": 279, "published": 279, "ream": 260}
"""Pages moved per huge page, by variant."""
NS = {"before": 1_000_000, "before-again": 1_000_000, "published": 1_150_000, "ream": 700_000}
"""Nanoseconds per huge page, by variant."""


def said(
    row: CompactRow,
    subject: str,
    launch: int = 0,
    *,
    time_ns: int | None = None,
    counters: Mapping[str, int] | None = None,
    **beside: int | None,
) -> Sample:
    """A sample; numbers that are None are not known."""
    moved = MOVED[subject] * row.nr_huge
    by_dma = row.uses_dma and not subject.startswith("before")
    hog = {"before": 10**9, "before-again": 10**9, "published": 12 * 10**8, "ream": 15 * 10**8}
    counted = {
        "pgmigrate_success": moved,
        "pgmigrate_fail": 7,
        "compact_stall": row.nr_huge,
        "compact_migrate_scanned": 2 * moved,
        "compact_free_scanned": 3 * moved,
        **({"dcbm_folios_migrated": moved - 5} if by_dma else {}),
    }
    whole = {
        "asked": row.nr_huge,
        "allocated": row.nr_huge,
        "longest_ns": 5_000_000,
        "page_copy_ns": COPY,
        "user_ns": 500 if row.busy else 0,
        "system_ns": 300,
        "idle_ns": 200,
        "hog_iterations": hog[subject] + launch * 10**6 if row.busy else None,
        **(counted if counters is None else counters),
    } | beside
    return Sample(
        row=row.name,
        launch=launch,
        round=0,
        role="variant",
        subject=subject,
        threads=1,
        time_ns=NS[subject] * row.nr_huge + launch if time_ns is None else time_ns,
        nr_bytes=(whole["allocated"] or 0) << 21,
        verified=True,
        beside=known(whole),
    )


def columns(samples: Sequence[Sample], subject: str, *, counted: bool = False) -> Columns | None:
    return columns_of(DECLARED, samples, subject, to="before", counted=counted)


def guest(accel: Literal["kvm", "tcg"] = "tcg", **fields: Any) -> GuestFacts:
    whole: dict[str, Any] = {
        "qemu": "QEMU 7.2",
        "accel": accel,
        "accel_reason": "for a test",
        "icount": False,
        "cpus": 1,
        "memory_bytes": {},
        "commands": {},
        "kernels": {},
    }
    return GuestFacts(**(whole | fields))


MIXED = guest(
    kinds={
        **dict.fromkeys(("baseline", "dma"), GuestKind(icount=True, cpus=1)),
        **dict.fromkeys(("busy-baseline", "busy-dma"), GuestKind(icount=False, cpus=2)),
    }
)


def summary_of(receipt: Receipt, its_guest: GuestFacts = MIXED, launches: int = 3) -> Summary:
    asked = lines()
    counted = its_guest.accel == "tcg"
    samples = [
        said(row, subject, launch)
        for row in asked.rows
        if isinstance(row, CompactRow)
        for launch in range(1 if counted and not row.busy else launches)
        for subject in VARIANTS
    ]
    return summarise(
        asked,
        asked.rows,
        samples,
        TABLES,
        receipt.model_copy(update={"guest": its_guest}),
        run="20261121T021500Z-compact-vm-ab12",
        stage="vm",
        units=dict.fromkeys(("baseline", "dma"), "instructions") if counted else {},
    )


@pytest.fixture(scope="module")
def summary(receipt: Receipt) -> Summary:
    return summary_of(receipt)


def one(summary: Summary, name: str) -> RowResult:
    return next(row for row in summary.rows if row.row == name)


def of(summary: Summary, name: str, variant: str) -> Columns:
    found = one(summary, name).variants[variant].columns
    assert found is not None
    return found


# --- The columns -------------------------------------------------------------------------


def test_pages_are_counted_and_divided_by_the_huge_pages(summary: Summary) -> None:
    its = of(summary, "dma", "published")
    assert (its["asked"], its["allocated"], its["stalls"], its["failed"]) == (HUGE, HUGE, HUGE, 7)
    assert (its["migrated"], its["migrated_per_huge"]) == (279 * HUGE, 279)
    assert its["dma_copies"] == 279 * HUGE - 5
    assert (its["migrate_scanned"], its["free_scanned"]) == (2 * 279 * HUGE, 3 * 279 * HUGE)
    assert of(summary, "dma", "before")["dma_copies"] is None


def test_what_is_not_copying_is_the_time_without_so_many_page_copies(summary: Summary) -> None:
    before, ream = of(summary, "baseline", "before"), of(summary, "baseline", "ream")
    assert (before["per_huge"], before["page_copy"]) == (1_000_000, COPY)
    assert before["per_huge_without_copies"] == 1_000_000 - 279 * COPY
    assert ream["per_huge_without_copies"] == 700_000 - 260 * COPY
    ratio = ream["without_copies_over_before"]
    assert ratio is not None
    assert ratio.ratio == pytest.approx(440 / 721, rel=1e-4)
    assert before["without_copies_over_before"] is None


def test_shares_are_of_what_the_cpu_did_meanwhile(summary: Summary) -> None:
    idle, busy = of(summary, "baseline", "before"), of(summary, "busy-baseline", "before")
    assert (idle["user_pct"], idle["sys_pct"], idle["idle_pct"]) == (0, 60, 40)
    assert (busy["user_pct"], busy["sys_pct"], busy["idle_pct"]) == (50, 30, 20)


def test_where_idling_is_not_known_shares_are_of_the_time() -> None:
    row = CompactRow(name="live", stage="live")
    its = columns([said(row, "before", idle_ns=None, time_ns=1200, page_copy_ns=None)], "before")
    assert its is not None
    assert (its["user_pct"], its["sys_pct"], its["idle_pct"]) == (0, 25, None)
    assert its["per_huge_without_copies"] is None


def test_the_hog_counts_by_the_second_and_against_before_with_an_interval(
    summary: Summary,
) -> None:
    its = of(summary, "busy-dma", "ream")
    assert its["hog_iterations"] == 15 * 10**8 + 10**6
    assert its["hog_per_s"] == pytest.approx(1.501e9 / (0.7e6 * HUGE) * 1e9, rel=1e-4)
    ratio = its["hog_over_before"]
    assert ratio is not None
    assert ratio.ratio == pytest.approx(1.5 / 0.7, rel=1e-3)
    assert ratio.low is not None
    assert ratio.high is not None
    assert ratio.low < ratio.ratio < ratio.high
    assert of(summary, "dma", "ream")["hog_over_before"] is None


def test_of_several_samples_the_median_is_told() -> None:
    row = CompactRow(name="row", mode="busy-baseline")
    three = [
        said(row, "before", launch, longest_ns=longest) for launch, longest in enumerate((9, 1, 5))
    ]
    its = columns(three, "before")
    assert its is not None
    assert its["longest"] == 5
    assert columns(three, "ream") is None


def test_copies_that_are_said_to_take_longer_than_all_are_not_taken_out() -> None:
    row = CompactRow(name="row")
    its = columns([said(row, "before", page_copy_ns=10**9)], "before")
    assert its is not None
    assert its["per_huge_without_copies"] is None


def test_a_time_in_which_an_engine_copies_or_a_hog_runs_has_no_copies_to_take_out() -> None:
    by_dma = [said(CompactRow(name="row", mode="dma"), "ream")]
    timed, counted = columns(by_dma, "ream"), columns(by_dma, "ream", counted=True)
    assert timed is not None
    assert counted is not None
    assert timed["per_huge_without_copies"] is None
    assert counted["per_huge_without_copies"] == 440_000
    busy = columns([said(CompactRow(name="row", mode="busy-baseline"), "before")], "before")
    assert busy is not None
    assert busy["per_huge_without_copies"] is None


def test_a_kernel_without_a_counter_has_none_of_it_rather_than_0() -> None:
    its = columns([said(CompactRow(name="row"), "before", counters={})], "before")
    assert its is not None
    assert its["migrated"] is its["migrated_per_huge"] is its["migrate_scanned"] is None


# --- The published table -----------------------------------------------------------------


def test_the_published_ratio_is_of_wall_times_of_two_lines(summary: Summary) -> None:
    compared = one(summary, "dma").published_table
    assert compared is not None
    assert (compared.before, compared.published, compared.unit) == (16708, 18887, "ms")
    assert (compared.value, compared.better) == ("wall_ms", "lower")
    assert compared.ratio == pytest.approx(18887 / 16708, rel=1e-4)
    busy = one(summary, "busy-dma").published_table
    assert busy is not None
    assert busy.ratio == pytest.approx(32475 / 33256, rel=1e-4)
    assert one(summary, "baseline").published_table is None


def test_emulated_guests_get_no_verdict_and_real_ones_do(
    summary: Summary, receipt: Receipt
) -> None:
    for name in ("dma", "busy-dma"):
        compared = one(summary, name).published_table
        assert compared is not None
        assert compared.verdict == "not-run"
        assert "an emulated CPU has neither caches" in (compared.reason or "")
    real = summary_of(receipt, guest("kvm", cpus=2))
    compared = one(real, "dma").published_table
    assert compared is not None
    assert compared.verdict == "modelled"


MEASURED = {
    "dma": {"published": (0, 7665, 2255), "other": (0, 9940, 30)},
    "busy-dma": {"published": (5632, 4297, 6), "other": (4990, 4975, 6)},
}
"""User, system and idle of the CPU, in the shares that the published table has."""


def every(asked: Compact, **fields: Any) -> list[Sample]:
    return [
        said(row, subject, launch, **fields)
        for row in asked.rows
        if isinstance(row, CompactRow)
        for launch in range(3)
        for subject in VARIANTS
    ]


def under_kvm(asked: Compact, samples: Sequence[Sample], receipt: Receipt) -> Summary:
    return summarise(
        asked,
        asked.rows,
        samples,
        TABLES,
        receipt.model_copy(update={"guest": guest("kvm", cpus=2)}),
        run="20261121T021500Z-compact-vm-ab12",
        stage="vm",
    )


@pytest.mark.parametrize(
    ("name", "hog", "words"),
    [
        ("dma", {}, {"wall_ms": "agrees", "sys_pct": "agrees", "idle_pct": "agrees"}),
        (
            "busy-dma",
            {"published": 66_022_189_744, "other": 62_300_165_085},
            {"wall_ms": "contradicts", "sys_pct": "agrees", "user_pct": "agrees"}
            | {"idle_pct": "agrees", "hog_iterations": "agrees"},
        ),
        (
            "busy-dma",
            {"published": 30_000_000_000, "other": 62_300_165_085},
            {"sys_pct": "agrees", "hog_iterations": "contradicts"},
        ),
    ],
)
def test_the_verdict_on_a_quantity_is_of_that_quantity_and_not_of_time(
    name: str, hog: Mapping[str, int], words: Mapping[str, str], receipt: Receipt, monkeypatch: Any
) -> None:
    monkeypatch.setattr(CompactRow, "model_of_device", None)  # as if the device were there
    asked = lines().only([name])
    (row,) = asked.rows
    assert isinstance(row, CompactRow)
    compacted = []
    for launch in range(3):
        for subject in VARIANTS:
            user, system, idle = MEASURED[name].get(subject, MEASURED[name]["other"])
            its_hog = hog.get(subject, hog.get("other"))
            times = {"user_ns": user, "system_ns": system + launch, "idle_ns": idle}
            ns = round(row.nr_huge * (1e6 if subject != "published" else 1.1e6)) + launch
            one = said(row, subject, launch, time_ns=ns, hog_iterations=its_hog, **times)
            compacted.append(one)
    (found,) = under_kvm(asked, compacted, receipt).rows
    verdicts = {compared.value: compared.verdict for compared in found.comparisons}
    assert verdicts.items() >= words.items()
    if name == "dma":
        its = found.variants["published"].columns
        assert its is not None
        assert its["over_before"]["sys_pct"].ratio == pytest.approx(0.7665 / 0.994, rel=2e-2)
        assert its["over_before"]["idle_pct"].ratio > 50
        assert "user_pct" not in its["over_before"]  # 0 of both


def test_a_cpu_that_never_idled_has_no_ratio_of_idling_and_says_so(receipt: Receipt) -> None:
    asked = lines().only(["dma"])
    (found,) = under_kvm(asked, every(asked, idle_ns=0), receipt).rows
    (idle,) = (compared for compared in found.comparisons if compared.value == "idle_pct")
    assert idle.verdict == "not-run"
    assert idle.reason == "idle_pct was 0 or not measured here, so it has no ratio"


def test_the_cpu_time_of_the_whole_machine_is_told_and_for_each_gib(receipt: Receipt) -> None:
    times = CpuTimes(user_ns=10**9, system_ns=3 * 10**9, idle_ns=5 * 10**8, steal_ns=2 * 10**7)
    summary = under_kvm(lines(), every(lines(), **dict(times.beside())), receipt)
    its = of(summary, "dma", "published")["machine"]
    assert its is not None
    assert its == times.model_dump()
    text = table.render(summary)
    assert "CPU time of all CPUs meanwhile" in text
    # 4 s of CPU time for 2,048 huge pages, which are 4 GiB.
    assert "technique 1 s 3 s 500 ms 20 ms 1 s" in " ".join(text.replace(".00", "").split())


def test_rows_have_the_unit_of_their_own_guests(summary: Summary) -> None:
    assert [row.unit for row in summary.rows] == ["instructions", "instructions", "ns", "ns"]
    assert one(summary, "dma").variants["ream"].effect == "fewer"
    assert one(summary, "busy-dma").variants["ream"].effect == "faster"
    assert one(summary, "dma").variants["ream"].gb_per_s is None


def test_the_published_table_is_in_the_object_as_printed(summary: Summary) -> None:
    (printed,) = summary.tables
    assert (printed.id, printed.nr_huge, printed.unit) == ("compact-dma", 16384, "as named")
    assert [line.params["mode"] for line in printed.lines] == [row.row for row in summary.rows]
    assert printed.lines[3].values["hog_iterations"] == 66022189744
    assert summary.grids == ()


def test_a_value_is_better_as_its_table_says_of_it() -> None:
    (its,) = (one for one in TABLES if one.id == "compact-dma")
    assert its.better_of("wall_ms") == its.better_of("sys_pct") == "lower"
    assert its.better_of("hog_iterations") == "higher"
    assert [its.unit_of(name) for name in ("wall_ms", "sys_pct", "migrated", None)] == [
        *("ms", "%", "migrated", "as named"),
    ]
    for name in ("migrated", "sys", "and", None):
        with pytest.raises(BadUsage, match="better is neither"):
            its.better_of(name)


def test_a_kernel_that_gives_up_is_compared_by_the_huge_page(receipt: Receipt) -> None:
    """Half of them in half of the time is no gain, and no verdict."""
    asked = lines().only(["dma"])
    (row,) = asked.rows
    assert isinstance(row, CompactRow)
    compacted = [
        said(
            row,
            subject,
            launch,
            **(
                {"allocated": HUGE // 2, "time_ns": NS["before"] * HUGE // 2 + launch}
                if subject == "published"
                else {}
            ),
        )
        for launch in range(3)
        for subject in VARIANTS
    ]
    found = under_kvm(asked, compacted, receipt)
    published = one(found, "dma").variants["published"]
    assert published.ratio == pytest.approx(1, abs=1e-4)
    assert published.per_entry == pytest.approx(NS["before"], rel=1e-4)
    assert published.median == pytest.approx(NS["before"] * HUGE / 2, rel=1e-4)
    assert published.columns is not None
    assert (published.columns["asked"], published.columns["allocated"]) == (HUGE, HUGE // 2)
    compared = one(found, "dma").published_table
    assert compared is not None
    assert compared.verdict == "not-run"
    assert compared.reason == "published got 1,024 of 2,048 huge pages, and then none"
    assert not any("bytes of memory" in note for note in one(found, "dma").notes)


# --- Lines -------------------------------------------------------------------------------


def test_both_kinds_of_guests_are_told(summary: Summary) -> None:
    assert summary.receipt.guest == (
        "QEMU 7.2: TCG, instructions counted, no time, 1 CPU (baseline, dma);"
        " TCG, times emulated, 2 CPUs (busy-baseline, busy-dma)"
    )
    text = " ".join(table.render(summary).split())
    assert "rows of instructions: nanoseconds of a clock that counts" in text
    assert "Rows of ns: EMULATED, which says nothing of hardware" in text


def test_the_object_comes_back_as_it_was(summary: Summary) -> None:
    value = json.loads(json.dumps(summary.to_object()))
    again = Summary.from_object(value, source="test")
    assert again == summary
    assert table.render(again) == table.render(summary)


def test_a_record_of_before_there_was_compaction_is_read(summary: Summary) -> None:
    value = summary.to_object()
    del value["tables"], value["batches"]
    for row in value["rows"]:
        for result in row["variants"].values():
            del result["compaction"], result["per_batch"]
    assert "compaction did" not in table.render(Summary.from_object(value, source="test"))


WILD = st.one_of(st.none(), st.floats(min_value=1e-90, max_value=1e90))


@given(
    st.dictionaries(
        st.sampled_from(["per_huge", "hog_per_s", "user_pct", "migrated_per_huge", "page_copy"]),
        WILD,
    ),
    st.text(max_size=90),
)
def test_no_damage_breaks_a_report(
    summary: Summary, fields: Mapping[str, float | None], text: str
) -> None:
    value = summary.to_object()
    for row in value["rows"]:
        row["row"] = text
        row["variants"] = {
            f"{name}{text}": {**result, "compaction": {**result["compaction"], **fields}}
            for name, result in row["variants"].items()
        }
    value["tables"][0] |= {"id": text, "source": text, "machine": text}
    value["tables"][0]["lines"][0]["params"] = {"mode": text}
    damaged = Summary.from_object(value, source="test")
    assert max(map(len, table.render(damaged).splitlines())) <= 100
    assert max(map(len, letter.render(damaged).splitlines())) < 75


# --- The live stage ----------------------------------------------------------------------


def test_a_running_kernel_has_columns_and_no_ratios(receipt: Receipt) -> None:
    asked = SHIPPED.at("live")
    (row, *_) = asked.rows
    assert isinstance(row, CompactRow)
    told = said(row, "before", page_copy_ns=None, idle_ns=None)
    running = replace(told, subject=RUNNING)
    found = summarise(
        asked,
        asked.rows,
        [running],
        TABLES,
        receipt.model_copy(
            update={"kernel": receipt.kernel.model_copy(update={"variants": {RUNNING: ()}})}
        ),
        run="20261121T021500Z-compact-live-ab12",
        stage="live",
        variants=(RUNNING,),
        skipped={"live-busy": "for a test"},
    )
    text = table.render(found)
    assert "live-baseline, ns\n  running" in text
    assert "ratio to before" not in text
    assert "in compact-dma (Shivank Garg" in text
