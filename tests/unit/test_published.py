# SPDX-License-Identifier: GPL-2.0-only
from pathlib import Path
from typing import Any

import pytest

from ream.errors import BadUsage
from ream.experiment import PublishedRef, named
from ream.folders import TABLES, file_of, names
from ream.published import check_references, load_tables, lookup


def test_every_table_in_the_checkout_is_valid() -> None:
    tables = load_tables()
    assert {"zone-device-v4", "fork-pte-batch-v3", "compact-dma"} <= {t.id for t in tables}


UNSAID = {
    ("zone-device-v3", "message_id"),
    ("zone-device-private-popple", "base"),
    *((one.id, "base") for one in load_tables() if one.experiment == "deferred-init"),
    ("mprotect-falcato-v1", "base"),
    ("mprotect-falcato-v1", "message_id"),
    ("mprotect-falcato-v2", "base"),
    ("mprotect-falcato-v2-yang", "base"),
    ("mprotect-falcato-v2-yang", "message_id"),
    ("mprotect-pte-batch-v5", "base"),
    ("mprotect-shared-dirty-metal-falcato", "message_id"),
    ("mprotect-shared-dirty-metal-phases", "base"),
    ("mprotect-shared-dirty-metal-phases", "message_id"),
    ("mprotect-shared-dirty-metal-probe", "message_id"),
    ("mprotect-shared-dirty-metal-releases", "message_id"),
    ("mprotect-shared-dirty-metal-single", "message_id"),
    ("mprotect-shared-dirty-qemu-batching", "message_id"),
    ("mprotect-shared-dirty-qemu-falcato", "message_id"),
    ("mprotect-shared-dirty-qemu-may18", "message_id"),
    ("mprotect-shared-dirty-standalone-qemu", "message_id"),
    ("mremap-batch-raptor-lake", "base"),
}
"""What the sources themselves leave out."""


def test_a_table_has_date_message_and_base_wherever_its_source_does() -> None:
    missing = {
        (table.id, name)
        for table in load_tables()
        for name in ("date", "message_id", "base")
        if getattr(table, name) is None
    }
    assert missing == UNSAID


@pytest.mark.parametrize("name", names())
def test_a_row_is_compared_with_lines_that_there_are_also_where_it_is_asked_for(name: str) -> None:
    check_references(named(name).rows, load_tables())


def test_a_printed_change_is_that_of_the_printed_values() -> None:
    checked = 0
    for table in load_tables():
        for row in table.rows:
            if (change := row.values.get("change_pct")) is not None:
                exact = 100 * (row.values["published"] / row.values["before"] - 1)
                assert round(exact) == change, (table.id, row.params)
                checked += 1
    assert checked >= 18


def test_a_ratio_is_published_over_before() -> None:
    table = lookup(load_tables(), "zone-device-v4")
    row = table.row({"config": "fsdax, map=dev", "when": "rebind"})
    ref = PublishedRef(id=table.id, params=row.params)
    assert table.printed(ref).ratio == pytest.approx(108.36 / 262.12)


def test_a_source_that_printed_only_the_ratio_keeps_it() -> None:
    table = lookup(load_tables(), "zone-device-private-popple")
    printed = table.printed(PublishedRef(id=table.id, params=table.rows[0].params))
    assert (printed.before, printed.published, printed.ratio) == (None, None, 1.03)
    assert not table.values_are_absolute


def test_a_line_without_a_before_has_no_ratio() -> None:
    table = lookup(load_tables(), "migrate-offload-v4")
    line = {"channels": 12, "folio": "4K"}
    assert table.printed(PublishedRef(id=table.id, params=line)).ratio is None
    base = {"channels": 0, "folio": "4K"}
    printed = table.printed(PublishedRef(id=table.id, params=line, before=base))
    assert (printed.before, printed.before_sd) == (3.55, 0.19)
    assert printed.published == 4.35


def test_a_ratio_of_rates_is_turned_over_so_that_faster_is_less_than_1() -> None:
    table = lookup(load_tables(), "migrate-offload-v4")
    for channels, ratio in ((1, 3.55 / 2.63), (16, 3.55 / 4.4)):
        ref = PublishedRef(
            id=table.id,
            params={"channels": channels, "folio": "4K"},
            before={"channels": 0, "folio": "4K"},
        )
        assert table.printed(ref).ratio == pytest.approx(ratio)


def test_a_value_of_which_it_is_not_said_what_is_better_is_not_compared() -> None:
    table = lookup(load_tables(), "compact-dma")
    ref = PublishedRef(
        id=table.id, params={"mode": "dma"}, before={"mode": "baseline"}, value="migrated"
    )
    said = r'better is neither "higher" nor "lower" of migrated \(it is \'lower'
    with pytest.raises(BadUsage, match=said):
        table.printed(ref)
    by_time = table.printed(ref.model_copy(update={"value": "wall_ms"}))
    assert (by_time.unit, by_time.better) == ("ms", "lower")
    assert by_time.ratio == pytest.approx(18887 / 16708)


