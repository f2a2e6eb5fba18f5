# SPDX-License-Identifier: GPL-2.0-only
"""Copies of records for a repository: smaller, and read by everything as the record is."""

import json
from pathlib import Path

import pytest

from conftest import Ream
from history_world import written
from ream.errors import BadUsage, ReamError
from ream.history import entry
from ream.history.ratios import lines, ratios_of
from ream.record.packed import pack, place_of
from ream.record.record import NOISE, PLAN, RECEIPT, SAMPLES, Record
from ream.record.sums import SUMS


@pytest.fixture
def plain(tmp_path: Path) -> Record:
    record = written(tmp_path / "runs", launches=4, rounds=2)
    (record.path / NOISE).write_text('{"t_s": 1.0, "load": 0.5}\n')
    (record.path / PLAN).write_text('{"schema": 1}\n')
    (record.path / "consoles").mkdir()
    (record.path / "consoles" / "before-0.log").write_text("Run /init\n" * 100)
    return record


@pytest.fixture
def packed(plain: Record, tmp_path: Path) -> Record:
    return Record.load(str(pack(plain.path, tmp_path / "kept")), tmp_path)


def _bytes(directory: Path) -> dict[str, bytes]:
    files = (path for path in directory.rglob("*") if path.is_file())
    return {str(path.relative_to(directory)): path.read_bytes() for path in files}


def test_a_packed_record_says_what_the_record_says(plain: Record, packed: Record) -> None:
    assert not (packed.path / SAMPLES).exists()
    assert not (packed.path / PLAN).exists()
    assert packed.run == plain.run
    assert packed.receipt == plain.receipt
    assert list(packed.samples()) == list(plain.samples())
    assert ratios_of(packed) == ratios_of(plain)
    assert entry.faults(packed.path) == entry.faults(plain.path) == ()


def test_packing_leaves_the_record_alone_and_makes_the_same_bytes_again(
    plain: Record, packed: Record, tmp_path: Path
) -> None:
    before = _bytes(plain.path)
    assert _bytes(pack(plain.path, tmp_path / "again")) == _bytes(packed.path)
    assert _bytes(plain.path) == before
    long = sum(len(content) for content in before.values())
    assert sum(len(content) for content in _bytes(packed.path).values()) < long / 2


def test_a_copy_is_never_replaced(plain: Record, packed: Record) -> None:
    before = _bytes(packed.path)
    with pytest.raises(BadUsage, match="there is such a record already"):
        pack(plain.path, packed.path.parent)
    assert _bytes(packed.path) == before


def test_a_copy_that_cannot_be_written_leaves_nothing(plain: Record, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(BadUsage, match="cannot be written: "):
        pack(plain.path, tmp_path / "file")
    assert (tmp_path / "file").read_text() == ""


@pytest.mark.parametrize("keep", [10, 60, -3])
def test_compressed_samples_that_are_cut_are_named(packed: Record, keep: int) -> None:
    path = place_of(packed.path / SAMPLES)
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(ReamError, match=r"samples\.jsonl: what it holds compressed is damaged"):
        list(lines(packed))
    assert entry.faults(packed.path)


def test_a_compressed_receipt_that_is_damaged_is_named(packed: Record) -> None:
    (packed.path / SUMS).unlink()  # as of a copy of before there were checksums
    place_of(packed.path / RECEIPT).write_bytes(b"no gzip")
    with pytest.raises(BadUsage, match=r"receipt\.json: what it holds compressed is damaged"):
        Record.load(str(packed.path), packed.path.parent)


def test_the_command_packs_and_others_read_the_copy(
    ream: Ream, plain: Record, tmp_path: Path
) -> None:
    runs = plain.path.parent
    said = ream("pack", "last", "--to", "kept", "--runs", str(runs))
    assert (said.code, said.out) == (0, f"kept/{plain.path.name}\n")
    copy = str(tmp_path / "kept" / plain.path.name)
    for words in (("report", "--json"), ("export", "-f", "jsonl", "--samples")):
        assert ream(*words, copy).out == ream(*words, str(plain.path)).out
    shown = ream("show", copy, "--json")
    assert json.loads(shown.out)["files"][SAMPLES].endswith("samples.jsonl.gz")
    assert ream("pack", copy, "--to", "kept").code == 2
