# SPDX-License-Identifier: GPL-2.0-only
"""Records in archives for a repository: smaller, and read by everything as the record is."""

import gzip
import json
import random
import shutil
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest

from conftest import Ream
from history_world import written
from ream.errors import BadUsage, ReamError
from ream.history import entry, index
from ream.history.ratios import lines, ratios_of
from ream.record.archive import archive_of, files_of, names_in, paths_in
from ream.record.pack import pack
from ream.record.record import NOISE, PLAN, RECEIPT, SAMPLES, Record
from ream.record.sums import SUMS, sums_of


def made(runs: Path, number: int = 0) -> Record:
    record = written(runs, number, launches=4, rounds=2)
    (record.path / NOISE).write_text('{"t_s": 1.0, "load": 0.5}\n')
    (record.path / PLAN).write_text('{"schema": 1}\n')
    (record.path / "consoles").mkdir()
    (record.path / "consoles" / "before-0.log").write_text("Run /init\n" * 100)
    (record.path / SUMS).write_text(sums_of(record.path))
    return record


@pytest.fixture
def plain(tmp_path: Path) -> Record:
    return made(tmp_path / "runs")


@pytest.fixture
def packed(plain: Record, tmp_path: Path) -> Record:
    return Record.load(str(pack(plain, tmp_path / "kept")), tmp_path)


def archive(packed: Record) -> Path:
    found = archive_of(packed.path)
    assert found is not None
    return found


def _bytes(directory: Path) -> dict[str, bytes]:
    files = (path for path in directory.rglob("*") if path.is_file())
    return {str(path.relative_to(directory)): path.read_bytes() for path in files}


def test_a_packed_record_has_the_files_of_the_record_to_the_byte(
    plain: Record, packed: Record
) -> None:
    assert files_of(packed.path) == _bytes(plain.path)
    assert not packed.path.exists()
    assert packed.run == plain.run
    assert packed.receipt == plain.receipt
    assert list(packed.samples()) == list(plain.samples())
    assert ratios_of(packed) == ratios_of(plain)
    assert entry.faults(packed.path) == entry.faults(plain.path) == ()
    assert entry.read(packed.path) == entry.read(plain.path)


def test_packing_leaves_the_record_alone_and_makes_the_same_bytes_again(
    plain: Record, packed: Record, tmp_path: Path
) -> None:
    before = _bytes(plain.path)
    again = Record.load(str(pack(packed, tmp_path / "again")), tmp_path)
    assert archive(again).read_bytes() == archive(packed).read_bytes()
    assert _bytes(plain.path) == before
    assert archive(packed).stat().st_size < sum(map(len, before.values())) / 2


def test_a_record_that_was_compressed_file_by_file_is_read_and_packed_as_it_was(
    plain: Record, tmp_path: Path
) -> None:
    old = tmp_path / "old" / plain.path.name
    shutil.copytree(plain.path, old)
    for name in (SAMPLES, RECEIPT, "run.json", "table.txt", "consoles/before-0.log"):
        content = (old / name).read_bytes()
        (old / f"{name}.gz").write_bytes(gzip.compress(content))
        (old / name).unlink()
    (old / SUMS).write_text(sums_of(old))
    read = Record.load(str(old), tmp_path)
    assert (read.run, list(read.samples())) == (plain.run, list(plain.samples()))
    assert files_of(pack(read, tmp_path / "kept")) == _bytes(plain.path)


def test_records_of_one_experiment_and_type_of_cpu_share_an_archive(tmp_path: Path) -> None:
    records = [made(tmp_path / "runs", number) for number in range(3)]
    places = [pack(record, tmp_path / "kept") for record in records]
    (one,) = (tmp_path / "kept").iterdir()
    assert names_in(one) == [path.name for path in places]
    assert [path for path in paths_in(tmp_path / "kept") if path != one] == places
    found = index.look(tmp_path / "kept", pytest.fail, index=tmp_path / "index")
    assert [listed.run for listed in found.entries] == [path.name for path in reversed(places)]
    assert Record.load("last-1", tmp_path / "kept").path == places[1]
    assert Record.load(places[0].name[:16], tmp_path / "kept").run == records[0].run


