# SPDX-License-Identifier: GPL-2.0-only
import errno
import json
import os
import re
import shutil
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from ream.errors import BadUsage, CannotRunHere, ReamError
from ream.experiment import shown
from ream.measure.sample import Sample
from ream.record.journal import Journal
from ream.record.packed import content_of
from ream.record.record import Record, RecordWriter, find_record, new_run_id, open_record
from ream.record.sums import SUMS
from ream.report import table
from ream.report.contract import Summary
from shipped import EACH

SAMPLE = Sample("row", 0, 0, "variant", "before", 1, 100, 64, verified=True)
RUN = {"schema": 1, "rows": []}
RECEIPT = {"schema": 1}
ID = "20261121T021500Z-zone-device-native-ab12"


def written(runs: Path, run_id: str = ID) -> Path:
    with open_record(runs, run_id) as record:
        record.append(SAMPLE, {"slot": 2})
        return record.finish(RUN, RECEIPT, table="table\n", letter="letter\n")


def left_in(runs: Path) -> list[str]:
    return sorted(entry.name for entry in runs.iterdir())


def test_a_record_holds_what_it_was_given(tmp_path: Path) -> None:
    path = written(tmp_path / "deep" / "runs")
    assert left_in(path.parent) == [ID]
    assert left_in(path) == [
        "SHA256SUMS",
        "letter.txt",
        "receipt.json",
        "run.json",
        "samples.jsonl",
        "table.txt",
    ]
    record = Record.load(ID, path.parent)
    assert (record.run, record.receipt) == (RUN, RECEIPT)
    assert list(record.samples()) == [replace(SAMPLE, beside={"slot": 2})]
    assert json.loads((path / "samples.jsonl").read_text())["slot"] == 2


def test_a_run_id_begins_with_its_time() -> None:
    run_id = new_run_id("zone-device", "native")
    assert re.fullmatch(r"\d{8}T\d{6}Z-zone-device-native-[0-9a-f]{4}", run_id)


def test_samples_are_on_disk_while_the_run_goes_on(tmp_path: Path) -> None:
    with open_record(tmp_path, ID) as record:
        record.append(SAMPLE)
        (partial,) = tmp_path.iterdir()
        assert partial.name == f".{ID}.partial"
        assert (partial / "samples.jsonl").read_text().count("\n") == 1


@pytest.mark.parametrize("failure", [ReamError("a guest died"), KeyboardInterrupt(), OSError(5)])
def test_a_failed_run_leaves_nothing(tmp_path: Path, failure: BaseException) -> None:
    def run() -> None:
        with open_record(tmp_path, ID) as record:
            record.append(SAMPLE)
            raise failure

    with pytest.raises(type(failure)) as raised:
        run()
    assert raised.value is failure
    assert left_in(tmp_path) == []


def test_a_run_that_never_finished_leaves_nothing(tmp_path: Path) -> None:
    with open_record(tmp_path, ID) as record:
        record.append(SAMPLE)
    assert left_in(tmp_path) == []


def test_an_existing_record_is_never_overwritten(tmp_path: Path) -> None:
    path = written(tmp_path)
    before = {entry.name: entry.read_bytes() for entry in path.iterdir()}
    with pytest.raises(BadUsage, match="records never change"):
        written(tmp_path)
    assert {entry.name: entry.read_bytes() for entry in path.iterdir()} == before
    assert left_in(tmp_path) == [ID]


def test_a_name_taken_while_measuring_is_not_overwritten(tmp_path: Path) -> None:
    taken = tmp_path / ID
    with open_record(tmp_path, ID) as record:
        taken.mkdir()
        (taken / "run.json").write_text("theirs")
        with pytest.raises(BadUsage, match="cannot write a record"):
            record.finish(RUN, RECEIPT, table="", letter="")
    assert (taken / "run.json").read_text() == "theirs"
    assert left_in(tmp_path) == [ID]


def test_two_records_at_once_do_not_meet(tmp_path: Path) -> None:
    other = ID.replace("ab12", "cd34")
    with open_record(tmp_path, ID) as one, open_record(tmp_path, other) as two:
        one.append(SAMPLE)
        two.append(SAMPLE)
        two.append(SAMPLE)
        two.finish(RUN, RECEIPT, table="", letter="")
        one.append(SAMPLE)
        one.finish(RUN, RECEIPT, table="", letter="")
    counts = [len(list(Record.load(name, tmp_path).samples())) for name in (ID, other)]
    assert counts == [2, 2]


def test_what_a_killed_run_left_is_removed_by_the_next(tmp_path: Path) -> None:
    dead = tmp_path / ".20200101T000000Z-zone-device-native-0000.partial"
    dead.mkdir()
    (dead / "samples.jsonl").write_text("half a li")
    path = written(tmp_path)
    assert left_in(tmp_path) == [path.name]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        (".rsync.partial", "samples.jsonl"),
        (".20200101T000000Z-zone-device-native-0000.partial", "thesis.tex"),
    ],
)
def test_what_is_not_ours_is_left_alone(tmp_path: Path, name: str, content: str) -> None:
    (tmp_path / name).mkdir()
    (tmp_path / name / content).write_text("precious")
    written(tmp_path)
    assert (tmp_path / name / content).read_text() == "precious"


