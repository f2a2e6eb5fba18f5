# SPDX-License-Identifier: GPL-2.0-only
"""Numbers of a record that its samples do not give are named; those of another version apart."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from ream.history.recompute import FieldDifference, compared, recompute
from ream.paths import CHECKOUT
from ream.record.record import PLAN, RUN, SAMPLES, Record
from ream.report import ran
from record_world import digit_changed, first_median, made, sums_made_again
from shipped import EACH


def again(record: Record) -> Record:
    """Load the record again from disk, after making its checksums match the files there."""
    sums_made_again(record.path)
    return Record.load(str(record.path), record.path.parent)


@pytest.mark.parametrize("experiment", ["zone-device", "compact"])
def test_the_samples_of_a_record_give_every_number_of_it(experiment: str, tmp_path: Path) -> None:
    record = made(tmp_path, experiment=experiment)
    found = recompute(record)
    assert (found.faults, found.other_version) == ((), None)
    changed = [row for row in record.run["rows"] if row["asked_params"]]
    assert len(changed) == 1  # one row ran otherwise than asked
    assert record.run["rows"][0]["beside"]
    assert record.run["rows"][0]["remarks"] == ["a remark"]


def test_a_changed_number_is_named_with_both_values(tmp_path: Path) -> None:
    record = made(tmp_path)
    place, value = first_median(record)
    digit_changed(record.path, RUN, f'"median": {value}', f'"median": {value + 1}')
    assert recompute(again(record)).faults == (
        f"{RUN}: {place} is {value + 1}, its samples give {value}",
    )


NUMBERS = ("low", "high", "p_value", "per_page", "nr_bytes", "launches", "smallest_effect", "ratio")


@pytest.mark.parametrize("name", NUMBERS)
def test_every_kind_of_number_is_made_again(name: str, tmp_path: Path) -> None:
    record = made(tmp_path)
    run = json.loads((record.path / RUN).read_text())
    of = run["rows"][0] if name == "smallest_effect" else run["rows"][0]["variants"]["ream"]
    of[name] *= 2
    (record.path / RUN).write_text(json.dumps(run))
    (fault,) = recompute(again(record)).faults
    assert f".{name} is " in fault


def test_a_changed_sample_is_seen_in_the_numbers(tmp_path: Path) -> None:
    record = made(tmp_path)
    place, _ = first_median(record)
    lines = (record.path / SAMPLES).read_text().splitlines()
    for number, line in enumerate(lines):
        fields = json.loads(line)
        if (fields["subject"], fields["launch"]) == ("ream", 0):
            lines[number] = json.dumps(fields | {"time_ns": fields["time_ns"] * 2})
    (record.path / SAMPLES).write_text("\n".join(lines) + "\n")
    found = recompute(again(record))
    assert any(place in fault for fault in found.faults)
    assert "fields more" in found.faults[-1]


def test_what_another_version_made_is_no_fault_but_named(tmp_path: Path) -> None:
    record = made(tmp_path, made_by="0123456789ab")
    assert recompute(record).other_version is None  # nothing differs: nothing to say
    run = json.loads((record.path / RUN).read_text())
    run["rows"][0]["smallest_effect"] *= 2
    (record.path / RUN).write_text(json.dumps(run))
    found = recompute(again(record))
    assert found.faults == ()
    assert str(found.other_version).startswith(f"{RUN}: rows[")
    assert ".smallest_effect is " in str(found.other_version)


@pytest.mark.parametrize("field", ["median", "ratio", "launches", "nr_bytes"])
def test_a_number_that_samples_alone_decide_is_a_fault_whatever_version_made_it(
    field: str, tmp_path: Path
) -> None:
    record = made(tmp_path, made_by="0123456789ab")
    run = json.loads((record.path / RUN).read_text())
    run["rows"][0]["variants"]["ream"][field] *= 2
    (record.path / RUN).write_text(json.dumps(run))
    found = recompute(again(record))
    (fault,) = found.faults
    assert f".variants.ream.{field} is " in fault
    assert found.other_version is None


def test_a_null_that_an_older_version_had_no_field_for_is_nothing_to_name(tmp_path: Path) -> None:
    record = made(tmp_path, made_by="0123456789ab")
    run = json.loads((record.path / RUN).read_text())
    assert run["rows"][0].pop("counted", 0) is None
    (record.path / RUN).write_text(json.dumps(run))
    assert recompute(again(record)).other_version is None


def test_a_plan_that_has_lost_what_came_of_it_is_a_fault(tmp_path: Path) -> None:
    record = made(tmp_path)
    plan = json.loads((record.path / PLAN).read_text())
    del plan[ran.RAN]
    (record.path / PLAN).write_text(json.dumps(plan))
    assert recompute(again(record)).faults == (
        f"{RUN} cannot be made again from the samples: {PLAN} has no {ran.RAN}",
    )


@pytest.mark.parametrize("path", EACH)
def test_medians_of_the_records_that_documents_quote_are_their_samples(path: Path) -> None:
    found = recompute(Record.load(str(path), path.parent))
    assert (found.faults, found.other_version) == ((), None)


def test_a_type_is_a_difference_and_a_missing_field_too() -> None:
    assert list(compared({"a": 1, "b": [True]}, {"a": 1.0, "b": [True], "c": None})) == [
        FieldDifference("a", "1", "1.0"),
        FieldDifference("c", "absent", "null"),
    ]


HANDLES_RECORDS_ONLY = {
    "ream",
    "ream.command",
    "ream.errors",
    "ream.nearest",
    "ream.paths",
    "ream.record",
    "ream.record.archive",
    "ream.record.journal",
    "ream.record.packed",
    "ream.record.record",
    "ream.record.regular",
    "ream.record.sums",
    "ream.settings",
}
"""What a summary imports and no number depends on."""


def test_whatever_a_number_depends_on_is_in_the_digest() -> None:
    said = subprocess.run(
        [sys.executable, "-c", "import ream.report.summary, sys; print(*sys.modules)"],
        env={"PYTHONPATH": str(CHECKOUT / "lab")},
        capture_output=True,
        text=True,
        check=True,
    )
    imported = {name for name in said.stdout.split() if name.split(".")[0] == "ream"}
    package = Path(ran.__file__).parent.parent
    digested = {path for pattern in ran._SOURCES for path in package.glob(pattern)}
    names = {
        ".".join(("ream", *path.relative_to(package).with_suffix("").parts)) for path in digested
    }
    names |= {name.removesuffix(".__init__") for name in names}
    assert imported - names == HANDLES_RECORDS_ONLY
