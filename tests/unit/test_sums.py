# SPDX-License-Identifier: GPL-2.0-only
"""What a record's checksums find, and what they leave alone."""

import gzip
import os
import subprocess
from pathlib import Path

import pytest

from ream.errors import BadUsage
from ream.history import entry, index
from ream.history.index import History
from ream.record.archive import add
from ream.record.pack import pack
from ream.record.record import RUN, SAMPLES, Record, open_record
from ream.record.sums import SUMS, has_sums
from record_world import RUN_ID, digit_changed, made, sums_made_again
from shipped import SHIPPED, copied

FILES = (
    "letter.txt",
    "noise.jsonl",
    "plan.json",
    "receipt.json",
    "run.json",
    "samples.jsonl",
    "table.txt",
)


@pytest.fixture
def record(tmp_path: Path) -> Record:
    return made(tmp_path / "runs")


@pytest.fixture
def packed(record: Record, tmp_path: Path) -> Path:
    return pack(record, tmp_path / "kept")


def loaded(path: Path) -> Record:
    return Record.load(str(path), path.parent)


def as_files(path: Path) -> dict[str, bytes]:
    return {one.name: one.read_bytes() for one in path.iterdir()}


def flipped(path: Path) -> None:
    """The last byte but one becomes another; size and name stay."""
    content = bytearray(path.read_bytes())
    content[-2] ^= 1
    path.write_bytes(content)


def sha256sum(path: Path) -> subprocess.CompletedProcess[str]:
    words = ["sha256sum", "--check", "--strict", SUMS]
    return subprocess.run(words, cwd=path, capture_output=True, text=True, check=False)


def test_every_file_of_a_record_has_a_checksum_that_sha256sum_reads(
    record: Record, packed: Path
) -> None:
    said = sha256sum(record.path)
    assert said.returncode == 0
    assert said.stdout.splitlines() == [f"{name}: OK" for name in FILES]
    assert sorted(one.name for one in record.path.iterdir()) == sorted((SUMS, *FILES))
    assert entry.faults(record.path) == entry.faults(packed) == ()


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("form", ["plain", "packed"])
def test_a_file_that_has_changed_is_refused_by_name(
    name: str, form: str, record: Record, tmp_path: Path
) -> None:
    path = record.path
    flipped(path / name)
    if form == "packed":  # an archive that another tool has made
        add(tmp_path / "made.zip", path.name, as_files(path))
        path = tmp_path / path.name
    with pytest.raises(BadUsage, match=f"{name}: its SHA-256 is not that in {SUMS}") as said:
        loaded(path)
    assert "\n" not in str(said.value)
    assert any(fault.startswith(f"{name}: ") for fault in entry.faults(path))


def test_all_files_that_have_changed_are_named_at_once(record: Record) -> None:
    for name in (RUN, SAMPLES, "table.txt"):
        flipped(record.path / name)
    assert [fault.split(":")[0] for fault in entry.faults(record.path)] == [
        RUN,
        SAMPLES,
        "table.txt",
    ]


def test_what_is_put_beside_a_record_is_not_read_in_its_place(record: Record) -> None:
    content = (record.path / SAMPLES).read_bytes()
    (record.path / f"{SAMPLES}.gz").write_bytes(gzip.compress(content))
    (record.path / SAMPLES).unlink()
    with pytest.raises(BadUsage, match=rf"samples\.jsonl\.gz: not in {SUMS}"):
        loaded(record.path)


def test_a_note_of_the_owner_beside_the_files_hinders_nobody(record: Record) -> None:
    (record.path / "my notes.txt").write_text("quiet machine, night\n")
    assert loaded(record.path).run == record.run


def test_a_record_that_has_lost_its_checksums_is_refused(record: Record) -> None:
    (record.path / SUMS).unlink()
    with pytest.raises(BadUsage, match=f"{SUMS} missing, with which it was written"):
        loaded(record.path)


def test_a_file_that_is_missing_is_named_when_all_is_read(record: Record) -> None:
    (record.path / "noise.jsonl").unlink()
    assert entry.faults(record.path) == (f"noise.jsonl missing, of which {SUMS} has a checksum",)


@pytest.mark.parametrize(
    "line",
    [
        "no digest",
        f"{'0' * 64}  ../other/run.json",
        f"{'0' * 64}  /etc/passwd",
        f"{'0' * 63}  run.json",
        f"{'0' * 64}  table.txt",
        "\udcff",
    ],
)
def test_a_damaged_list_of_checksums_is_named(record: Record, line: str) -> None:
    with (record.path / SUMS).open("a", errors="surrogateescape") as sums:
        sums.write(f"{line}\n")
    with pytest.raises(BadUsage, match=f"{SUMS}: .*cannot be told whether the record has changed"):
        loaded(record.path)


@pytest.mark.parametrize(
    "path",
    [path for path in SHIPPED if not has_sums(path)],
    ids=lambda path: path.name,
)
def test_records_of_before_checksums_are_read_as_ever(path: Path, tmp_path: Path) -> None:
    old = loaded(copied(path, tmp_path / path.name))
    assert old.receipt["schema"] == 1
    assert old.run["run"]
    assert loaded(pack(old, tmp_path / "kept")).run == old.run


def test_a_run_that_died_before_its_name_is_gone_on_with_and_summed_anew(tmp_path: Path) -> None:
    run_id = RUN_ID.format(number=7)
    partial = tmp_path / f".{run_id}.partial"
    with open_record(tmp_path, run_id) as record:
        record.journal.add("launch 0", "{}")
        record.journal.whole("launch 0")
        record.write(SUMS, f"{'0' * 64}  samples.jsonl\n")
    assert partial.is_dir()
    with open_record(tmp_path, run_id, resume=True) as record:
        path = record.finish({"schema": 1}, {"schema": 1}, table="", letter="")
    assert sha256sum(path).returncode == 0
    assert not any(name in (path / SUMS).read_text() for name in ("journal", "series", SUMS))


def _listed(runs: Path, db: Path) -> History:
    return index.look(runs, note=pytest.fail, index=db)


def test_the_history_sees_a_change_that_hides_behind_size_and_time(
    record: Record, tmp_path: Path
) -> None:
    runs, db = record.path.parent, tmp_path / "index.sqlite"
    assert len(_listed(runs, db).entries) == 1
    path = record.path / SAMPLES
    status = path.stat()
    flipped(path)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert [one.fault for one in _listed(runs, db).damaged if SAMPLES in one.fault]


def test_who_makes_the_checksums_again_is_left_to_the_samples(record: Record) -> None:
    digit_changed(record.path, "table.txt", "before", "BEFORE")
    sums_made_again(record.path)
    assert loaded(record.path).run == record.run
