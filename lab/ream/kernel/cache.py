# SPDX-License-Identifier: GPL-2.0-only
"""A cache whose entries appear whole or not at all, however a run ends.

An entry is a directory, `<kind>/<key>`, that is made under a temporary name beside its place,
synced to disk, and renamed. `<kind>/<key>.lock` is locked meanwhile, so that two runs which need
the same entry make it once. Leftovers of a killed run are recognised by their unlocked lock file.
"""

import errno
import fcntl
import json
import math
import os
import secrets
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from ream.command import Command, run
from ream.errors import CannotRunHere

LAYOUT = 1
"""Version of the layout of entries. If it is increased, older entries are made again."""

STAMP = "stamp.json"
PARTIAL = ".partial-"

UNUSED_DAYS = 30
"""Days without use after which an entry is removed."""
SPARE_BYTES = 5 * 10**9
"""Free disk space below which entries are removed sooner."""
SOONEST_S = 3600.0
"""Time since its last use within which an entry is kept, however full the disk is."""
MOST_AT_ONCE = 2
"""The most entries removed before one is made, as removing a tree of many files takes seconds."""

Step = Callable[[str], None]
"""Is called with a line on what is being done."""


@contextmanager
def locked(entry: Path, step: Step) -> Iterator[None]:
    """Hold an entry's lock. Waits for another run that holds it, whose end releases it."""
    entry.parent.mkdir(parents=True, exist_ok=True)
    with _lock_file(entry).open("a") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            step(f"waiting for another run that makes {entry.parent.name} {entry.name[:12]}")
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield


@contextmanager
def appearing(entry: Path, stamp: Callable[[], Mapping[str, object]]) -> Iterator[Path]:
    """Yield a new temporary directory that becomes `entry` if the block ends well.

    stamp: called last; returns the data to store about the entry. The caller holds its lock.
    If the block fails, nothing is left; an older entry of that name is replaced only at the end.
    """
    partial = _temporary(entry)
    try:
        yield partial
        (partial / STAMP).write_text(json.dumps({"layout": LAYOUT, **stamp()}, indent=1))
        _write_to_disk(partial)
        if entry.exists():
            entry.rename(_temporary(entry) / "replaced")
        partial.rename(entry)
    finally:
        _remove_leftovers(entry)


@contextmanager
def workroom(entry: Path) -> Iterator[Path]:
    """Yield a temporary directory for an entry whose lock the caller holds; removes it later."""
    try:
        yield _temporary(entry)
    finally:
        _remove_leftovers(entry)


@contextmanager
def scratch(entry: Path, step: Step) -> Iterator[Path]:
    """Yield a temporary directory for this process; also remove those of dead processes.

    It is in the cache, not in TMPDIR, because there is room and programs may be executed there.
    """
    with locked(entry, step):
        sweep(entry.parent, step)
        try:
            with workroom(entry) as place:
                yield place
        finally:
            _lock_file(entry).unlink(missing_ok=True)


@contextmanager
def room(cache: Path, step: Step) -> Iterator[Path]:
    """Yield a temporary directory for the builds and runs of one command, as scratch() does."""
    with scratch(cache / "run" / secrets.token_hex(8), step) as place:
        yield place


def stamp_of(entry: Path) -> dict[str, Any] | None:
    """Return the data stored about a whole entry of the current layout; None if there is none."""
    try:
        stamp = json.loads((entry / STAMP).read_text())
    except (OSError, ValueError):
        return None
    return stamp if isinstance(stamp, dict) and stamp.get("layout") == LAYOUT else None


def touch(entry: Path) -> None:
    """Record that an entry was used now, for `prune`."""
    os.utime(entry / STAMP)


def sweep(kind: Path, step: Step) -> None:
    """Remove leftovers of dead runs beside the entries of one kind."""
    for leftover in kind.glob(f"*{PARTIAL}*"):
        entry = leftover.with_name(leftover.name.partition(PARTIAL)[0])
        with _lock_file(entry).open("a") as handle, suppress(BlockingIOError):
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            step(f"removing what an interrupted run left in {kind}")
            _remove(leftover)


def long_ago() -> float:
    """Return the time before which an unused entry is removed, in seconds since the epoch."""
    return time.time() - UNUSED_DAYS * 86400


