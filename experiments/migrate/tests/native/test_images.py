# SPDX-License-Identifier: GPL-2.0-only
"""migrate_pages() leaves what the oracle predicts with every copier; a wrong kernel never passes.

Compared are all descriptors, entries, counters and lists, and every byte of the pages.
"""

import os
import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice, product
from pathlib import Path
from statistics import median

import pytest

from experiments.fork.oracle.images import page_dtype
from experiments.migrate.cases import FAULTS
from experiments.migrate.oracle.folios import PMD_ORDER, READ_ONLY, Folio, Migration, Mode
from experiments.migrate.oracle.mixture import CLEAN, correctness_migrations, mixture
from experiments.migrate.plan import Case, Engine, case_of, place_of, plan_of, suit, written_plan
from experiments.migrate.rows import FOLIO_BYTES, PMD_BYTES, MigrateRow
from ream.errors import VerificationFailed
from ream.stage.native import End
from ream.stage.reach import entered

# One worker has them all, so that one program of each kind is linked.
pytestmark = pytest.mark.xdist_group("migrate-images")

PATCHES = Path(__file__).parent / "patches"

BUILDS = pytest.mark.vm
"""A kernel's objects of its own each: all but a few of each kind are for `make test-vm`."""

NR_MIXTURES = 100
CASES_PER_LAUNCH = 20
"""Their arrays are files that a runner has open: some twenty of each case."""

CPUS = 4
"""CPUs of the hosted machine: three for channels, one for the thread that waits."""

OFFLOAD_MOST_CHANNELS = 16
"""Limit of channels of swdma here, and of dcbm; native/host/optional/offload.h."""

DCBM_TURNS = 4
"""Parts into which dcbm divides a channel's batch if the CPU copies, too."""

PLAIN = ("before", "before-again", "published")
"""Kernels that remove a folio's entries one by one, and end a batch before the next."""


def launch(rig, cases: Iterable[Case]) -> tuple[Counter[tuple[str, int]], list[End]]:
    """Run cases, some in each launch; samples by variant and CPUs that copied, and all ends."""
    rest, taken, ends = iter(cases), Counter(), []
    while some := list(islice(rest, CASES_PER_LAUNCH)):
        facts, place = rig.build.facts, place_of(rig.build)
        with written_plan(some, facts, place, rig.bench.work) as (plan, descriptors):
            samples, end = rig.run_plan(plan, descriptors, cpus=CPUS)
        assert all(sample.verified for sample in samples)
        taken.update((sample.subject, sample.threads) for sample in samples)
        ends.append(end)
    return taken, ends


def check_told(ends: Iterable[End]) -> None:
    """Check that kernels in PLAIN report no folio as not left to be split, or as reordered."""
    for end, variant, what in product(ends, PLAIN, ("not_left_to_split", "reordered")):
        assert f"{what}.{variant}" not in end.told


def check_rows(rig, rows: Iterable[MigrateRow]) -> Counter[tuple[str, int]]:
    """Run rows in one launch; samples by variant and CPUs that copied."""
    suited = suit(rows, cpus=2)
    with plan_of(suited.rows, None, rig.build, rig.bench.work) as (plan, descriptors):
        samples, _ = rig.run_plan(plan, descriptors, cpus=suited.cpus)
    assert all(sample.verified for sample in samples)
    return Counter((sample.subject, sample.threads) for sample in samples)


def row(folio_bytes: int, **given) -> MigrateRow:
    words = [str(folio_bytes), *map(str, given.values())]
    named = {"name": "-".join(words).lower(), "rounds": 1, "buffer_bytes": 4 * PMD_BYTES}
    return MigrateRow(folio_bytes=folio_bytes, **{**named, **given})


def case(rig, name: str, migration: Migration, **given) -> Case:
    return case_of(name, migration, rig.build.facts, place_of(rig.build), **given)


# --- What is right -------------------------------------------------------------------------


def test_every_size_of_folio_moves(migrate_rig) -> None:
    rows = [row(size, channels=channels) for size, channels in product(FOLIO_BYTES, (0, 1, 2))]
    assert check_rows(migrate_rig, rows)