def test_processes_that_pack_at_the_same_time_lose_no_record(tmp_path: Path) -> None:
    records = [made(tmp_path / "runs", number) for number in range(6)]
    with ProcessPoolExecutor(3) as pool:
        places = list(pool.map(pack, records, [tmp_path / "kept"] * len(records)))
    (one,) = (tmp_path / "kept").iterdir()
    assert sorted(names_in(one)) == [path.name for path in places]


def test_a_copy_is_never_replaced(plain: Record, packed: Record) -> None:
    before = archive(packed).read_bytes()
    with pytest.raises(BadUsage, match="there is such a record already"):
        pack(plain, packed.path.parent)
    assert archive(packed).read_bytes() == before


def test_a_copy_that_cannot_be_written_leaves_nothing(plain: Record, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(BadUsage, match="cannot be written: "):
        pack(plain, tmp_path / "file")
    assert (tmp_path / "file").read_text() == ""


def test_a_damaged_archive_is_named_and_neither_hides_others_nor_is_extended(
    plain: Record, packed: Record, tmp_path: Path
) -> None:
    (path := archive(packed)).write_bytes(path.read_bytes()[:-30])
    kept = packed.path.parent
    other = made(kept, 1)
    found = index.look(kept, pytest.fail, index=tmp_path / "index")
    assert [one.run for one in found.entries] == [other.path.name]
    assert [(one.name, one.fault) for one in found.damaged] == [
        (path.name, f"{path.name} is a damaged archive")
    ]
    with pytest.raises(BadUsage, match="is a damaged archive"):
        pack(plain, kept)


@pytest.mark.parametrize("place", [0.1, 0.5, 0.9])
def test_a_record_that_is_damaged_in_its_archive_is_named(packed: Record, place: float) -> None:
    path = archive(packed)
    content = bytearray(path.read_bytes())
    content[int(place * content.index(b"PK\x01\x02"))] ^= 1
    path.write_bytes(content)
    with pytest.raises(BadUsage, match=rf"{path.name} is a damaged archive; it cannot be told"):
        Record.load(str(packed.path), packed.path.parent)
    (fault,) = entry.faults(packed.path)
    assert f"{path.name} is a damaged archive" in fault
    found = index.look(packed.path.parent, pytest.fail, index=path.with_name("index"))
    assert [one.name for one in found.damaged] == [packed.path.name]


def test_any_damage_of_an_archive_ends_in_an_error_of_ours_or_in_the_same_record(
    plain: Record, packed: Record, tmp_path: Path
) -> None:
    path, dice = archive(packed), random.Random(7)
    content = path.read_bytes()
    refused = 0
    for number in range(300):
        damaged = bytearray(content)
        damaged[dice.randrange(len(content))] ^= 1 << dice.randrange(8)
        kept = tmp_path / f"damaged-{number}"
        kept.mkdir()
        (kept / path.name).write_bytes(damaged[: dice.choice((len(content), dice.randrange(400)))])
        index.look(kept, pytest.fail, index=tmp_path / f"index-{number}")
        try:
            assert Record.load(packed.path.name, kept).run == plain.run
        except ReamError:
            refused += 1
    assert refused > 200


def test_the_command_packs_and_others_read_the_copy(
    ream: Ream, plain: Record, tmp_path: Path
) -> None:
    runs = plain.path.parent
    said = ream("pack", "last", "--to", "kept", "--runs", str(runs))
    assert (said.code, said.out) == (0, f"kept/{plain.path.name}\n")
    copy = str(tmp_path / "kept" / plain.path.name)
    for words in (("report", "--json"), ("export", "-f", "jsonl", "--samples")):
        assert ream(*words, copy).out == ream(*words, str(plain.path)).out
    shown = json.loads(ream("show", copy, "--json").out)["files"]
    assert shown[SAMPLES].endswith(f".zip/{plain.path.name}.tar.xz/{SAMPLES}")
    assert shown.keys() == json.loads(ream("show", str(plain.path), "--json").out)["files"].keys()
    for words in (("verify", "--runs"), ("merge",)):
        assert ream(*words, "kept").out == ream(*words, str(runs)).out
    assert ream("pack", copy, "--to", "kept").code == 2


def test_samples_can_be_read_more_than_once(packed: Record) -> None:
    assert list(lines(packed)) == list(lines(packed)) != []