def prune(kind: Path, *, unused_since: float) -> None:
    """Remove entries last used before a time (seconds since the epoch) and not locked by a run."""
    for stamp in _stamps(kind):
        _prune_one(stamp, unused_since)


def spare(kind: Path, nr_bytes: int) -> None:
    """Remove entries, the longest unused first, until their disk has that much room to spare."""
    oldest = sorted((_last_used(one), one) for one in _stamps(kind))
    for last_used, stamp in oldest[:MOST_AT_ONCE]:
        if _free_bytes(kind) >= nr_bytes + SPARE_BYTES or last_used > time.time() - SOONEST_S:
            return
        _prune_one(stamp, last_used + 1)


def need_space(cache: Path, nr_bytes: int, purpose: str) -> None:
    """Raise CannotRunHere unless the cache's disk has that much room, for the named purpose."""
    cache.mkdir(parents=True, exist_ok=True)
    free_bytes = _free_bytes(cache)
    if free_bytes < nr_bytes:
        raise CannotRunHere(
            f"{cache}: {purpose} needs {_gigabytes(nr_bytes)} of disk, only "
            f"{_gigabytes(free_bytes)} is free; make room, or set XDG_CACHE_HOME"
        )


@contextmanager
def disk_faults(cache: Path, purpose: str) -> Iterator[None]:
    """Turn errors of a full or read-only disk into CannotRunHere with a line for the user."""
    try:
        yield
    except OSError as cause:
        if cause.errno in (errno.ENOSPC, errno.EDQUOT):
            raise disk_full(cache, purpose) from cause
        named = f"{cause.filename}: " if cause.filename else ""
        raise CannotRunHere(f"{named or f'{cache}: '}{cause.strerror or cause}") from cause


def disk_full(cache: Path, purpose: str) -> CannotRunHere:
    """Return the error for a full disk; call it before partial files are removed."""
    status = os.statvfs(cache)
    no_files = "; no room for more files" if status.f_files and not status.f_favail else ""
    return CannotRunHere(
        f"{cache}: disk full while {purpose} ({_gigabytes(_free_bytes(cache))} free{no_files}); "
        "make room, or set XDG_CACHE_HOME"
    )


def _stamps(kind: Path) -> Iterator[Path]:
    """Yield the stamps of whole entries; locking an unfinished one would leave its lock file."""
    return (one for one in kind.glob(f"*/{STAMP}") if PARTIAL not in one.parent.name)


def _last_used(stamp: Path) -> float:
    try:
        return stamp.stat().st_mtime
    except OSError:  # another run removed it meanwhile
        return math.inf


def _prune_one(stamp: Path, unused_since: float) -> None:
    with _lock_file(stamp.parent).open("a") as handle, suppress(BlockingIOError, OSError):
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if stamp.stat().st_mtime < unused_since:
            stamp.unlink()  # first, so that a half-removed entry has no stamp
            _remove(stamp.parent)


def _temporary(entry: Path) -> Path:
    return Path(tempfile.mkdtemp(prefix=f"{entry.name}{PARTIAL}", dir=entry.parent))


def _lock_file(entry: Path) -> Path:
    return entry.with_name(f"{entry.name}.lock")


def _remove(directory: Path) -> None:
    # A child that outlived its killed run may still write here. Remaining files are removed by
    # the next sweep, and are never used as an entry.
    if directory.is_dir():
        shutil.rmtree(directory, ignore_errors=True)
    else:
        directory.unlink(missing_ok=True)


def _remove_leftovers(entry: Path) -> None:
    for leftover in entry.parent.glob(f"{entry.name}{PARTIAL}*"):
        _remove(leftover)


def _write_to_disk(directory: Path) -> None:
    """Sync a directory, as a power cut may otherwise keep the rename and lose files' contents."""
    run(Command(("sync", "--file-system", str(directory)), directory, deadline_s=600))


def _free_bytes(cache: Path) -> int:
    status = os.statvfs(cache)
    return status.f_bavail * status.f_frsize


def _gigabytes(nr_bytes: int) -> str:
    return f"{nr_bytes / 1e9:.1f} GB"
