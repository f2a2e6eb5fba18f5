# SPDX-License-Identifier: GPL-2.0-only
"""Files for the user: whole or not at all, and none replaced unasked."""

import os
from pathlib import Path

import pytest

from ream.errors import BadUsage
from ream.files import check_place, write_whole


def test_a_file_is_written_whole_and_never_replaced_unasked(tmp_path: Path) -> None:
    path = tmp_path / "out.csv"
    check_place(path)
    write_whole(path, b"one")
    for attempt in (lambda: check_place(path), lambda: write_whole(path, b"two")):
        with pytest.raises(BadUsage, match="--force replaces it"):
            attempt()
    assert path.read_bytes() == b"one"
    check_place(path, force=True)
    write_whole(path, b"three", force=True)
    assert path.read_bytes() == b"three"
    assert [one.name for one in tmp_path.iterdir()] == ["out.csv"]


def test_a_link_that_leads_nowhere_is_a_file_already(tmp_path: Path) -> None:
    path = tmp_path / "out.csv"
    path.symlink_to("gone")
    for attempt in (lambda: check_place(path), lambda: write_whole(path, b"two")):
        with pytest.raises(BadUsage, match="--force replaces it"):
            attempt()
    assert path.is_symlink()


def test_a_file_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    inside = tmp_path / "inside"
    inside.mkdir()
    (tmp_path / "file").touch()
    for path in (
        inside,
        inside / "none" / "out.csv",
        tmp_path / "file" / "out.csv",
        Path("/proc/out.csv"),
        inside / ("x" * 300),
    ):
        with pytest.raises(BadUsage, match=r"^[^\n]*: cannot be written: [^\n]+$"):
            write_whole(path, b"text", force=True)
    assert list(inside.iterdir()) == []
    with pytest.raises(BadUsage, match=r"none/out.csv: cannot be written: .*none is no directory$"):
        check_place(inside / "none" / "out.csv")
    for force in (False, True):
        with pytest.raises(BadUsage, match="inside: is a directory; name a file in it"):
            check_place(inside, force=force)


def test_what_somebody_reads_at_the_other_end_is_written_to(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        check_place(pipe)
        write_whole(pipe, b"text")
        assert os.read(reader, 10) == b"text"
    finally:
        os.close(reader)
    assert pipe.is_fifo()