def test_whatever_the_mappings_the_mode_and_the_caches(migrate_rig) -> None:
    sizes = (4 << 10, 64 << 10, PMD_BYTES)
    rows = [row(PMD_BYTES, mapped="ptes"), *(row(size, mode="async") for size in sizes)]
    rows += [row(size, mappings=2) for size in sizes]
    rows += [row(size, pre_state="cold") for size in sizes]
    rows += [row(size, measure="metadata") for size in sizes]
    assert check_rows(migrate_rig, rows)


def test_the_time_of_a_flush_is_measured_and_told(migrate_rig) -> None:
    rig = migrate_rig.only("before")
    rows = [row(4 << 10, tlb_flush="measured")]
    with plan_of(rows, None, rig.build, rig.bench.work) as (plan, descriptors):
        _, end = rig.run_plan(plan, descriptors)
    assert len(os.sched_getaffinity(0)) < 2 or end.told["tlb_flush_ns"] > 0


def test_functions_are_found_where_two_cpus_never_run_at_once(migrate_rig) -> None:
    rig = migrate_rig.only("before")
    suited = suit([row(4 << 10, tlb_flush="measured")], cpus=2)
    cpus = os.sched_getaffinity(0)
    with plan_of(suited.rows, None, rig.build, rig.bench.work) as planned:
        os.sched_setaffinity(0, {min(cpus)})
        try:
            found = entered(rig.bench, "before", planned, cpus=2)
        finally:
            os.sched_setaffinity(0, cpus)
    assert all("migrate_pages" in functions for functions in found.values())
    assert len(found) == len(suited.rows) == 1


@pytest.mark.vm
def test_the_cpu_time_of_a_sample_is_that_of_all_threads(migrate_rig) -> None:
    rig = migrate_rig.only("before")
    rows = suit([row(PMD_BYTES, buffer_bytes=128 << 20, channels=2, rounds=5)], cpus=2).rows
    with plan_of(rows, None, rig.build, rig.bench.work) as (plan, descriptors):
        samples, _ = rig.run_plan(plan, descriptors, cpus=CPUS)
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("one CPU copies alone")
    took: dict[int, list[int]] = {}
    over: dict[tuple[str, int], list[float]] = {}
    for sample in samples:
        assert sample.cpu_ns is not None
        alike = over.setdefault((sample.subject, sample.threads), [])
        alike.append(sample.cpu_ns - sample.threads * sample.time_ns * 1.1)
        if sample.subject == "rep-movsb":
            took.setdefault(sample.threads, []).append(sample.cpu_ns)
    # Of one sample it may be more: a thread that was woken before may fall asleep only within it.
    for cpu_ns in over.values():
        assert median(cpu_ns) < 10**6
    # Two copiers copy the same bytes as one; half the time would be the caller's alone.
    assert median(took[2]) > 0.75 * median(took[1])


def test_a_model_of_an_engine_takes_its_time_and_no_cpu(migrate_rig) -> None:
    rig = migrate_rig.only("published")
    own = {"engine_model": "declared", "engine_setup_ns": 0, "engine_mb_per_s": 100}
    rows = [
        row(size, buffer_bytes=32 << 20, channels=channels, **own)
        for size, channels in product((64 << 10, PMD_BYTES), (1, 16))
    ]
    with plan_of(rows, None, rig.build, rig.bench.work) as (plan, descriptors):
        samples, end = rig.run_plan(plan, descriptors, cpus=suit(rows, cpus=1).cpus)
    assert all(sample.verified and sample.threads == 1 for sample in samples)
    assert {sample.role for sample in samples} == {"variant"}
    assert end.told["engine_wake_ns"] > 0
    for sample, asked in zip(samples, rows, strict=True):
        # 336 ms of one channel, 21 ms of sixteen.
        least_ns = (32 << 20) * 10 / asked.channels
        assert sample.time_ns >= least_ns
        assert sample.cpu_ns is not None
        assert sample.cpu_ns < 0.7 * sample.time_ns + 10**7


