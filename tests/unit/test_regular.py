# SPDX-License-Identifier: GPL-2.0-only
"""Whatever lies among records, reading it ends soon, in little memory, and with a line."""

import gzip
import os
import signal
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from history_world import written
from ream.errors import BadUsage, ReamError
from ream.history import entry, index
from ream.record import packed, regular
from ream.record.journal import JOURNAL, holds_a_round
from ream.record.pack import pack
from ream.record.packed import content_of, lines_of
from ream.record.partial import interrupted
from ream.record.record import NOISE, RECEIPT, RUN, SAMPLES, Record, is_ours, open_record
from ream.record.sums import SUMS
from ream.report.html import page

HANGS_S = 30
MOST_BYTES = 1 << 16


@pytest.fixture(autouse=True)
def ended() -> Iterator[None]:
    """End a test that waits for ever."""

    def end(_signal: int, _frame: object) -> None:
        raise TimeoutError("it hangs")

    before = signal.signal(signal.SIGALRM, end)
    signal.alarm(HANGS_S)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def fifo(path: Path) -> None:
    os.mkfifo(path)


def device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def bound(path: Path) -> None:
    here = Path.cwd()
    os.chdir(path.parent)  # the name of a socket is at most 107 bytes
    try:
        with socket.socket(socket.AF_UNIX) as one:
            one.bind(path.name)
    finally:
        os.chdir(here)


def loop(path: Path) -> None:
    path.symlink_to(path.name)


def directory(path: Path) -> None:
    path.mkdir()


def endless(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(1 << 42)


ODD = (fifo, device, bound, loop, directory, endless)
odd = pytest.mark.parametrize("make", ODD, ids=lambda make: make.__name__)


@odd
def test_only_regular_files_within_sizes_are_read(
    make: Callable[[Path], None], tmp_path: Path
) -> None:
    make(tmp_path / "file")
    for read in (content_of, lambda path: list(lines_of(path))):
        with pytest.raises(OSError, match="not a regular file|symbolic links|more than"):
            read(tmp_path / "file")


@odd
@pytest.mark.parametrize("name", [RUN, RECEIPT, SAMPLES, NOISE, SUMS])
def test_an_odd_file_in_a_record_is_named_and_hides_no_other(
    make: Callable[[Path], None], name: str, tmp_path: Path
) -> None:
    runs = tmp_path / "runs"
    record, _ = written(runs, 1), written(runs, 2)
    (record.path / name).unlink(missing_ok=True)
    make(record.path / name)
    found = index.look(runs, pytest.fail, index=tmp_path / "index")
    assert RUN_2 in [one.run for one in found.entries]
    said = entry.faults(record.path)
    if name != NOISE:
        assert any(name in fault for fault in said)
    with pytest.raises(ReamError):
        page.render(Record.load(str(record.path), runs))
    if make is not directory:  # of directories, what is in them is packed
        with pytest.raises(BadUsage):
            pack(Record.load(str(record.path), runs), tmp_path / "kept")
        assert not list((tmp_path / "kept").glob("*"))


RUN_2 = "20261121T000002Z-zone-device-native-0002"


@odd
def test_an_odd_file_among_the_records_is_no_record(
    make: Callable[[Path], None], tmp_path: Path
) -> None:
    record = written(tmp_path / "runs", 2)
    make(tmp_path / "runs" / "20261121T000009Z-zone-device-native-0009")
    make(tmp_path / "runs" / ".20261121T000009Z-zone-device-native-0009.partial")
    found = index.look(tmp_path / "runs", pytest.fail, index=tmp_path / "index")
    assert [one.run for one in found.entries] == [record.path.name]
    assert interrupted(tmp_path / "runs") == ()
    assert Record.load("last", tmp_path / "runs").path == record.path


@odd
@pytest.mark.parametrize("name", [JOURNAL, SAMPLES, NOISE, "plan.json", "series.json"])
def test_an_unfinished_record_with_an_odd_file_is_left_alone(
    make: Callable[[Path], None], name: str, tmp_path: Path
) -> None:
    partial = tmp_path / ".20261121T000009Z-zone-device-native-0009.partial"
    partial.mkdir()
    make(partial / name)
    assert not holds_a_round(partial)
    assert not interrupted(tmp_path)
    if make is not endless:
        assert not is_ours(partial)
        with open_record(tmp_path, RUN_2):
            assert (partial / name).is_symlink() or (partial / name).exists()


def test_what_becomes_large_when_it_is_unpacked_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packed, "MOST_BYTES", MOST_BYTES)
    monkeypatch.setattr(packed, "MOST_LONG_BYTES", MOST_BYTES)
    (tmp_path / "file.gz").write_bytes(gzip.compress(b"x\n" * MOST_BYTES))
    for read in (content_of, lambda path: list(lines_of(path))):
        with pytest.raises(OSError, match="more than 0 MiB"):
            read(tmp_path / "file")


def test_a_line_without_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(regular, "LONGEST_LINE", 100)
    (tmp_path / "file").write_bytes(b"short\n" + b"x" * 101 + b"\n")
    read = lines_of(tmp_path / "file")
    assert next(read) == b"short\n"
    with pytest.raises(OSError, match="a line of more than"):
        next(read)
