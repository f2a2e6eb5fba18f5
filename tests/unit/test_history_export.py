# SPDX-License-Identifier: GPL-2.0-only
"""What others get of our records: CSV, Parquet, JSON lines, KCIDB."""

import io
import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kcidb_io.schema import LATEST

from history_world import kernel, series, written
from ream.compare.alike import differences
from ream.compare.facts import of_record
from ream.errors import BadUsage, ReamError
from ream.history import entry, export, flat
from ream.history.compare import compare
from ream.history.kcidb import patchset_hash, to_kcidb
from ream.kernel.series import load_series
from ream.paths import CHECKOUT, SERIES
from ream.record.record import Record
from ream.report.contract import Result, Summary
from shipped import RECORDS, SHIPPED

LOADED = [Record.load(str(path), RECORDS) for path in SHIPPED]
RESULTS = [line for record in LOADED for line in flat.results(record)]


def of(record: Record) -> Summary:
    return Summary.from_object(record.run, source=str(record.path))


def test_every_flat_field_of_the_contract_is_in_a_column() -> None:
    elsewhere = {
        "median": "median_ns",
        "rounds": "nr_samples",
        "per_page": "instructions_per_page",
        "per_entry": "ns_per_entry",
        "per_batch": "ns_per_batch",
        "limit_threads": "limit_threads",
        "columns": "compaction_asked",
        "layout": "layout_depends",
    }
    for name in Result.model_fields:
        assert elsewhere.get(name, name) in flat.RESULTS


def test_half_a_character_hinders_no_export() -> None:
    line = {name: "\ud800" if kind == "text" else None for name, kind in flat.SAMPLES.items()}
    assert b"\\ud800" in export.to_csv([line], flat.SAMPLES)
    assert b"\\ud800" in export.to_jsonl([line], flat.SAMPLES)
    table = pyarrow.parquet.read_table(io.BytesIO(export.to_parquet([line], flat.SAMPLES)))
    assert table["row"].to_pylist() == ["\\ud800"]


def test_a_seed_that_no_column_of_parquet_holds_is_null_there() -> None:
    line = dict.fromkeys(flat.RESULTS) | {"seed": 1 << 64, "launches": 8}
    table = pyarrow.parquet.read_table(io.BytesIO(export.to_parquet([line], flat.RESULTS)))
    assert (table["seed"].to_pylist(), table["launches"].to_pylist()) == ([None], [8])
    assert str(1 << 64).encode() in export.to_csv([line], flat.RESULTS)


def test_parquet_has_a_type_for_each_column_even_an_empty_one() -> None:
    for lines in (RESULTS, RESULTS[:1], []):
        table = pyarrow.parquet.read_table(io.BytesIO(export.to_parquet(lines, flat.RESULTS)))
        assert table.column_names == list(flat.RESULTS)
        types = {
            name: str(kind)
            for name, kind in zip(table.column_names, table.schema.types, strict=True)
        }
        assert (types["median_ns"], types["ratio"]) == ("int64", "double")
        assert (types["verified"], types["started"]) == ("bool", "timestamp[ms, tz=UTC]")
        assert table.column("ratio").to_pylist() == [line["ratio"] for line in lines]


def test_the_same_records_give_the_same_bytes() -> None:
    for write in (export.to_csv, export.to_jsonl, export.to_parquet):
        assert write(RESULTS, flat.RESULTS) == write(RESULTS, flat.RESULTS)
    assert to_kcidb(LOADED, "ream") == to_kcidb(LOADED, "ream")


# --- KCIDB -------------------------------------------------------------------------------


def report(*records: Record, origin: str = "ream") -> dict[str, Any]:
    value = json.loads(to_kcidb(records, origin))
    assert isinstance(value, dict)
    return value


def test_a_report_is_valid_by_the_newest_schema() -> None:
    value = report(*LOADED)
    LATEST.validate(value)
    assert (value["version"]["major"], value["version"]["minor"]) == (LATEST.major, LATEST.minor)
    assert LATEST.is_compatible_exactly(value)
    for kind in ("checkouts", "builds", "tests"):
        ids = [one["id"] for one in value[kind]]
        assert len(ids) == len(set(ids)) > 0
    checkouts = {one["id"] for one in value["checkouts"]}
    builds = {one["id"]: one for one in value["builds"]}
    assert {one["checkout_id"] for one in builds.values()} <= checkouts
    assert {one["build_id"] for one in value["tests"]} <= builds.keys()


def test_nothing_in_a_report_is_null() -> None:
    assert "null" not in to_kcidb(LOADED, "ream").decode()


