# SPDX-License-Identifier: GPL-2.0-only
"""What a row of migrate may be, and which of the shipped ones run on how many CPUs."""

import math
from typing import Any

import pytest
from scipy.optimize import least_squares

from experiments.migrate.engine import MODELS
from experiments.migrate.plan import suit
from experiments.migrate.rows import PMD_BYTES, Migrate, MigrateRow
from ream.errors import BadUsage
from ream.experiment import GridPlace, named
from ream.published import check_references, load_tables, lookup
from ream.stage.suit import suit_rows

SHIPPED = named("migrate")
assert isinstance(SHIPPED, Migrate)
NATIVE = SHIPPED.at("native").rows
SIZES = ("4K", "16K", "64K", "256K", "1M", "2M")


def row(name: str = "row", **fields: Any) -> MigrateRow:
    return MigrateRow.model_validate({"name": name, "folio_bytes": "64KiB", "rounds": 1, **fields})


# --- One row ---------------------------------------------------------------------------


def test_a_folio_of_2_mib_is_mapped_by_a_pmd_and_smaller_ones_by_ptes() -> None:
    assert row(folio_bytes="1MiB").mapped == "ptes"
    assert row(folio_bytes="2MiB").mapped == "pmd"
    assert row(folio_bytes="2MiB", mapped="ptes").mapped == "ptes"