@pytest.mark.vm
def test_every_row_of_the_published_grid_moves_on_two_cpus(migrate_rig) -> None:
    model = {"engine_model": "ptdma-v4-grid", "buffer_bytes": 64 << 20}
    sizes = [size for size in FOLIO_BYTES if size in {4 << 10, 64 << 10, PMD_BYTES}]
    rows = [row(size, channels=nr, **model) for size, nr in product(sizes, (1, 2, 4, 16))]
    assert suit(rows, cpus=2).rows == tuple(rows)
    # The waiting thread has the only CPU: channels of a model are no threads.
    assert {nr for _, nr in check_rows(migrate_rig, rows)} == {1}


@pytest.mark.parametrize("channels", [0, *(pytest.param(n, marks=pytest.mark.vm) for n in (1, 2))])
def test_every_single_thing_that_may_be_in_the_way(migrate_rig, channels: int) -> None:
    engine: Engine = "dma" if channels else "serial"
    cases = (
        case(migrate_rig, name, migration, engine=engine, channels=channels)
        for name, migration in correctness_migrations().items()
    )
    _, ends = launch(migrate_rig, cases)
    check_told(ends)


def random_cases(rig, seeds: Iterable[int]) -> Iterator[Case]:
    """Mixtures, each with a random copier; a DMA engine may have a fault."""
    for seed in seeds:
        draw = random.Random(seed)
        engine: Engine = draw.choice(("serial", "threads", "dma"))
        faults = {}
        if engine == "dma" and draw.random() < 0.7:
            kind = draw.choice(FAULTS)
            faults = {kind: draw.randint(1, 64), "stall_ms": 5, "reorder": draw.randint(0, 1)}
        if engine == "dma" and draw.random() < 0.3:
            faults["max_seg_bytes"] = draw.randint(64, 4 * 4096)
        yield case(
            rig,
            f"mixture-{seed}",
            mixture(seed),
            engine=engine,
            channels=draw.randint(1, 3) if engine != "serial" else 0,
            faults=faults,
            rounds=2,
        )


def test_mixtures_move_as_the_oracle_says(migrate_rig) -> None:
    _, ends = launch(migrate_rig, random_cases(migrate_rig, range(NR_MIXTURES)))
    check_told(ends)


@pytest.mark.vm
def test_nothing_is_reordered_where_nothing_is_tried_again(migrate_rig) -> None:
    moves = (move for move in map(mixture, range(100, 200)) if move.mode == "async")
    cases = (
        case(migrate_rig, f"async-{number}", move, engine=engine, channels=2)
        for number, move in enumerate(moves)
        for engine in ("threads", "dma")
    )
    _, ends = launch(migrate_rig, cases)
    assert not any("reordered.ream" in end.told for end in ends)


def test_an_order_that_is_another_limits_by_chance_is_right_where_folios_are_tried_again(
    migrate_rig,
) -> None:
    """What `ream` tries again comes in the order that kernels with the stock limit have here."""
    held, pinned = Folio(4, fault="extra-ref"), Folio(4, (CLEAN,), fault="pinned")
    first = Migration((pinned, Folio(PMD_ORDER), held), "async")
    then = Migration((held, Folio(PMD_ORDER), pinned), "sync")
    cases = (
        case(migrate_rig, move.mode, move, engine="threads", channels=2) for move in (first, then)
    )
    assert launch(migrate_rig, cases)


@pytest.mark.parametrize("kind", FAULTS)
def test_a_fault_of_the_engine_costs_time_and_nothing_else(migrate_rig, kind: str) -> None:
    move = replace(mixture(7, faults=False), reason="SYSCALL")
    cases = (
        case(
            migrate_rig,
            f"{kind}-{number}",
            move,
            engine="dma",
            channels=2,
            faults={kind: number, "stall_ms": 1},
        )
        for number in (1, 2, 3, 5, 8, 13, 21, 34, 55, 64)
    )
    launch(migrate_rig, cases)


@pytest.mark.parametrize("max_seg_bytes", [1000, 5000, 3 * 4096 + 64])
def test_an_engine_may_copy_less_than_a_page_at_once_or_no_whole_pages(
    migrate_rig, max_seg_bytes: int
) -> None:
    faults = {"max_seg_bytes": max_seg_bytes}
    names = ("sizes-mixed", "huge-entry", "bits-of-every-page", "huge-poison-large")
    cases = (
        case(
            migrate_rig,
            f"{name}-{channels}",
            correctness_migrations()[name],
            engine="dma",
            channels=channels,
            faults=faults,
        )
        for name in names
        for channels in (1, 2, 3)
    )
    _, (end,) = launch(migrate_rig, cases)
    assert end.told["offloaded.published"] > 0
    assert end.told["offloaded.ream"] > 0


