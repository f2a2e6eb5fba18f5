# SPDX-License-Identifier: GPL-2.0-only
"""An entry of the cache is there whole, or not at all."""

import errno
import json
import os
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from ream.errors import CannotRunHere
from ream.kernel import cache
from ream.kernel.cache import (
    appearing,
    disk_faults,
    locked,
    need_space,
    prune,
    spare,
    stamp_of,
    sweep,
)


def quiet(_: str) -> None:
    pass


def make(entry: Path, content: str) -> None:
    with locked(entry, quiet), appearing(entry, dict) as partial:
        (partial / "file").write_text(content)


def names(kind: Path) -> list[str]:
    return sorted(path.name for path in kind.iterdir() if path.suffix != ".lock")


def test_an_entry_is_not_there_until_its_block_has_ended(tmp_path: Path) -> None:
    entry = tmp_path / "kind" / "key"
    with locked(entry, quiet), appearing(entry, lambda: {"label": "x"}) as partial:
        (partial / "file").write_text("content")
        assert not entry.exists()
        assert stamp_of(entry) is None
    assert (entry / "file").read_text() == "content"
    assert stamp_of(entry) == {"layout": cache.LAYOUT, "label": "x"}
    assert names(entry.parent) == ["key"]


def test_an_entry_that_fails_half_way_leaves_nothing(tmp_path: Path) -> None:
    entry = tmp_path / "kind" / "key"

    def fail() -> None:
        with locked(entry, quiet), appearing(entry, dict) as partial:
            (partial / "file").write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert names(entry.parent) == []


def test_a_failed_replacement_leaves_the_older_entry(tmp_path: Path) -> None:
    entry = tmp_path / "kind" / "key"
    make(entry, "old")

    def fail() -> None:
        with locked(entry, quiet), appearing(entry, dict):
            raise CannotRunHere("no")

    with pytest.raises(CannotRunHere):
        fail()
    assert (entry / "file").read_text() == "old"
    make(entry, "new")
    assert (entry / "file").read_text() == "new"
    assert names(entry.parent) == ["key"]


@pytest.mark.parametrize("garbage", ["", "{", "[]", '{"layout": 0}', '{"layout": "1"}', "\xff"])
def test_an_entry_without_a_good_stamp_is_none(tmp_path: Path, garbage: str) -> None:
    entry = tmp_path / "key"
    entry.mkdir()
    (entry / cache.STAMP).write_text(garbage, encoding="latin-1")
    assert stamp_of(entry) is None


def test_leftovers_are_removed_only_if_nobody_holds_their_lock(tmp_path: Path) -> None:
    for name in ("dead", "living"):
        (tmp_path / f"{name}{cache.PARTIAL}1" / "deep").mkdir(parents=True)
    make(tmp_path / "whole", "kept")
    with locked(tmp_path / "living", quiet):
        sweep(tmp_path, quiet)
        assert names(tmp_path) == [f"living{cache.PARTIAL}1", "whole"]
    sweep(tmp_path, quiet)
    assert names(tmp_path) == ["whole"]


def test_a_second_run_waits_for_the_first_and_says_so(tmp_path: Path) -> None:
    said: list[str] = []
    order: list[str] = []
    entry = tmp_path / "tree" / "abc"

    def second() -> None:
        with locked(entry, said.append):
            order.append("second")

    thread = threading.Thread(target=second)
    with locked(entry, quiet):
        thread.start()
        while not said:
            time.sleep(0.01)
        order.append("first")
    thread.join()
    assert order == ["first", "second"]
    assert said == ["waiting for another run that makes tree abc"]


def test_only_entries_unused_for_long_are_pruned(tmp_path: Path) -> None:
    for name in ("old", "held", "new"):
        make(tmp_path / name, name)
    for name in ("old", "held"):
        os.utime(tmp_path / name / cache.STAMP, (1000, 1000))
    with locked(tmp_path / "held", quiet):
        prune(tmp_path, unused_since=2000)
    assert names(tmp_path) == ["held", "new"]


def test_a_full_disk_has_the_longest_unused_entries_removed_until_there_is_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for age_h, name in enumerate(("new", "newer", "old", "oldest")):
        make(tmp_path / name, name)
        then = time.time() - 5000 * age_h
        os.utime(tmp_path / name / cache.STAMP, (then, then))
    free = {"bytes": cache.SPARE_BYTES}

    def remove(stamp: Path, unused_since: float) -> None:
        free["bytes"] += 100
        whole(stamp, unused_since)

    whole = cache._prune_one
    monkeypatch.setattr(cache, "_prune_one", remove)
    monkeypatch.setattr(cache, "_free_bytes", lambda _: free["bytes"])
    monkeypatch.setattr(cache, "MOST_AT_ONCE", 1)
    spare(tmp_path, 150)
    assert names(tmp_path) == ["new", "newer", "old"]
    monkeypatch.setattr(cache, "MOST_AT_ONCE", 4)
    spare(tmp_path, 150)
    assert names(tmp_path) == ["new", "newer"]
    spare(tmp_path, 10**9)
    assert names(tmp_path) == ["new"]  # used within the hour


def test_an_entry_that_is_being_made_gets_no_lock_of_its_own(tmp_path: Path) -> None:
    with locked(tmp_path / "abc", quiet), appearing(tmp_path / "abc", dict) as place:
        (place / cache.STAMP).write_text("{}")
        prune(tmp_path, unused_since=2000)
        assert not list(tmp_path.glob(f"*{cache.PARTIAL}*.lock"))


def test_what_an_older_version_left_of_such_locks_is_swept_once(tmp_path: Path) -> None:
    (tmp_path / f"abc{cache.PARTIAL}x.lock").touch()
    said: list[str] = []
    for _ in range(2):
        sweep(tmp_path, said.append)
    assert len(said) == 1


def test_too_little_room_is_said_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "statvfs", lambda _: SimpleNamespace(f_bavail=100, f_frsize=10**6))
    with pytest.raises(CannotRunHere, match=r"unpacking needs 1\.8 GB of disk, only 0\.1 GB is"):
        need_space(tmp_path, 1_800_000_000, "unpacking")
    need_space(tmp_path, 99_000_000, "unpacking")


def test_a_disk_that_fills_up_is_one_line_with_the_way_out(tmp_path: Path) -> None:
    full = OSError(errno.ENOSPC, "No space left on device")
    with (
        pytest.raises(CannotRunHere, match="disk full while unpacking.*XDG_CACHE_HOME"),
        disk_faults(tmp_path, "unpacking"),
    ):
        raise full


def test_a_cache_that_may_not_be_written_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path, **_: object) -> None:  # root, too, runs the tests
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.setattr(Path, "mkdir", refuse)
    with pytest.raises(CannotRunHere, match="kind: Permission denied"), disk_faults(tmp_path, "x"):
        make(tmp_path / "kind" / "key", "")


def test_a_cache_that_is_a_file_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("")
    with pytest.raises(CannotRunHere, match=r"cache: (File exists|Not a directory)"):  # noqa: SIM117
        with disk_faults(tmp_path, "x"):
            need_space(tmp_path / "cache", 1, "x")


def test_the_stamp_is_json_that_says_its_layout(tmp_path: Path) -> None:
    make(tmp_path / "key", "")
    assert json.loads((tmp_path / "key" / cache.STAMP).read_text()) == {"layout": cache.LAYOUT}
