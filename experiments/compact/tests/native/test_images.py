# SPDX-License-Identifier: GPL-2.0-only
"""migrate_pages(), called batch by batch as compaction does, leaves what the oracle says.

The program is that of migrate: the same objects, and another plan.
"""

import os
import random
from collections import Counter
from collections.abc import Callable, Iterable

import pytest

from experiments.compact.hosted import is_batch, plan_of, suit
from experiments.compact.rows import CompactRow
from experiments.migrate.oracle.folios import Migration
from experiments.migrate.oracle.mixture import mixture
from experiments.migrate.plan import Kind, Timed, case_of, place_of, timed_plan, written_plan
from ream.errors import VerificationFailed
from ream.experiment import named
from ream.stage.native import End
from ream.variants import choose_variants

# The worker that links migrate's programs.
pytestmark = pytest.mark.xdist_group("migrate-images")

BLOCK_BYTES = 2 << 20
VARIANTS = ("before", "before-again", "published", "ream")
BATCHES = (32, 64, 128, 256, 512)
CPUS = 4


def row(batch_pages: int, **given) -> CompactRow:
    name = "-".join(["batch", str(batch_pages), *map(str, given.values())])
    named = {"name": name, "stage": "native", "buffer_bytes": 2 * BLOCK_BYTES}
    return CompactRow(batch_pages=batch_pages, **{**named, **given})


def check_rows(rig, rows: Iterable[CompactRow]) -> tuple[Counter[tuple[str, str, int]], End]:
    """Run rows in one launch; samples by row, subject and CPUs that copied, and the end."""
    suited = suit(rows, cpus=2)
    with plan_of(suited.rows, None, rig.build, rig.bench.work) as (plan, descriptors):
        samples, end = rig.run_plan(plan, descriptors, cpus=suited.cpus)
    sizes = {one.name: one.buffer_bytes for one in suited.rows}
    assert all(sample.verified for sample in samples)
    assert all(sample.nr_bytes == sizes[sample.row] for sample in samples)
    return Counter((sample.row, sample.subject, sample.threads) for sample in samples), end


# --- What is right -------------------------------------------------------------------------


def test_batches_of_every_size_move(migrate_rig) -> None:
    rows = [row(batch) for batch in BATCHES]
    rows += [row(batch, measure="metadata") for batch in BATCHES]
    rows += [row(batch, mode="dma") for batch in BATCHES]
    taken, _ = check_rows(migrate_rig, rows)
    assert {(one.name, variant, 1) for one in rows for variant in VARIANTS} <= set(taken)


def test_batches_that_do_not_divide_the_buffer_move(migrate_rig) -> None:
    check_rows(migrate_rig, [row(batch) for batch in (1, 2, 31, 33, 100, 511)])


def test_a_flush_of_each_batch_is_waited_for(migrate_rig) -> None:
    rig = migrate_rig.only("before")
    rows = [row(32, rounds=5), row(32, tlb_flush="measured", rounds=5)]
    with plan_of(rows, None, rig.build, rig.bench.work) as (plan, descriptors):
        samples, end = rig.run_plan(plan, descriptors)
    if len(os.sched_getaffinity(0)) < 2:
        return
    quickest = {
        one.name: min(s.time_ns for s in samples if (s.row, s.subject) == (one.name, "before"))
        for one in rows
    }
    # The fastest of a few, since other work may disturb any of them; it never makes one shorter.
    flushes_ns = rows[0].nr_batches * end.told["tlb_flush_ns"]
    assert quickest[rows[1].name] > flushes_ns > 0


def test_the_rows_of_the_experiment_are_those_of_the_programs_plan(migrate_rig) -> None:
    experiment = named("compact").at("native")
    small = [
        one.model_copy(update={"buffer_bytes": BLOCK_BYTES})
        for one in experiment.rows
        if is_batch(one)
    ]
    taken, _ = check_rows(migrate_rig, small)
    assert {name for name, subject, _ in taken if subject == "ream"} == {one.name for one in small}


