# SPDX-License-Identifier: GPL-2.0-only
"""The index of records: what it says, and that nothing is lost when it, or a record, is damaged."""

import json
import os
import shutil
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from history_world import RUN_ID, machine, written
from ream.errors import BadUsage, CannotRunHere
from ream.history import choose, entry, index, listing
from ream.history.choose import Choice, chosen, parse_machine, parse_since
from ream.history.index import look, rebuild
from ream.paths import CHECKOUT
from ream.record.record import find_record

NONE_READ: Callable[[int, int], None] = lambda _done, _of: None  # noqa: E731


class Notes(list[str]):
    """What was said on the way."""

    def __call__(self, text: str) -> None:
        self.append(text)


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Three records of two rows each."""
    for number in (1, 2, 3):
        written(tmp_path / "runs", number, launches=2, rounds=1)
    return tmp_path / "runs"


@pytest.fixture
def db(tmp_path: Path) -> Path:
    return tmp_path / "history.sqlite"


def names(history: index.History) -> list[str]:
    return [one.run for one in history.entries]


def name(number: int) -> str:
    return RUN_ID.format(number=number)


NEWEST_FIRST = [name(3), name(2), name(1)]


def test_a_headline_is_the_geometric_mean_of_rows_of_one_unit(tmp_path: Path) -> None:
    record = written(tmp_path, launches=2, rounds=1)
    run = json.loads((record.path / "run.json").read_text())
    run["rows"][1]["variants"]["ream"]["ratio"] = 0.9
    (record.path / "run.json").write_text(json.dumps(run))
    listed = entry.read(record.path)
    assert listed is not None
    assert listed.entry is not None
    assert listed.entry.headlines()[-1].ratio == pytest.approx(0.6)
    run["rows"][1]["unit"] = "instructions"
    (record.path / "run.json").write_text(json.dumps(run))
    listed = entry.read(record.path)
    assert listed is not None
    assert listed.entry is not None
    assert [(one.variant, one.unit) for one in listed.entry.headlines()] == [
        ("published", "ns"),
        ("ream", "ns"),
        ("published", "instructions"),
        ("ream", "instructions"),
    ]


def test_the_second_look_reads_no_record(
    runs: Path, db: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = look(runs, Notes(), index=db)
    monkeypatch.setattr(index, "read", lambda _: pytest.fail("read a record again"))
    assert look(runs, Notes(), index=db) == first


def test_new_gone_and_changed_records_are_found(runs: Path, db: Path) -> None:
    look(runs, Notes(), index=db)
    written(runs, 4, launches=2, rounds=1)
    shutil.rmtree(runs / name(1))
    run = json.loads((runs / name(2) / "run.json").read_text())
    (runs / name(2) / "run.json").write_text(json.dumps({**run, "stage": "vm"}))
    found = look(runs, Notes(), index=db)
    assert names(found) == [name(4), name(3), name(2)]
    assert found.entries[2].stage == "vm"


def test_no_directory_has_no_records_and_no_index(tmp_path: Path, db: Path) -> None:
    assert look(tmp_path / "none", Notes(), index=db) == index.History((), ())
    assert not db.exists()


def test_what_is_no_record_is_not_listed(runs: Path, db: Path) -> None:
    (runs / ".20260101T000000Z-fork-native-0000.partial").mkdir()
    (runs / "notes").mkdir()
    (runs / "20260101T000000Z-soak-vm-0000").mkdir()
    (runs / "20260101T000000Z-soak-vm-0000" / "soak.jsonl").write_text("")
    (runs / "20260101T000000Z-file-vm-0000").write_text("")
    for no_text in (b"\xff", b"a\x1b[31m"):
        shutil.copytree(runs / name(1), runs / os.fsdecode(no_text))
    assert look(runs, Notes(), index=db) == look(runs, Notes(), index=db)
    assert names(look(runs, Notes(), index=db)) == NEWEST_FIRST


# --- A damaged record --------------------------------------------------------------------


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-20])


def empty(path: Path) -> None:
    path.write_text("")


def of_a_later_schema(path: Path) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), "schema": 2}))


def not_a_record(path: Path) -> None:
    value = json.loads(path.read_text())
    path.write_text(json.dumps({**value, "rows": 7}))


@pytest.mark.parametrize(
    ("file", "damage", "said"),
    [
        ("run.json", cut, "run.json: not JSON; the record is damaged"),
        ("run.json", empty, "run.json: not JSON"),
        ("run.json", of_a_later_schema, "run.json: schema 2; this ream reads schema 1"),
        ("run.json", not_a_record, "run.json: rows: "),
        ("run.json", Path.unlink, "run.json missing"),
        ("receipt.json", cut, "receipt.json: not JSON"),
        ("receipt.json", of_a_later_schema, "receipt.json: schema 2"),
        ("receipt.json", Path.unlink, "receipt.json missing"),
        ("samples.jsonl", Path.unlink, "samples.jsonl"),
    ],
)
def test_a_damaged_record_is_named_and_hides_no_other(
    runs: Path, db: Path, file: str, damage: Callable[[Path], None], said: str
) -> None:
    damage(runs / name(2) / file)
    held = {path.name: path.read_bytes() for path in (runs / name(2)).iterdir()}
    found = look(runs, Notes(), index=db)
    listed = [one for one in names(found) if one != name(2)]
    assert listed == [name(3), name(1)]
    faults = [one.fault for one in found.damaged] + [
        one.fault for one in found.entries if one.fault is not None
    ]
    assert len(faults) == 1
    assert said in faults[0]
    assert "\n" not in faults[0]
    assert any(said in fault for fault in entry.faults(runs / name(2)))
    assert {path.name: path.read_bytes() for path in (runs / name(2)).iterdir()} == held


def test_samples_that_end_in_a_line_are_told_and_the_record_is_listed(runs: Path, db: Path) -> None:
    cut(runs / name(2) / "samples.jsonl")
    found = look(runs, Notes(), index=db)
    assert names(found) == NEWEST_FIRST
    assert found.entries[1].fault == "samples.jsonl ends in the middle of a line"
    text = " ".join(" ".join(listing.listing(found.entries, Choice())).split())
    assert text.count("DAMAGED: samples.jsonl ends in the middle of a line") == 1
    assert "samples.jsonl:16: not a sample" in entry.faults(runs / name(2))[0]


@pytest.mark.parametrize(
    ("at", "left", "said"),
    [
        (2, '{"row": 1}\n', "samples.jsonl:3: not a sample"),
        (15, "", "run.json has 2: the record is damaged"),
    ],
)
def test_a_fault_anywhere_in_the_samples_is_found_when_all_is_read(
    runs: Path, at: int, left: str, said: str
) -> None:
    path = runs / name(2) / "samples.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join((*lines[:at], left, *lines[at + 1 :])))
    (fault,) = entry.faults(runs / name(2))
    assert said in fault
    (runs / name(1) / "table.txt").unlink()
    assert entry.faults(runs / name(1)) == ("table.txt missing; `ream report` makes it again",)
    assert entry.faults(runs / name(3)) == ()


def test_half_a_surrogate_pair_in_a_record_hides_no_record(runs: Path, db: Path) -> None:
    for file in ("run.json", "receipt.json"):
        path = runs / name(2) / file
        text = path.read_text().replace("gcc 12", "\\ud800").replace("0123456789ab", "\\ud800")
        path.write_text(text.replace("linux-source", "\\udfff"))
    notes = Notes()
    found = look(runs, notes, index=db)
    assert (names(found), found.damaged) == (NEWEST_FIRST, ())
    assert found.entries[1].benchmark == "\ud800"
    assert look(runs, notes, index=db) == found
    assert rebuild(runs, lambda _done, _of: None, index=db) == found
    assert notes == []


def test_a_record_that_vanishes_meanwhile_is_not_listed(
    runs: Path, db: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(path: Path) -> entry.Listed | None:
        if path.name == name(2):
            shutil.rmtree(path)
        return entry.read(path)

    monkeypatch.setattr(index, "read", read)
    found = look(runs, Notes(), index=db)
    assert (names(found), found.damaged) == ([name(3), name(1)], ())
    assert entry.faults(runs / name(2)) == ()


# --- A damaged index ---------------------------------------------------------------------


def garbage(db: Path) -> None:
    db.write_bytes(b"this is no database" * 1000)


def garbage_in_the_middle(db: Path) -> None:
    with closing(sqlite3.connect(db, isolation_level=None)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    with db.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * 4096)


def later_version(db: Path) -> None:
    with closing(sqlite3.connect(db, isolation_level=None)) as connection:
        connection.execute(f"PRAGMA user_version = {index.VERSION + 1}")


def other_words(db: Path) -> None:
    with closing(sqlite3.connect(db, isolation_level=None)) as connection:
        connection.execute("UPDATE record SET listed = '{\"what\": 1}'")


def no_table(db: Path) -> None:
    with closing(sqlite3.connect(db, isolation_level=None)) as connection:
        connection.execute("DROP TABLE record")


@pytest.mark.parametrize(
    "damage", [garbage, garbage_in_the_middle, later_version, other_words, no_table]
)
def test_a_damaged_index_is_one_line_changes_no_answer_and_is_made_anew(
    runs: Path, db: Path, damage: Callable[[Path], None]
) -> None:
    whole = look(runs, Notes(), index=db)
    damage(db)
    said = Notes()
    assert look(runs, said, index=db) == whole
    assert len(said) == 1
    assert said[0].startswith(f"{db}: ")
    assert "\n" not in said[0]
    assert rebuild(runs, NONE_READ, index=db) == whole
    silent = Notes()
    assert look(runs, silent, index=db) == whole
    assert silent == []


def test_an_older_index_is_made_anew_by_the_next_look(runs: Path, db: Path) -> None:
    with closing(sqlite3.connect(db, isolation_level=None)) as connection:
        connection.execute("CREATE TABLE record (other TEXT)")
        connection.execute("PRAGMA user_version = -1")
    notes = Notes()
    assert names(look(runs, notes, index=db)) == NEWEST_FIRST
    assert notes == []


def test_an_index_that_another_process_holds_is_one_line_and_changes_no_answer(
    runs: Path, db: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = look(runs, Notes(), index=db)
    hold = (
        "import sqlite3, sys\n"
        "c = sqlite3.connect(sys.argv[1], isolation_level=None)\n"
        "c.execute('PRAGMA locking_mode = EXCLUSIVE')\n"
        "c.execute('BEGIN EXCLUSIVE')\n"
        "c.execute('DELETE FROM record')\n"
        "print('held', flush=True)\n"
        "sys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", hold, db], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        monkeypatch.setattr(index, "BUSY_S", 0.05)
        written(runs, 4, launches=2, rounds=1)
        notes = Notes()
        found = look(runs, notes, index=db)
        with pytest.raises(BadUsage, match="cannot be written: database is locked"):
            rebuild(runs, NONE_READ, index=db)
        assert holder.stdin is not None
        holder.stdin.close()
    assert names(found) == [name(4), *names(whole)]
    assert len(notes) == 1
    assert "locked" in notes[0]
    assert names(look(runs, Notes(), index=db)) == [name(4), *names(whole)]


def test_an_index_that_cannot_be_written_is_one_line(runs: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "directory").mkdir()
    proc = Path("/proc/none/history.sqlite")
    for place in (tmp_path / "file/history.sqlite", tmp_path / "directory", proc):
        notes = Notes()
        assert names(look(runs, notes, index=place)) == NEWEST_FIRST
        assert len(notes) == 1


def test_looking_writes_nothing_beside_the_records(runs: Path, db: Path) -> None:
    before = sorted(runs.rglob("*"))
    look(runs, Notes(), index=db)
    assert sorted(runs.rglob("*")) == before
    assert CHECKOUT not in index.index_path(runs).parents


def test_many_look_at_once_while_records_come_and_go(runs: Path, db: Path) -> None:
    notes = Notes()
    failures: list[BaseException] = []
    stop = threading.Event()

    def look_on() -> None:
        try:
            while not stop.is_set():
                found = names(look(runs, notes, index=db))
                assert [one for one in found if one in NEWEST_FIRST] == NEWEST_FIRST
        except BaseException as cause:
            failures.append(cause)
            raise

    threads = [threading.Thread(target=look_on) for _ in range(4)]
    for thread in threads:
        thread.start()
    try:
        for number in range(10, 30):
            written(runs, number, launches=2, rounds=1, rows=("fsdax",))
            if number % 2:
                shutil.rmtree(runs / name(number))
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert failures == []
    assert notes == []
    assert names(look(runs, notes, index=db)) == [
        *(name(number) for number in range(28, 9, -2)),
        *NEWEST_FIRST,
    ]


# --- Choosing ----------------------------------------------------------------------------


def test_runs_are_chosen_by_what_they_are(tmp_path: Path, db: Path) -> None:
    written(tmp_path, 1, launches=2)
    written(tmp_path, 2, launches=2, rows=("other",), truth={"mine": 0.5})
    written(tmp_path, 3, launches=2, run={"experiment": "fork", "stage": "vm"})
    written(tmp_path, 4, launches=2, receipt={"machine": machine(id="0ther")})
    entries = look(tmp_path, Notes(), index=db).entries
    for choice, wanted in (
        (Choice(), [4, 3, 2, 1]),
        (Choice(experiment="fork"), [3]),
        (Choice(stage="native"), [4, 2, 1]),
        (Choice(machine="0th"), [4]),
        (Choice(variant="mine"), [2]),
        (Choice(row="fsdax"), [4, 3, 1]),
        (Choice(row="fsdax", variant="mine"), []),
        (Choice(since=datetime(2026, 11, 21, 0, 0, 3, tzinfo=UTC)), [4, 3]),
    ):
        assert [one.run for one in chosen(entries, choice)] == [name(n) for n in wanted]
    assert len(chosen(entries, Choice(), 2)) == 2


def test_a_time_is_a_day_a_moment_or_how_long_ago() -> None:
    now = datetime(2026, 11, 21, 12, tzinfo=UTC)
    for text, wanted in (
        ("2026-11-20", datetime(2026, 11, 20, tzinfo=UTC)),
        ("2026-11-20T10:30", datetime(2026, 11, 20, 10, 30, tzinfo=UTC)),
        ("2026-11-20T10:30+02:00", datetime(2026, 11, 20, 8, 30, tzinfo=UTC)),
        ("12h", datetime(2026, 11, 21, tzinfo=UTC)),
        ("3d", datetime(2026, 11, 18, 12, tzinfo=UTC)),
        ("999999w", datetime.min.replace(tzinfo=UTC)),
    ):
        assert parse_since(text, now) == wanted
    for text in ("", "yesterday", "3", "-3d", "2026-13-01"):
        with pytest.raises(BadUsage, match="--since"):
            parse_since(text, now)


def test_this_machine_is_asked_for_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choose, "machine_id", lambda: "abc")
    assert (parse_machine("this"), parse_machine("def")) == ("abc", "def")
    monkeypatch.setattr(choose, "machine_id", lambda: None)
    with pytest.raises(CannotRunHere, match="machine-id"):
        parse_machine("this")


# --- Naming one --------------------------------------------------------------------------


def test_a_run_is_named_by_what_no_other_begins_or_ends_with(runs: Path) -> None:
    assert find_record("-0002", runs).name == name(2)
    assert find_record("20261121T000003", runs).name == name(3)
    assert find_record("last-1", runs).name == name(2)
    assert find_record("last-2", runs).name == name(1)
    with pytest.raises(BadUsage, match="'last-3': there are 3"):
        find_record("last-3", runs)
    with pytest.raises(BadUsage, match="is 3 records: .*; give more of its name"):
        find_record("2026", runs)
    with pytest.raises(BadUsage, match="no record 'last-x': neither a run in .*docs/records, nor"):
        find_record("last-x", runs)


def test_a_record_that_documents_quote_is_found_after_those_of_the_user(tmp_path: Path) -> None:
    quoted = CHECKOUT / "docs" / "records" / "20261122T181226Z-zone-device-native-007a"
    for asked in ("007a", quoted.name, "20261122T181226Z"):
        assert find_record(asked, tmp_path) == quoted
    own = tmp_path / "20261128T000000Z-fork-native-007a"
    written(tmp_path).path.rename(own)
    assert find_record("007a", tmp_path) == own
    assert find_record("last", tmp_path) == own
    with pytest.raises(BadUsage, match="no record in .* yet"):
        find_record("last", tmp_path / "none")


def test_a_name_that_many_fit_is_answered_with_a_few(tmp_path: Path) -> None:
    for number in range(1, 8):
        written(tmp_path, number, launches=2, rounds=1, rows=("fsdax",))
    with pytest.raises(BadUsage, match="is 7 records: .* and 3 more"):
        find_record("2026", tmp_path)