def test_a_value_that_is_better_when_higher_is_turned_over() -> None:
    table = lookup(load_tables(), "compact-dma")
    ref = PublishedRef(
        id=table.id,
        params={"mode": "busy-dma"},
        before={"mode": "busy-baseline"},
        value="hog_iterations",
    )
    printed = table.printed(ref)
    assert printed.better == "higher"
    assert printed.ratio == pytest.approx(62300165085 / 66022189744)


SKYLAKE = PublishedRef(
    id="deferred-init-skylake", before={"threads": 0}, value="init_ms", nearest="threads"
)


def test_the_kernel_before_may_be_another_line() -> None:
    table = lookup(load_tables(), SKYLAKE.id)
    ref = SKYLAKE.model_copy(update={"params": {"threads": 13}, "nearest": None})
    printed = table.printed(ref)
    assert (printed.before, printed.published) == (1785.7, 157.0)
    assert (printed.before_sd, printed.published_sd) == (7.6, 0.0)
    assert printed.ratio == pytest.approx(157.0 / 1785.7)
    assert printed.threads == 13


@pytest.mark.parametrize(
    ("ours", "theirs"), [(1, 1), (2, 1), (4, 6), (6, 6), (16, 13), (500, 52), (None, 52)]
)
def test_the_line_with_the_nearest_number_of_threads_is_taken(
    ours: int | None, theirs: int
) -> None:
    """16 is as far from 13 as from 19: the fewer. The kernel before is no number of threads."""
    table = lookup(load_tables(), SKYLAKE.id)
    assert table.printed(SKYLAKE, ours).threads == theirs


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"value": "boot"}, "no row of any parameters has threads and boot"),
        ({"value": "boot_pct", "nearest": None}, "8 rows have any parameters, not one"),
        (
            {"value": "boot_pct", "params": {"threads": 1}, "nearest": None},
            "the row of node_pct=0, threads=0 has no boot_pct above 0",
        ),
        ({"before": {"threads": -1}}, "0 rows have threads=-1, not one"),
        ({"params": {"threads": 3}}, "no row of threads=3 has threads and init_ms"),
    ],
)
def test_a_line_or_value_that_is_not_there_is_refused(changes: dict[str, Any], said: str) -> None:
    ref = SKYLAKE.model_copy(update=changes)
    row = named("zone-device").rows[0]
    lost = row.model_copy(update={"published": (*row.published, ref)})
    with pytest.raises(BadUsage) as refused:
        check_references([lost], load_tables())
    assert str(refused.value) == f"fsdax-100GB: published table deferred-init-skylake: {said}"


def test_a_comparison_must_name_one_line() -> None:
    table = lookup(load_tables(), "zone-device-v4")
    with pytest.raises(BadUsage, match="2 rows have when=rebind, not one"):
        table.row({"when": "rebind"})
    with pytest.raises(BadUsage, match="0 rows have when=never, not one"):
        table.row({"when": "never"})


def test_an_unknown_table_is_refused_with_those_there_are() -> None:
    with pytest.raises(BadUsage, match=r"table fork-pte-batch \(did you mean fork-pte-batch-v3"):
        lookup(load_tables(), "fork-pte-batch")
    with pytest.raises(BadUsage, match=r"no published table nope; `ream list EXPERIMENT` shows"):
        lookup(load_tables(), "nope")


def test_references_are_checked_before_a_run() -> None:
    tables = load_tables()
    rows = named("zone-device").rows
    check_references(rows, tables)
    lost = [
        rows[0].model_copy(update={"published": (PublishedRef(id="nope"),)}),
        rows[1],
        rows[2].model_copy(update={"published": (PublishedRef(id="zone-device-v4"),)}),
    ]
    with pytest.raises(BadUsage) as refused:
        check_references(lost, tables)
    assert [line[: line.index(" ")] for line in str(refused.value).splitlines()] == [
        "fsdax-100GB:",
        "devdax-ram-100GB:",
    ]


def test_faults_of_a_table_name_file_and_field(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(
        '[[table]]\nid = "x"\nrows = [{ params = {}, value = 1 }]\n'
    )
    with pytest.raises(BadUsage) as refused:
        load_tables(tmp_path / "mine.toml")
    lines = str(refused.value).splitlines()
    assert f"{tmp_path}/mine.toml: table.0.experiment: Field required" in lines
    assert any("table.0.rows.0.value: Extra inputs" in line for line in lines)


def test_two_tables_may_not_share_an_id(tmp_path: Path) -> None:
    text = (file_of("fork").with_name(TABLES)).read_text()
    (tmp_path / "again.toml").write_text(text + text)
    with pytest.raises(BadUsage, match="more than one table is called fork-pte-batch-v3"):
        load_tables(tmp_path / "again.toml")