def held_meanwhile(
    rig, name: str, migration: Migration, nr_held: int | None = None, **given
) -> Case:
    """All of it, or as many folios, are with a channel that does not come back in time, and stay.

    Who holds them has let go when memory is looked at.
    """
    first, rest = migration.folios[:nr_held], migration.folios[len(migration.folios[:nr_held]) :]
    kept = tuple(replace(folio, fault="extra-ref") for folio in first)
    held = replace(migration, folios=(*kept, *rest))
    faults = {**NEVER_BACK, **given.pop("faults", {})}
    one = case(rig, name, held, engine="dma", channels=1, faults=faults, **given)
    heads = [held.first_page(number) for number in range(len(kept))]
    for state in (one.before, *(after.state for after in one.after)):
        fields = state.src.reshape(-1).view(page_dtype(rig.build.facts))
        fields["_refcount"][heads] -= 1
    return one


NEVER_BACK = {"stall_at": 1, "timeout_ms": 20}
"""The engine stalls until nothing is timed any more, with what came first; dcbm waits 20 ms."""

LATE = {
    "small": (Folio(),) * 5,
    "mixed": (Folio(), Folio(2), Folio(), Folio(3)),
    "large": (Folio(4),),
    "shared": (Folio(3, (READ_ONLY,), nr_mappings=2), Folio()),
    "huge": (Folio(PMD_ORDER, mapped="pmd"),),
}
"""A channel is given all of it at once, or of one folio a part."""


@pytest.mark.parametrize("mode", ["async", "sync_light", "sync"])
def test_what_a_late_engine_may_still_write_to_stays_until_it_is_still(
    migrate_rig, mode: Mode
) -> None:
    """The driver would forget a copy that was terminated while the engine still writes."""
    rig = migrate_rig.only("published", "ream")
    faults = {"keeps_writing": 1}
    cases = (
        held_meanwhile(rig, f"{name}-{mode}", Migration(folios, mode), faults=faults)
        for name, folios in LATE.items()
    )
    launch(rig, cases)


def test_nobody_waits_for_the_other_queue_of_an_engine_that_was_late(migrate_rig) -> None:
    """Three calls, with folios of which it is not known yet whether it copies them faster."""
    rig = migrate_rig.only("published", "ream")
    calls = Migration((Folio(), Folio(2), Folio(4)), folios_per_call=1)
    launch(rig, [held_meanwhile(rig, "late", calls, nr_held=1)])


def test_every_channel_that_was_late_is_used_again(migrate_rig) -> None:
    rig = migrate_rig.only("published", "ream")
    more_than_there_are = OFFLOAD_MOST_CHANNELS + 4
    late = held_meanwhile(rig, "late", Migration(LATE["mixed"]), rounds=more_than_there_are)
    folios = (Folio(4),) * 16
    plain = case(rig, "all", Migration(folios), engine="dma", channels=OFFLOAD_MOST_CHANNELS)
    _, (end,) = launch(rig, [late, plain])
    for variant in ("published", "ream"):
        assert end.told[f"offloaded.{variant}"] == len(folios)


def test_the_cpu_copies_what_a_channel_has_no_time_for(migrate_rig) -> None:
    """A batch that is alone: a channel has a quarter of it, and stalls with that for a second."""
    folios = (Folio(2),) * 64
    stalls = {"stall_at": 1, "stall_ms": 1000}
    alone = case(migrate_rig, "alone", Migration(folios), engine="dma", channels=1, faults=stalls)
    _, (end,) = launch(migrate_rig, [alone])
    assert end.told["offloaded.published"] == len(folios)
    assert end.told["offloaded.ream"] == len(folios) // DCBM_TURNS


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two CPUs")
def test_two_channels_are_two_threads(migrate_rig) -> None:
    taken = check_rows(migrate_rig, [row(PMD_BYTES, channels=2, rounds=5)])
    assert taken["published", 2]
    assert not taken["before", 2]