@pytest.mark.parametrize(
    ("fields", "entries"),
    [
        ({}, 65536),
        ({"mappings": 2}, 131072),
        ({"folio_bytes": "2MiB"}, 128),
        ({"folio_bytes": "2MiB", "mapped": "ptes"}, 65536),
        ({"folio_bytes": "2MiB", "mappings": 2}, 256),
    ],
)
def test_entries_are_counted_in_every_address_space(fields: dict[str, Any], entries: int) -> None:
    one = row(**fields)
    assert one.nr_ptes == entries == one.params()["nr_ptes"]
    assert (one.written_bytes, one.bytes_of) == (256 << 20, "memory")


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"folio_bytes": "8KiB"}, "from 4 KiB to 2 MiB, but not 8 KiB"),
        ({"folio_bytes": "12KiB"}, "must be a power of two"),
        ({"folio_bytes": "4MiB"}, "must be a power of two"),
        ({"buffer_bytes": "3MiB"}, "buffer_bytes must be a multiple of 2 MiB"),
        ({"mapped": "pmd"}, "only folios of 2 MiB can be mapped by a PMD"),
        ({"threads": 2}, "threads are not given here: say channels"),
        ({"measure": "metadata", "channels": 1}, "so it has no channels"),
        ({"engine": "dma"}, "engine is given, but no channels"),
        ({"engine_model": "ptdma-v4-grid"}, "engine_model is given, but no channels"),
        ({"channels": 1, "engine_model": "declared"}, "needs engine_setup_ns and engine_mb_per_s"),
        ({"channels": 1, "engine_setup_ns": 1}, "need engine_model = declared"),
        (
            {"channels": 1, "engine": "dma", "engine_model": "ptdma-v4-grid"},
            "is what every row with an engine_model has",
        ),
        ({"channels": 17}, "less than or equal to 16"),
        ({"stage": "vm", "pre_state": "cold"}, "pre_state can only be set in the native stage"),
        ({"stage": "vm", "measure": "metadata"}, "measure can only be set in the native stage"),
        (
            {"stage": "vm", "folio_bytes": "2MiB", "mapped": "ptes"},
            "mapped can only be set in the native stage",
        ),
        ({"stage": "live", "channels": 1}, "leaves the running kernel's copying as it is"),
    ],
)
def test_what_cannot_be_moved_is_refused(fields: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        row(**fields)


def test_a_row_stands_in_the_grid_by_its_channels_and_size_alone() -> None:
    assert row(channels=4, engine_model="ptdma-v4-grid").cell == GridPlace(4, "64K")
    assert row(folio_bytes="2MiB").cell == GridPlace(0, "2M")
    for other in (
        {"mappings": 2},
        {"measure": "metadata"},
        {"tlb_flush": "measured"},
        {"mode": "async"},
        {"pre_state": "cold"},
        {"channels": 1},
        {"channels": 1, "engine": "dma"},
        {"folio_bytes": "2MiB", "mapped": "ptes"},
    ):
        assert row(**other).cell is None


def test_a_title_names_what_is_not_as_usual() -> None:
    assert row().title() == "move 256 MiB, folios of 64 KiB, serial"
    assert row(channels=2, engine="dma").title() == (
        "move 256 MiB, folios of 64 KiB, 2 channels of the DMA engine"
    )
    assert row(measure="metadata", mappings=2, pre_state="cold").title() == (
        "unmap and remap 256 MiB, folios of 64 KiB, nothing is copied, 2 address spaces,"
        " cold, folios shuffled"
    )


# --- The shipped ones ------------------------------------------------------------------


def test_the_native_rows_are_the_published_table_and_more() -> None:
    table = lookup(load_tables(), "migrate-offload-v4")
    lines = {(line.params["channels"], line.params["folio"]) for line in table.rows}
    cells = [(one.cell.channels, one.cell.folio) for one in NATIVE if one.cell]
    assert sorted(cells) == sorted(lines)
    assert tuple(dict.fromkeys(folio for _, folio in cells)) == SIZES


def test_every_row_with_channels_is_compared_with_its_line_and_its_size_before() -> None:
    check_references(SHIPPED.rows, load_tables())
    for one in SHIPPED.rows:
        compared = one.cell is not None and one.channels > 0
        assert bool(one.published) is bool(one.differs) is compared
        for ref in one.published:
            assert ref.params == {"channels": one.channels, "folio": one.folio}
            assert ref.before == {"channels": 0, "folio": one.folio}


def test_metadata_are_measured_at_every_size() -> None:
    alone = [one for one in NATIVE if one.measure == "metadata" and one.mappings == 1]
    assert [one.folio for one in alone] == [*SIZES, "2M"]
    assert [one.mapped for one in alone] == ["ptes"] * 5 + ["pmd", "ptes"]


def test_an_unknown_row_names_no_other_stage() -> None:
    with pytest.raises(BadUsage, match="migrate has no row 4k .did you mean live-4k or live-64k"):
        SHIPPED.at("live").only(["4k"])


# --- CPUs ------------------------------------------------------------------------------


def test_more_than_two_channels_a_cpu_do_not_run_and_more_than_one_get_no_verdict() -> None:
    threads = [one.model_copy(update={"engine_model": "none"}) for one in NATIVE]
    suited = suit_rows(threads, lambda one: one.workers, what="channel", cpus=2)
    assert suited.cpus == 4
    assert set(suited.by_reason()) == {f"{n} channels on 2 CPUs" for n in (8, 12, 16)}
    assert {one.channels for one in suited.rows} == {0, 1, 2, 4}
    shared = {one.name for one in NATIVE if one.channels == 4}
    compared = {one.name for one in NATIVE if one.published}
    assert {one.name for one in suited.rows if one.no_verdict} == shared & compared
    assert set(suited.remarks) == shared
    assert set(suited.remarks.values()) == {("oversubscribed: 4 channels shared 2 CPUs",)}
    (warning,) = suited.warnings
    assert "several channels shared a CPU" in warning


def test_channels_of_a_model_want_no_cpu() -> None:
    modelled = [one for one in NATIVE if one.model]
    assert {one.channels for one in modelled} == {1, 2, 4, 8, 12, 16}
    suited = suit(modelled, cpus=1)
    assert (suited.rows, suited.skipped, suited.remarks) == (tuple(modelled), {}, {})
    assert suited.cpus == 2  # whose TLBs a kernel flushes, too
    assert {one.cpus_wanted for one in modelled} == {1}
    assert {one.stands_in for one in modelled} == {None}
    assert row(channels=2).stands_in == "a CPU thread"


def test_a_model_is_the_published_grids_or_declared_and_says_its_numbers() -> None:
    one = row(channels=2, engine_model="ptdma-v4-grid")
    assert (one.provider, one.model) == ("dma", MODELS["ptdma-v4-grid"])
    assert one.title().endswith("ptdma-v4-grid (570 ns a descriptor, 6.18 GB/s a channel)")
    own = {"engine_model": "declared", "engine_setup_ns": 3200, "engine_mb_per_s": 13100}
    assert row(channels=1, **own).params().items() >= own.items()
    assert row(channels=1).params()["engine_setup_ns"] is None


def test_the_shipped_model_is_what_fits_the_published_grid_best() -> None:
    """Least squares of log rates: metadata of a folio, and a share of its copy for each channel."""
    table = lookup(load_tables(), "migrate-offload-v4")
    sizes = {name: 4096 * 4**i for i, name in enumerate(SIZES[:-1])} | {"2M": PMD_BYTES}
    serial = {line.params["folio"]: line.values.get("before") for line in table.rows[:6]}

    def metadata_ns(folio: str) -> float:
        return sizes[folio] / serial[folio] - sizes[folio] / serial["2M"]

    def off(logs: list[float]) -> list[float]:
        setup_ns, bytes_per_ns = map(math.exp, logs)
        return [
            math.log(
                (metadata_ns(folio) + (setup_ns + sizes[folio] / bytes_per_ns) / channels)
                * line.values["published"]
                / sizes[folio]
            )
            for line in table.rows[6:]
            for folio, channels in [(line.params["folio"], line.params["channels"])]
        ]

    found = least_squares(off, [math.log(500), math.log(5)])
    setup_ns, bytes_per_ns = map(math.exp, found.x)
    shipped = MODELS["ptdma-v4-grid"]
    assert shipped.setup_ns == pytest.approx(setup_ns, rel=0.01)
    assert shipped.mb_per_s == pytest.approx(1000 * bytes_per_ns, rel=0.01)
    # How well: a rate is off by 20 % typically, 2 MiB with one channel by a factor of two.
    assert math.sqrt(sum(found.fun**2) / len(found.fun)) == pytest.approx(0.20, abs=0.01)
    assert math.exp(max(abs(found.fun))) == pytest.approx(2.05, abs=0.05)


def test_no_more_channels_than_threads_were_asked_for() -> None:
    suited = suit_rows(NATIVE, lambda one: one.channels, what="channel", most=1, cpus=2)
    assert {one.channels for one in suited.rows} == {0, 1}
    assert suited.skipped["2m-2-channels"] == "2 channels, and --threads is 1"
    assert suited.skipped["2m-8-channels"] == "8 channels on 2 CPUs"
    assert suited.warnings == ()