@pytest.mark.vm
def test_what_is_spread_and_dealt_out_to_calls_moves_whatever_its_size(migrate_rig) -> None:
    draw = random.Random(7)
    kinds = [
        Kind(order, 8 << 20, spread=spread, folios_per_call=per_call)
        for order in (0, 2, 4, 9)
        for spread, per_call in ((1, 3), (2, None), (3, draw.randint(1, 5)))
    ]
    kinds += [
        Kind(9, 16 << 20, mapped="pmd", spread=2, folios_per_call=3),
        Kind(0, 4 << 20, shuffled_seed=3, spread=2, folios_per_call=100),
        Kind(0, 4 << 20, mode="sync", nr_mappings=2, spread=2, folios_per_call=600),
    ]
    buffers = [
        Timed(f"kind-{number}-{engine}", kind, 1, engine=engine, channels=channels)
        for number, kind in enumerate(kinds)
        for engine, channels in (("serial", 0), ("threads", 2), ("dma", 1))
    ]
    # The kernels that count their own way are in the tests of migrate.
    with timed_plan(buffers, migrate_rig.build, migrate_rig.bench.work) as (plan, descriptors):
        samples, _ = migrate_rig.run_plan(plan, descriptors, cpus=CPUS)
    assert all(sample.verified for sample in samples)


def dealt_out(seed: int) -> Migration:
    """A mixture without anything in the way, spread and dealt out to calls."""
    draw, plain = random.Random(seed), mixture(seed, faults=False)
    return Migration(
        plain.folios,
        plain.mode,
        plain.reason,
        listed=plain.listed,
        spread=draw.randint(1, 3),
        folios_per_call=draw.randint(1, len(plain.folios)),
    )


@pytest.mark.vm
def test_mixtures_that_are_dealt_out_to_calls_move(migrate_rig) -> None:
    facts, place = migrate_rig.build.facts, place_of(migrate_rig.build)
    for first in range(0, 60, 20):
        cases = [
            case_of(f"dealt-{seed}", dealt_out(seed), facts, place, engine="dma", channels=2)
            for seed in range(first, first + 20)
        ]
        with written_plan(cases, facts, place, migrate_rig.bench.work) as (plan, descriptors):
            samples, _ = migrate_rig.run_plan(plan, descriptors, cpus=CPUS)
        assert all(sample.verified for sample in samples)


def test_a_series_of_compaction_changes_no_object_that_is_run() -> None:
    """The kernels of compact are those of migrate, which other tests have built."""
    of_compact = choose_variants(named("compact"))
    of_migrate = {one.name: one for one in choose_variants(named("migrate"))}
    hosted = ("mm/migrate.c", "mm/rmap.c", "drivers/migrate_offload/", "arch/x86/lib/")
    for variant in of_compact:
        shared = of_migrate[variant.name].patches
        assert variant.patches[: len(shared)] == shared
        for patch in variant.patches[len(shared) :]:
            assert not any(f"+++ b/{path}".encode() in patch.body for path in hosted)


# --- What is wrong -------------------------------------------------------------------------


def test_a_wrong_kernel_is_found_out_whatever_the_batch(
    wrong_migrate: Callable[..., object],
) -> None:
    rig = wrong_migrate("migrate-entry-not-dirty")
    for one in (row(32), row(512, measure="metadata")):
        with pytest.raises(VerificationFailed, match="entry 0") as raised:
            check_rows(rig, [one])
        assert raised.value.exit_code == 5


@pytest.mark.vm
def test_a_batch_that_is_marked_as_copied_but_is_not_is_found_out(
    wrong_migrate: Callable[..., object],
) -> None:
    rig = wrong_migrate("migrate-marked-not-copied", ("migrate-offload",))
    with pytest.raises(VerificationFailed, match="byte of a target's frame"):
        check_rows(rig, [row(32, mode="dma")])