# --- What is wrong -------------------------------------------------------------------------


def wrong(series: Iterable[str], name: str, says: str, *, quick: bool = False):
    marks = () if quick else BUILDS
    return pytest.param(tuple(series), name, says, id=name, marks=marks)


OFFLOAD = ("migrate-offload",)
ALL_OF_IT = (*OFFLOAD, "migrate-beyond", "rmap-exclusive", "migrate-faster")


@pytest.mark.parametrize(
    ("series", "name", "says"),
    [
        wrong((), "migrate-entry-not-dirty", "entry", quick=True),
        wrong((), "migrate-half-a-folio", "byte of a target's frame"),
        wrong((), "migrate-reference-left", "folios freed|descriptor"),
        wrong(OFFLOAD, "migrate-marked-not-copied", "byte of a target's frame"),
        wrong(ALL_OF_IT, "migrate-stream-first-page", "byte of a target's frame"),
    ],
)
def test_a_wrong_kernel_is_found_out(
    wrong_migrate: Callable[..., object], series: tuple[str, ...], name: str, says: str
) -> None:
    rig = wrong_migrate(name, series)
    rows = [row(size, channels=channels) for size in (4 << 10, 64 << 10) for channels in (0, 1)]
    with pytest.raises(VerificationFailed, match=says):
        check_rows(rig, rows)


@BUILDS
def test_what_cannot_be_read_is_not_taken_for_copied_past_the_caches(
    wrong_migrate: Callable[..., object],
) -> None:
    rig = wrong_migrate("migrate-stream-unreadable", ALL_OF_IT)
    check_rows(rig, [row(size) for size in (4 << 10, 64 << 10, PMD_BYTES)])
    poisoned = [
        case(rig, name, migration)
        for name, migration in correctness_migrations().items()
        if name.startswith("huge-poison")
    ]
    with pytest.raises(VerificationFailed, match="poison"):
        launch(rig, poisoned)


@BUILDS
def test_a_batch_that_ends_late_is_seen(wrong_migrate: Callable[..., object]) -> None:
    rig = wrong_migrate("migrate-batch-of-129", ALL_OF_IT)

    def cases(engine: Engine, channels: int) -> list[Case]:
        return [
            case(rig, name, correctness_migrations()[name], engine=engine, channels=channels)
            for name in ("batches-of-many-pages", "batches-of-many-folios")
        ]

    launch(rig, cases("serial", 0))
    with pytest.raises(VerificationFailed, match="the limit of a batch is not that"):
        launch(rig, cases("dma", 2))


@BUILDS
def test_what_an_engine_declines_is_copied_past_the_caches(
    wrong_migrate: Callable[..., object],
) -> None:
    """dcbm tries both ways, and takes the CPU for quicker than one channel of this model."""
    rig = wrong_migrate("migrate-declined-not-copied", ALL_OF_IT)
    check_rows(rig, [row(64 << 10), row(PMD_BYTES)])
    engine = [
        row(size, channels=1, engine_model="ptdma-v4-grid", buffer_bytes=64 << 20)
        for size in (64 << 10, PMD_BYTES)
    ]
    with pytest.raises(VerificationFailed, match="byte of a target's frame"):
        check_rows(rig, engine)


@BUILDS
def test_an_engine_that_is_terminated_and_writes_is_seen(
    wrong_migrate: Callable[..., object],
) -> None:
    rig = wrong_migrate("migrate-terminated-writes", OFFLOAD)

    def cases(**faults: int) -> Iterator[Case]:
        for name, folios in LATE.items():
            move = Migration(folios)
            stays = held_meanwhile(rig, name, move)
            moves = case(rig, name, move, engine="dma", channels=1)
            both = replace(
                moves, faults={**NEVER_BACK, **faults}, after=(*stays.after, *moves.after)
            )
            yield both

    launch(rig, cases())
    with pytest.raises(VerificationFailed, match="byte of a target's frame"):
        launch(rig, cases(keeps_writing=1))