def test_an_unwritable_place_is_refused_before_anything_is_measured(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for runs in (tmp_path / "file", tmp_path / "file" / "runs", Path("/proc/runs")):
        with (
            pytest.raises(BadUsage, match=r"^[^\n]*: cannot write a record there: [^\n]+$"),
            open_record(runs, ID),
        ):
            pytest.fail("measured")
    with pytest.raises(BadUsage, match="it is no directory"), open_record(tmp_path / "file", ID):
        pytest.fail("measured")


def test_a_nearly_full_disk_is_refused_before_anything_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=3 << 20))
    with (
        pytest.raises(CannotRunHere, match=r"3\.0 MiB free, a record needs up to 3\.5 MiB"),
        open_record(tmp_path, ID, nr_bytes=7 << 19),
    ):
        pytest.fail("measured")
    assert left_in(tmp_path) == []


def test_a_disk_that_fills_up_while_measuring_is_one_line(tmp_path: Path) -> None:
    with Path("/dev/full").open("ab", buffering=0) as full:
        record = RecordWriter(tmp_path / ID, tmp_path, full, Journal(tmp_path / "journal.jsonl"))
        with pytest.raises(CannotRunHere, match=r"^[^\n]*No space left[^\n]*make room[^\n]*$"):
            record.append(SAMPLE)
        record.journal.close()


def test_a_disk_that_is_full_at_the_end_leaves_no_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", fails)
    with pytest.raises(CannotRunHere, match="No space left"):
        written(tmp_path)
    assert left_in(tmp_path) == []


def test_last_is_the_newest_finished_record(tmp_path: Path) -> None:
    with pytest.raises(BadUsage, match=r"no record in .* yet"):
        find_record("last", tmp_path)
    newest = written(tmp_path, ID.replace("2026", "2027"))
    written(tmp_path)
    (tmp_path / ID.replace("2026", "2028")).mkdir()  # not a record
    assert find_record("last", tmp_path) == newest
    (newest / "run.json").unlink()
    with pytest.raises(BadUsage, match=rf"{newest}: no run.json; the record is damaged"):
        find_record("last", tmp_path)
    assert find_record("last-1", tmp_path).name == ID


def test_a_record_is_found_by_id_and_by_path(tmp_path: Path) -> None:
    path = written(tmp_path / "runs")
    assert find_record(ID, tmp_path / "runs") == path
    assert find_record(str(path), tmp_path / "elsewhere") == path
    for nothing in ("nope", str(tmp_path), "", "\0", "x" * 300):
        with pytest.raises(BadUsage, match="no record"):
            find_record(nothing, tmp_path / "runs")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{", "not JSON; the record is damaged"),
        ("[" * 100_000, "not JSON"),
        ("[]", "schema None; this ream reads schema 1"),
        ("{}", "schema None"),
        ('{"schema": 2}', "schema 2; this ream reads schema 1"),
        ('{"schema": true}', "schema True"),
    ],
)
def test_a_damaged_record_is_one_clear_complaint(tmp_path: Path, content: str, said: str) -> None:
    path = written(tmp_path)
    (path / SUMS).unlink()  # as of a record of before there were checksums
    (path / "run.json").write_text(content)
    with pytest.raises(BadUsage, match=said):
        Record.load(ID, tmp_path)


def test_a_broken_line_of_a_record_is_named(tmp_path: Path) -> None:
    path = written(tmp_path)
    (path / SUMS).unlink()
    with (path / "samples.jsonl").open("a") as file:
        file.write('{"row": "ro')
    with pytest.raises(ReamError, match=r"samples\.jsonl:2: not a sample"):
        list(Record.load(ID, tmp_path).samples())


@pytest.mark.parametrize("path", EACH)
def test_a_record_that_the_documents_quote_prints_what_it_printed_then(path: Path) -> None:
    record = Record.load(str(path), path.parent)
    summary = Summary.from_object(record.run, source=str(path))
    assert len(list(record.samples())) > 0
    assert _ratios(content_of(path / "table.txt").decode()) == _ratios(table.render(summary))


def _ratios(text: str) -> set[tuple[str, str]]:
    """Whose, and with which interval, wherever a column stands; CPU time may be withdrawn."""
    whole = re.sub(r"\n {12,}(?=\S)", " ", text).splitlines()
    text = "\n".join(line for line in whole if "CPU time" not in line)
    line = r"^ *(\S+).*?([\d.e+-]+ \[ *[\d.e+-]+ \.\. *[\d.e+-]+\])"
    return {(shown(its[1]), its[2]) for its in re.finditer(line, text, re.MULTILINE)}
