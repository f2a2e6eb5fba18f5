# SPDX-License-Identifier: GPL-2.0-only
from pathlib import Path

import pytest

from ream.errors import BadUsage
from ream.experiment import PublishedRef, load
from ream.paths import EXPERIMENTS, PUBLISHED
from ream.published import check_references, load_tables, lookup


def test_every_table_in_the_checkout_is_valid() -> None:
    tables = load_tables(PUBLISHED)
    assert {"zone-device-v4", "fork-pte-batch-v3", "compact-dma"} <= {t.id for t in tables}


def test_a_ratio_is_published_over_before() -> None:
    table = lookup(load_tables(PUBLISHED), "zone-device-v4")
    row = table.row({"config": "fsdax, map=dev", "when": "rebind"})
    assert table.ratio(row) == pytest.approx(108.36 / 262.12)


def test_a_source_that_printed_only_the_ratio_keeps_it() -> None:
    table = lookup(load_tables(PUBLISHED), "zone-device-private-popple")
    assert table.ratio(table.rows[0]) == 1.03
    assert not table.values_are_absolute


def test_a_line_without_a_before_has_no_ratio() -> None:
    table = lookup(load_tables(PUBLISHED), "migrate-offload-v4")
    assert table.ratio(table.row({"channels": 12, "folio": "4K"})) is None


def test_a_comparison_must_name_one_line() -> None:
    table = lookup(load_tables(PUBLISHED), "zone-device-v4")
    with pytest.raises(BadUsage, match="2 rows have when=rebind, not one"):
        table.row({"when": "rebind"})
    with pytest.raises(BadUsage, match="0 rows have when=never, not one"):
        table.row({"when": "never"})


def test_an_unknown_table_is_refused_with_those_there_are() -> None:
    with pytest.raises(BadUsage, match=r"no published table nope; there are .*zone-device-v4"):
        lookup(load_tables(PUBLISHED), "nope")


def test_references_are_checked_before_a_run() -> None:
    tables = load_tables(PUBLISHED)
    rows = load(EXPERIMENTS / "zone-device.toml").rows
    check_references(rows, tables)
    lost = [
        rows[0].model_copy(update={"published": PublishedRef(id="nope", params={})}),
        rows[1],
        rows[2].model_copy(update={"published": PublishedRef(id="zone-device-v4", params={})}),
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
        load_tables(tmp_path)
    lines = str(refused.value).splitlines()
    assert f"{tmp_path}/mine.toml: table.0.experiment: Field required" in lines
    assert any("table.0.rows.0.value: Extra inputs" in line for line in lines)


def test_two_tables_may_not_share_an_id(tmp_path: Path) -> None:
    text = (PUBLISHED / "fork.toml").read_text()
    (tmp_path / "a.toml").write_text(text)
    (tmp_path / "b.toml").write_text(text)
    with pytest.raises(BadUsage, match="more than one table is called fork-pte-batch-v3"):
        load_tables(tmp_path)
