# SPDX-License-Identifier: GPL-2.0-only
"""What others get of our records: CSV and JSON lines."""

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from history_world import written
from ream.compare.alike import differences
from ream.compare.facts import of_record
from ream.errors import ReamError
from ream.history import entry, export, flat
from ream.history.compare import compare
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


def test_the_same_records_give_the_same_bytes() -> None:
    for write in (export.to_csv, export.to_jsonl):
        assert write(RESULTS, flat.RESULTS) == write(RESULTS, flat.RESULTS)


# --- A record that was changed afterwards ---------------------------------------------------

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
        lambda: compare([changed, other], unlike=True),
        lambda: list(flat.results(changed)),
        lambda: list(flat.samples(changed)),
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
    (path,) = (path for path in SHIPPED if path.name.endswith(f"-{record}"))
    return {line["row"]: line for line in flat.results(Record.load(str(path), path.parent))}
