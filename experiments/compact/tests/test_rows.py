# SPDX-License-Identifier: GPL-2.0-only
"""What a row of compact may be, the shipped ones, and how their guests are planned."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from experiments.compact import guests as vm_compact
from experiments.compact.boot import CompactSample
from experiments.compact.guests import CompactGuests, plan_of, refuse_options
from experiments.compact.rows import CompactRow
from experiments.compact.tests.world import SHIPPED, batches, lines
from ream.errors import BadUsage, ReamError
from ream.experiment import load, named
from ream.measure.plan import plan_launches
from ream.progress import Reporter
from ream.published import check_references, load_tables
from ream.record.record import open_record
from ream.session import vm as driver
from ream.session.guests import GuestSetting
from ream.session.request import GuestOptions, Request
from ream.session.vm import Places
from ream.stage.vm import Start
from ream.variants import choose_variants

VM = cast(tuple[CompactRow, ...], lines().rows)
GIB = 1 << 30
USUAL = GuestOptions()


def row(name: str = "row", **fields: Any) -> CompactRow:
    return CompactRow.model_validate({"name": name, **fields})


# --- One row -----------------------------------------------------------------------------


def test_a_row_is_a_boot_of_published_size_unless_it_says_otherwise() -> None:
    one = row()
    assert (one.stage, one.mode, one.nr_huge, one.node_bytes) == ("vm", "baseline", 2048, 10 * GIB)
    assert (one.buffer_bytes, one.channels, one.rounds, one.order) == (0, 0, 1, 9)
    assert (one.written_bytes, one.bytes_of, one.nr_entries) == (4 * GIB, "memory", 2048)
    assert one.nr_batches is None
    assert one.fixed_rounds


def test_a_native_row_asks_for_huge_pages_or_moves_batches() -> None:
    whole, batch = row(stage="native", nr_huge=128), row(stage="native")
    assert (whole.is_whole, whole.node_bytes, whole.batch_pages, whole.buffer_bytes) == (
        True, GIB, None, 0,
    )  # fmt: skip
    assert (batch.is_whole, batch.node_bytes, batch.batch_pages) == (False, 0, 32)


def test_what_has_to_move_for_a_huge_page_is_its_share_of_what_is_in_use() -> None:
    asked: list[dict[str, Any]] = [{}, {"used_every": 4}, {"free_every": 4, "nr_huge": 64}]
    rows = [row(**{"stage": "native", "nr_huge": 128, **one}) for one in asked]
    assert [one.ideal_pages for one in rows] == [256, 128, 384]


def test_what_copies_by_dma_has_a_channel() -> None:
    assert [row(mode=mode).channels for mode in ("dma", "busy-dma")] == [1, 1]
    assert row(mode="dma", channels=4).channels == 4


def test_a_live_row_has_twice_the_memory_that_its_huge_pages_are_made_of() -> None:
    one = row(stage="live")
    assert (one.nr_huge, one.buffer_bytes, one.node_bytes) == (256, 2 * GIB, 0)
    assert one.reserve_bytes is None


def test_a_native_row_is_of_calls() -> None:
    one = row(stage="native", buffer_bytes="2MiB", batch_pages=100)
    assert (one.nr_folios, one.nr_batches, one.written_bytes) == (512, 6, 2 << 20)
    assert one.nr_entries is None
    assert row(stage="native", measure="metadata").nr_entries == 65536
    assert row(stage="native").batch_pages == 32


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"mode": "idle"}, "Input should be 'baseline', 'dma', 'busy-baseline' or 'busy-dma'"),
        ({"nr_huge": 0}, "nr_huge must be 1 at least"),
        ({"nr_huge": -1}, "greater than or equal to 0"),
        ({"nr_huge": 4096}, "4096 huge pages need 16 GiB of which half is free, there are 10 GiB"),
        ({"nr_huge": "many"}, "valid integer"),
        ({"node_bytes": "3MiB"}, "must be multiples of 2 MiB"),
        ({"node_bytes": "10GB"}, "not a size"),
        ({"node_bytes": "1GiB"}, "there are 1 GiB"),
        ({"buffer_bytes": "12GiB"}, "buffer_bytes must be less than node_bytes"),
        ({"channels": 1}, "channels are given, but mode = baseline copies without them"),
        ({"mode": "dma", "channels": 0}, "mode = dma needs a channel at least"),
        ({"mode": "dma", "channels": 17}, "less than or equal to 16"),
        ({"threads": 2}, "threads are not given here: say channels"),
        ({"rounds": 2}, "a guest is fragmented once; give launches"),
        ({"batch_pages": 32}, "batch_pages means nothing in the vm stage"),
        ({"measure": "metadata"}, "measure means nothing in the vm stage"),
        ({"reserve_bytes": "1GiB"}, "reserve_bytes means nothing in the vm stage"),
        ({"stage": "live", "mode": "dma"}, "the live stage has no mode dma"),
        ({"stage": "live", "node_bytes": "1GiB"}, "node_bytes means nothing in the live stage"),
        ({"stage": "live", "buffer_bytes": "512MiB"}, "256 huge pages need 1 GiB"),
        ({"stage": "native", "mode": "busy-baseline"}, "a hog is given in native rows with"),
        ({"stage": "native", "nr_huge": 1, "batch_pages": 32}, "batch_pages is given in native"),
        ({"stage": "native", "holes": "odd"}, "holes is given in native rows with nr_huge"),
        ({"stage": "native", "nr_huge": 1, "mode": "dma"}, "with nr_huge an engine is a"),
        ({"stage": "native", "nr_huge": 257}, "257 huge pages need 1028 MiB of which half"),
        ({"stage": "native", "nr_huge": 1, "node_bytes": "66MiB"}, "multiple of 4 MiB"),
        ({"stage": "native", "nr_huge": 1, "node_bytes": "8MiB"}, "12 MiB at least"),
        ({"stage": "native", "nr_huge": 1, "used_every": 4, "free_every": 4}, "either used_every"),
        ({"stage": "native", "nr_huge": 100, "free_every": 16}, "of which 1 of 16 is free"),
        ({"holes": "odd"}, "holes = odd means nothing outside of the native stage"),
        ({"freed": "down"}, "freed means nothing in the vm stage"),
        ({"stage": "native", "batch_pages": 513}, "less than or equal to 512"),
        ({"stage": "native", "batch_pages": 0}, "greater than or equal to 1"),
        ({"stage": "native", "mode": "dma", "measure": "metadata"}, "so it has no channels"),
        ({"stage": "moon"}, "Input should be 'native', 'vm' or 'live'"),
        ({"garbage": 1}, "Extra inputs are not permitted"),
    ],
)
def test_what_cannot_be_compacted_is_refused(fields: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        row(**fields)


def test_every_fault_of_a_file_is_told(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(
        'name = "compact"\nquestion = "?"\nlaunches = 1\nvariants = {}\n'
        'rows = [ { name = "a", nr_huge = 0 }, { name = "b", mode = 3 }, { name = "a b" } ]\n'
    )
    with pytest.raises(BadUsage) as caught:
        load(path)
    said = str(caught.value)
    assert "rows.0: nr_huge must be 1 at least" in said
    assert "rows.1.mode: " in said
    assert "rows.2.name: " in said


def test_a_title_says_what_copies_and_what_else_runs() -> None:
    assert row(mode="busy-dma").title() == (
        "2,048 huge pages out of a node of 10 GiB full of holes, 1 channel of the DMA engine,"
        " a hog on the same CPU"
    )
    assert row(stage="live").title() == (
        "256 huge pages out of memory of 2 GiB full of holes, copied by the CPU"
    )
    assert row(stage="native", nr_huge=64, holes="odd", freed="down").title() == (
        "64 huge pages out of a node of 1 GiB full of holes, every first page of a group,"
        " copied by the CPU, freed downwards"
    )
    assert row(stage="native", measure="metadata", batch_pages=512).title() == (
        "unmap and remap 256 MiB, 512 pages a call, nothing is copied"
    )


# --- The shipped ones --------------------------------------------------------------------


def test_the_vm_rows_are_the_lines_of_the_published_table() -> None:
    tables = load_tables()
    check_references(SHIPPED.rows, tables)
    (table,) = (one for one in tables if one.experiment == "compact")
    assert [one.mode for one in VM] == [line.params["mode"] for line in table.rows]
    assert [bool(one.published) for one in VM] == [one.uses_dma for one in VM]


def test_every_batch_is_there_in_each_way_it_is_measured() -> None:
    native = cast(tuple[CompactRow, ...], batches().rows)
    ways = {(one.mode, one.measure, one.tlb_flush) for one in native}
    assert len(ways) == 4
    for way in ways:
        its = [one for one in native if (one.mode, one.measure, one.tlb_flush) == way]
        assert [one.batch_pages for one in its] == [32, 64, 128, 256, 512]


def test_a_run_that_names_no_stage_is_of_the_published_experiment() -> None:
    assert SHIPPED.stage == "vm"
    assert named("migrate").stage == "native"


# --- Guests ------------------------------------------------------------------------------


def test_a_kernel_without_the_engine_is_what_the_others_are_compared_with() -> None:
    modes = {one.mode: plan_of(one, 1, modules=()).mode for one in VM}
    assert modes == {
        "baseline": "baseline",
        "dma": "baseline",
        "busy-baseline": "busy-baseline",
        "busy-dma": "busy-baseline",
    }
    assert [plan_of(one, 1, modules=("dcbm",)).mode for one in VM] == [one.mode for one in VM]
    assert plan_of(VM[1], 1, modules=()).channels == 0
    assert plan_of(VM[1], 7).seed == 7


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (GuestOptions(memory_bytes=GIB), "whose size is the row's node_bytes"),
        (GuestOptions(distances=((0, 1, 30),)), "--numa-distance"),
        (GuestOptions(icount=True), "leave out busy-baseline, busy-dma with --row"),
        (GuestOptions(cpus=1), "--cpus 1: busy-baseline, busy-dma: the hog has the allocating CPU"),
    ],
)
def test_options_that_a_row_leaves_no_room_for_are_refused(
    options: GuestOptions, said: str
) -> None:
    with pytest.raises(BadUsage, match=said):
        refuse_options(VM, options)


def test_idle_rows_alone_may_be_counted_on_one_cpu() -> None:
    refuse_options(VM[:2], GuestOptions(icount=True, cpus=1))


def guests(options: GuestOptions = USUAL, rows: Sequence[CompactRow] = VM) -> CompactGuests:
    return CompactGuests(
        rows, options, 3, lambda asked: GuestSetting("tcg", "for a test", True, asked)
    )


def test_a_row_with_a_hog_has_two_cpus_and_a_clock() -> None:
    machines = [kind.machine for kind in guests().kinds().values()]
    assert [(machine.icount, machine.cpus) for machine in machines] == [
        (True, 1),
        (True, 1),
        (False, 2),
        (False, 2),
    ]
    for machine in machines:
        first, second = machine.nodes
        assert first.cpus in ("0-0", "0-1")
        assert (second.memory_bytes, second.cpus) == (10 * GIB, "")
        assert first.memory_bytes + second.memory_bytes == machine.memory_bytes


def kernels() -> dict[tuple[str, ...], dict[str, Any]]:
    offload = ("published", "ream")
    of_all = {
        name: (SimpleNamespace(modules={"dcbm": Path()} if name in offload else {}), None)
        for name in SHIPPED.variant_names()
    }
    return {(): of_all}


def boots(launches: int, options: GuestOptions = USUAL) -> list[Any]:
    planned = plan_launches(SHIPPED.variant_names(), launches=launches, seed=3)
    its, places = guests(options), Places(Path("logs"), Path())
    return [boot for launch in planned for boot in its.boots(launch, kernels(), places)]


def test_this_seed_plans_these_boots_in_every_version() -> None:
    its = [boot.variant for boot in boots(1) if boot.row.name == "dma"]
    assert its == ["ream", "published", "before", "before-again"]


def test_counted_rows_are_booted_in_every_launch_as_timed_ones_are() -> None:
    its = boots(3)
    assert len(its) == 4 * 4 * 3
    names = [boot.log.name for boot in its]
    assert len(set(names)) == len(names)
    for row in VM:
        assert {boot.launch for boot in its if boot.row == row} == {0, 1, 2}


def test_a_launch_draws_holes_of_its_own_that_are_the_same_for_all_variants() -> None:
    seeds = {
        boot.launch: {other.plan.seed for other in boots(3) if other.launch == boot.launch}
        for boot in boots(3)
    }
    assert all(len(its) == 1 for its in seeds.values())
    assert len(set.union(*seeds.values())) == 3


def test_an_idle_row_may_have_a_cpu_for_the_engine_and_then_a_clock() -> None:
    one = row(mode="dma", two_cpus=True)
    machine = guests(rows=(one, *VM)).kinds()[one.name].machine
    assert (machine.icount, machine.cpus) == (False, 2)
    assert (one.busy, one.timed, one.params()["two_cpus"]) == (False, True, True)
    with pytest.raises(BadUsage, match="leave out row with --row"):
        refuse_options((one,), GuestOptions(icount=True))


def test_lines_that_are_judged_have_the_published_layout_and_share() -> None:
    (table,) = (one for one in load_tables() if one.experiment == "compact")
    judged = [one for one in cast(tuple[CompactRow, ...], SHIPPED.at("vm").rows) if one.published]
    assert [one.holes for one in judged] == ["even", "even", "scattered"]
    assert table.nr_huge is not None
    theirs = table.nr_huge * 2 * (2 << 20) / (248 << 30)
    for one in judged:
        ours = one.nr_huge * 2 * (2 << 20) / one.node_bytes
        assert ours == pytest.approx(theirs, rel=0.1)
        assert any("the CPU that allocates is of another node" in text for text in one.differs)
    claimed = {(ref.value, *ref.params.values()) for one in judged for ref in one.published}
    assert claimed >= {("sys_pct", "dma"), ("idle_pct", "dma"), ("sys_pct", "busy-dma")}
    assert claimed >= {("user_pct", "busy-dma"), ("hog_iterations", "busy-dma")}


def test_variants_of_a_row_are_side_by_side_in_an_order_drawn_for_each() -> None:
    its = boots(3)
    orders = set()
    for at in range(0, len(its), 4):
        group = its[at : at + 4]
        assert len({(boot.row.name, boot.launch) for boot in group}) == 1
        assert {boot.variant for boot in group} == set(SHIPPED.variant_names())
        orders.add(tuple(boot.variant for boot in group))
    assert len(orders) > 1
    assert [boot.title for boot in its] == [boot.title for boot in boots(3)]


# --- A run of made-up guests -------------------------------------------------------------


def said(plan: Any, **fields: Any) -> CompactSample:
    migrated = plan.nr_huge * 256
    by_dma = "dma" in plan.mode
    busy = plan.mode.startswith("busy")
    whole = {
        "mode": plan.mode,
        "asked": plan.nr_huge,
        "allocated": plan.nr_huge,
        "ballast": 0,
        "time_ns": plan.nr_huge * (800_000 if by_dma else 1_000_000),
        "page_copy_ns": 1000,
        "longest_ns": 2_000_000,
        "resident_pages": 2 * migrated,
        "wrong_words": 0,
        "user_ns": 500 if busy else 0,
        "system_ns": 500,
        "idle_ns": 0,
        "machine": {"user_ns": 600, "system_ns": 900, "idle_ns": 7, "steal_ns": 3},
        "hog_iterations": 10**9 if busy else None,
        "counters": {
            "pgmigrate_success": migrated,
            **({"dcbm_folios_migrated": migrated} if by_dma else {}),
        },
        "verified": True,
    }
    return CompactSample.model_validate({**whole, **fields})


@pytest.fixture
def request_of(tmp_path: Path) -> Any:
    def make(rows: tuple[str, ...], **options: Any) -> Request:
        experiment = lines().only(rows)
        return Request(
            experiment=experiment,
            stage="vm",
            variants=choose_variants(experiment),
            tree=None,
            threads=None,
            seed=1,
            runs=tmp_path / "runs",
            cache=tmp_path / "cache",
            command="ream run compact",
            guest=GuestOptions(**options),
        )

    return make


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """measure_vm() with guests that are functions."""

    def prepare(request: Request, _tree: Any, _setting: Any, **_rest: Any) -> Any:
        names = [variant.name for variant in request.variants]
        return kernels()[()], plan_launches(names, launches=request.experiment.launches, seed=1)

    def measure(request: Request, answer: Any = said) -> Any:
        def boot(start: Start, plan: Any) -> Any:
            start.log.write_text("booted\n")
            return answer(plan)

        @contextmanager
        def begun() -> Iterator[Any]:
            with open_record(request.runs, "run") as record:
                yield record

        setting = GuestSetting("tcg", "for a test", True, request.guest)
        monkeypatch.setattr(driver, "choose_setting", lambda *_: setting)
        monkeypatch.setattr(driver, "prepare", prepare)
        monkeypatch.setattr(vm_compact, "run_compact_boot", boot)
        monkeypatch.setattr(driver, "boots_at_once", lambda *_: 1)
        monkeypatch.setattr(driver, "config_sha256", lambda _: "")
        monkeypatch.setattr(driver, "guest_of", lambda *_: None)
        with begun() as record:
            found = driver.measure_vm(
                request, cast(Any, None), work=tmp_path, record=record, reporter=Reporter()
            )
            lines = next(request.runs.glob(".*")).joinpath("samples.jsonl").read_text()
        return found, [json.loads(line) for line in lines.splitlines()]

    return measure


def test_every_boot_is_a_sample_with_its_counters(request_of: Any, measured: Any) -> None:
    found, lines = measured(request_of(("dma", "busy-dma")))
    assert len(found.samples) == len(lines) == 4 * (4 + 4)
    assert all(one.beside["asked"] == 2048 for one in found.samples)
    assert found.units == {"dma": "instructions", "busy-dma": "ns"}
    assert found.launches == 4
    by_dma = [line for line in lines if line["subject"] in ("published", "ream")]
    assert all(line["dcbm_folios_migrated"] == 2048 * 256 for line in by_dma)
    assert {line["hog_iterations"] for line in lines} == {None, 10**9}
    assert any("524,288 pages copied by dcbm" in text for text in found.remarks["dma"])
    assert any(text.startswith("instructions are") for text in found.remarks["dma"])
    assert not any(text.startswith("instructions are") for text in found.remarks["busy-dma"])


def test_fewer_huge_pages_than_asked_for_are_told(request_of: Any, measured: Any) -> None:
    found, _ = measured(request_of(("baseline",)), lambda plan: said(plan, allocated=1000))
    assert (
        "before: 1,000 of 2,048 huge pages, and then none; ratios are of the time for each"
        in (found.remarks["baseline"])
    )


def test_no_huge_page_at_all_is_a_failure(request_of: Any, measured: Any) -> None:
    with pytest.raises(ReamError, match="the kernel gave not one of 2,048 huge pages"):
        measured(request_of(("baseline",)), lambda plan: said(plan, allocated=0))


def test_a_guest_keeps_the_declared_model_and_where_instructions_count_there_is_none() -> None:
    two_cpus = next(one for one in SHIPPED.at("vm").rows if one.name == "dma-two-cpus")
    assert isinstance(two_cpus, CompactRow)
    assert two_cpus.stands_in is None
    assert two_cpus.model_of_device is not None
    assert "model=570/6180" in plan_of(two_cpus, 1).init_words()
    assert plan_of(two_cpus, 1, modules=()).model is None
    assert plan_of(two_cpus, 1, icount=True).model is None