def test_counts_keep_their_unit_and_names_become_paths(tmp_path: Path) -> None:
    value = report(written(tmp_path, rows=("a.b+c",), unit="instructions"))
    test = value["tests"][0]
    assert test["path"] == "ream.zone-device.a_b_c.before"
    assert test["number"]["unit"] == "instructions"
    LATEST.validate(value)


def test_a_row_that_did_not_run_is_a_skipped_test(tmp_path: Path) -> None:
    record = written(tmp_path)
    first, second = record.run["rows"]
    skipped = {**second, "variants": {}, "skipped": "no such CPU"}
    value = report(Record(record.path, {**record.run, "rows": [first, skipped]}, record.receipt))
    LATEST.validate(value)
    (test,) = [one for one in value["tests"] if one["status"] == "SKIP"]
    assert (test["path"], test["comment"]) == ("ream.zone-device.devdax", "no such CPU")
    assert "number" not in test


def test_a_patchset_hash_is_the_id_of_the_series(tmp_path: Path) -> None:
    shipped = load_series(SERIES / "zone-device")
    assert patchset_hash(patch.sha256 for patch in shipped.patches) == shipped.id
    assert patchset_hash([]) == ""
    both = {"before": [], "published": series("a"), "ream": [*series("a"), *series("b")]}
    value = report(written(tmp_path, receipt={"kernel": kernel(variants=both)}))
    hashes = {one["comment"][-9:]: one["patchset_hash"] for one in value["checkouts"]}
    assert hashes["0 patches"] == ""
    assert hashes["2 patches"] == patchset_hash(["a" * 64, "b" * 64])


def test_an_origin_that_kcidb_refuses_is_refused() -> None:
    for name in ("", "Ream", "my-ci", "a:b"):
        with pytest.raises(BadUsage, match="--origin"):
            to_kcidb(LOADED[:1], name)


# --- A record that somebody has written into -----------------------------------------------

ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=4,
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in an object, by the keys that lead there."""
    inner = value.items() if isinstance(value, dict) else enumerate(value)
    found = [path] if path else []
    if isinstance(value, dict | list):
        for key, one in inner:
            found += places(one, (*path, key)) if isinstance(one, dict | list) else [(*path, key)]
    return found


@pytest.mark.parametrize("file", ["run.json", "receipt.json"])
@given(data=st.data())
@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_a_record_says_nothing_but_a_clear_error_comes_of_it(
    tmp_path: Path, file: str, data: st.DataObject
) -> None:
    whole, runs = tmp_path / file, tmp_path / "runs"
    if not whole.exists():
        other = written(tmp_path / "other", 1, launches=2, rounds=1, rows=("row",))
        written(runs, 2, launches=2, rounds=1, rows=("row",))
        (other.path / file).rename(whole)
        (other.path / file).write_bytes(whole.read_bytes())
    value = json.loads(whole.read_text())
    *way, last = data.draw(st.sampled_from(places(value)))
    inner = value
    for key in way:
        inner = inner[key]
    inner[last] = data.draw(ANYTHING)
    (path,) = runs.iterdir()
    (path / file).write_text(json.dumps(value))
    assert entry.read(path) is not None
    try:
        changed = Record.load(str(path), runs)
    except ReamError:
        return
    other = Record.load(str(next((tmp_path / "other").iterdir())), runs)
    for use in (
        lambda: differences("compare", of_record(changed), of_record(other)),
        lambda: compare([changed, other], force=True),
        lambda: list(flat.results(changed)),
        lambda: list(flat.samples(changed)),
        lambda: LATEST.validate(report(changed)),
    ):
        with suppress(ReamError):
            use()


def test_what_a_part_stands_for_and_what_stands_for_a_device_are_exported() -> None:
    of_fork = flat_rows("fork-native-6e45")
    assert of_fork["fork-16k"]["whole"] == "fork()"
    assert of_fork["fork-16k"]["whole_low"] < of_fork["fork-16k"]["whole_ratio"]
    assert of_fork["fork-16k"]["smallest_effect"] > 0
    of_migrate = flat_rows("migrate-native-3e93")
    assert any(row["model"] for row in of_migrate.values())
    of_control = flat_rows("fork-native-4fed")
    assert [row["control_found"] for row in of_control.values()] == [True]


def flat_rows(record: str) -> dict[str, Any]:
    (path,) = (CHECKOUT / "docs" / "records").glob(f"*-{record}")
    return {line["row"]: line for line in flat.results(Record.load(str(path), path.parent))}