@BUILDS
@pytest.mark.parametrize("name", ["migrate-small-rounds", "migrate-lost-channel-restarted"])
def test_a_channel_that_is_lost_gets_nothing_in_the_next_round(
    wrong_migrate: Callable[..., object], name: str
) -> None:
    """In rounds of two folios, the channel with the first two never completes; the CPU copies."""
    rig = wrong_migrate(name, ALL_OF_IT)
    late = held_meanwhile(rig, "late", Migration(LATE["small"]), nr_held=2)
    if name == "migrate-small-rounds":
        launch(rig, [late])
        return
    with pytest.raises(VerificationFailed, match="the return value"):
        launch(rig, [late])


NR_PAGES = 16
"""Pages of a folio. For an engine that copies 5000 bytes at once it has 16 pieces, or 14."""


def nr_by_engine(rig, **faults: int) -> int:
    """Whether the engine has copied a folio of which one piece fails, if there are as many."""
    folios = Migration((Folio(NR_PAGES.bit_length() - 1),))
    one = case(rig, "a-piece-fails", folios, engine="dma", channels=1, faults=faults)
    _, (end,) = launch(rig, [one])
    return sum(told for name, told in end.told.items() if name.startswith("offloaded."))


@BUILDS
def test_a_piece_ends_where_a_page_does(migrate_rig, wrong_migrate: Callable[..., object]) -> None:
    def nr(rig, piece: int) -> int:
        return nr_by_engine(rig, max_seg_bytes=5000, fail_at=piece)

    rig = migrate_rig.only("ream")
    assert [nr(rig, piece) for piece in (NR_PAGES, NR_PAGES + 1)] == [0, 1]
    assert nr(wrong_migrate("migrate-pieces-across-pages", ALL_OF_IT), NR_PAGES) == 1


@BUILDS
@pytest.mark.parametrize(("series", "stack"), [("published", OFFLOAD), ("ream", ALL_OF_IT)])
def test_an_engine_whose_driver_does_not_report_errors_copies_nothing(
    migrate_rig, wrong_migrate: Callable[..., object], series: str, stack: Sequence[str]
) -> None:
    """It calls back after an error as after a copy."""
    rig = migrate_rig.only(series)
    assert nr_by_engine(rig) == 1
    assert nr_by_engine(rig, no_results=1) == 0
    assert nr_by_engine(rig, no_results=1, fail_at=1) == 0
    with pytest.raises(VerificationFailed, match="byte of a target's frame"):
        nr_by_engine(wrong_migrate("migrate-any-engine", stack), no_results=1, fail_at=1)


@BUILDS
def test_one_callback_for_all_that_a_channel_copies_is_seen(
    wrong_migrate: Callable[..., object],
) -> None:
    rig = wrong_migrate("migrate-one-callback", OFFLOAD)
    check_rows(rig, [row(size, channels=1, engine="dma") for size in (4 << 10, 64 << 10)])
    poisoned = [
        case(rig, name, migration, engine="dma", channels=1)
        for name, migration in correctness_migrations().items()
        if name.startswith("poison") and not name.endswith("alone")
    ]
    assert poisoned
    with pytest.raises(VerificationFailed, match="the return value|calls of memory_failure_queue"):
        launch(rig, poisoned)


# --- Much of it ------------------------------------------------------------------------------

STRESS = os.environ.get("REAM_STRESS")
STRESS_BYTES = int(STRESS or 0) << 30


@pytest.mark.skipif(not STRESS, reason="moves as many GiB as REAM_STRESS says")
def test_nothing_is_lost_in_many_gibibytes(migrate_rig) -> None:
    seeds = random.Random(os.environ.get("REAM_SEED", "1"))
    moved = 0
    while moved < STRESS_BYTES:
        cases = list(random_cases(migrate_rig, [seeds.getrandbits(32) for _ in range(20)]))
        launch(migrate_rig, cases)
        moved += sum(2 * one.after[0].nr_succeeded * 4096 for one in cases)
        rows = [
            row(size, channels=channels, buffer_bytes=256 << 20)
            for size, channels in product((4 << 10, 64 << 10, PMD_BYTES), (1, 2, 3))
        ]
        check_rows(migrate_rig, rows)
        moved += sum(one.buffer_bytes for one in rows)
