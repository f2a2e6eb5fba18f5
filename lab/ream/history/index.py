# SPDX-License-Identifier: GPL-2.0-only
"""An index of a directory of records, so that ten thousand records are listed quickly.

The index is a cache: each query first updates it for new and changed directories. If it cannot be
used, the answer comes from the records themselves, more slowly.
"""

import hashlib
import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from ream.errors import BadUsage
from ream.history.entry import Damaged, HistoryEntry, Listed, Stamp, read, stamps, started
from ream.paths import cache_dir

VERSION = 2
"""Version of the index's format. A newer index is not used, an older one is rebuilt."""
BUSY_S = 10.0
"""Seconds to wait for another process that writes the index; on a busy machine 1 was too few."""
DIGITS = 16

Note = Callable[[str], None]
"""Called with one line that states why the index was not used."""
Advance = Callable[[int, int], None]
"""Called with the number of records that have been read, and the number of all to read."""

_EMPTY = (
    "DROP TABLE IF EXISTS record",
    "CREATE TABLE record (name TEXT PRIMARY KEY, files TEXT NOT NULL, listed TEXT NOT NULL)",
    f"PRAGMA user_version = {VERSION}",
)


@dataclass(frozen=True)
class History:
    """The records of a directory: entries and damaged records, each with the newest first."""

    entries: tuple[HistoryEntry, ...]
    damaged: tuple[Damaged, ...]


class _NotOurs(Exception):
    """The index cannot be used, for the reason in the text."""


def index_path(runs: Path) -> Path:
    """The path of the index of a directory of records, in the cache."""
    digest = hashlib.sha256(str(runs.resolve()).encode(errors="surrogateescape")).hexdigest()
    return cache_dir() / "history" / f"{digest[:DIGITS]}.sqlite"


def look(
    runs: Path, note: Note, advance: Advance = lambda _done, _of: None, *, index: Path | None = None
) -> History:
    """Every record in `runs`, using the index if possible.

    advance: called for records that have to be read. A missing `runs` has no records. Raises
    BadUsage if `runs` cannot be read.
    """
    index = index_path(runs) if index is None else index
    there = _there(runs)
    if not there and not index.exists():
        return History((), ())
    known: Mapping[str, tuple[str, Listed]] = {}
    try:
        known = _load(index)
    except (OSError, sqlite3.Error, _NotOurs, ValueError) as cause:
        note(f"{index}: {_why(cause)}; listed from the records themselves")
        return _history(_read(runs, there, advance).values())
    fresh, changed = _compare(known, there)
    read_now = _read(runs, changed, advance)
    gone = known.keys() - {stamp.name for stamp in there}
    if read_now or gone:
        try:
            _store(index, [s for s in changed if s.name in read_now], read_now, gone)
        except (OSError, sqlite3.Error, _NotOurs) as cause:
            note(f"{index}: {_why(cause)}; it is not up to date, this list is")
    return _history((*fresh.values(), *read_now.values()))


def rebuild(runs: Path, advance: Advance, *, index: Path | None = None) -> History:
    """Rebuild the index from the records; raises BadUsage if it cannot be written."""
    index = index_path(runs) if index is None else index
    there = _there(runs)
    found = _read(runs, there, advance)
    try:
        try:
            _replace(index, there, found)
        except (sqlite3.DatabaseError, _NotOurs) as cause:
            if isinstance(cause, sqlite3.OperationalError):  # locked, or no room: it is whole
                raise
            for suffix in ("", "-wal", "-shm", "-journal"):
                index.with_name(index.name + suffix).unlink(missing_ok=True)
            _replace(index, there, found)
    except (OSError, sqlite3.Error) as cause:
        raise BadUsage(f"{index}: cannot be written: {_why(cause)}") from cause
    return _history(found.values())


def _there(runs: Path) -> list[Stamp]:
    try:
        return list(stamps(runs))
    except OSError as cause:
        raise BadUsage(f"{runs}: cannot be listed: {cause.strerror}") from cause


def _compare(
    known: Mapping[str, tuple[str, Listed]], there: Iterable[Stamp]
) -> tuple[dict[str, Listed], list[Stamp]]:
    """The index's entries that are current, and the directories that are new or have changed."""
    fresh: dict[str, Listed] = {}
    changed = []
    for stamp in there:
        files, listed = known.get(stamp.name, ("", None))
        if listed is not None and files == stamp.files:
            fresh[stamp.name] = listed
        else:
            changed.append(stamp)
    return fresh, changed


def _read(
    runs: Path, wanted: Sequence[Stamp], advance: Advance = lambda _done, _all: None
) -> dict[str, Listed]:
    """Read records, by name; those that vanish meanwhile are left out."""
    found = {}
    for done, stamp in enumerate(wanted, start=1):
        if (listed := read(runs / stamp.name)) is not None:
            found[stamp.name] = listed
        advance(done, len(wanted))
    return found


def _history(listed: Iterable[Listed]) -> History:
    listed = tuple(listed)
    entries = [one.entry for one in listed if one.entry is not None]
    damaged = [one.damaged for one in listed if one.damaged is not None]
    # A directory named by hand has no time in its name, and comes last.
    return History(
        tuple(sorted(entries, key=lambda one: _age(one.run), reverse=True)),
        tuple(sorted(damaged, key=lambda one: _age(one.name), reverse=True)),
    )


def _age(name: str) -> tuple[bool, str]:
    return started(name) is not None, name


# --- The database ------------------------------------------------------------------------


@contextmanager
def _opened(index: Path) -> Iterator[sqlite3.Connection]:
    """A connection to an index of this version, created if there is none.

    Raises sqlite3.Error if it is damaged or locked, _NotOurs if it is of a newer version.
    """
    index.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(index, timeout=BUSY_S, isolation_level=None)) as connection:
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if version > VERSION:
            raise _NotOurs(f"version {version}, this ream's is {VERSION}")
        if version != VERSION:
            # Not WAL: sqlite does not wait for locks when it begins or ends that.
            connection.execute("PRAGMA journal_mode = DELETE")
            with _transaction(connection):  # two of us may have come this far
                _make_empty(connection)
        connection.execute("PRAGMA synchronous = NORMAL")
        yield connection


@contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """A transaction, rolled back on an error; waits up to BUSY_S for another writer."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def _make_empty(connection: sqlite3.Connection) -> None:
    for statement in _EMPTY:
        connection.execute(statement)


def _load(index: Path) -> dict[str, tuple[str, Listed]]:
    with _opened(index) as connection:
        return {
            str(name): (str(files), Listed.model_validate(json.loads(listed)))
            for name, files, listed in connection.execute("SELECT name, files, listed FROM record")
        }


def _store(
    index: Path, changed: Iterable[Stamp], found: Mapping[str, Listed], gone: Iterable[str]
) -> None:
    with _opened(index) as connection, _transaction(connection):
        _insert(connection, changed, found)
        connection.executemany("DELETE FROM record WHERE name = ?", [(name,) for name in gone])


def _replace(index: Path, there: Iterable[Stamp], found: Mapping[str, Listed]) -> None:
    with _opened(index) as connection, _transaction(connection):
        _make_empty(connection)
        _insert(connection, [stamp for stamp in there if stamp.name in found], found)


def _insert(
    connection: sqlite3.Connection, changed: Iterable[Stamp], found: Mapping[str, Listed]
) -> None:
    # By json, which escapes half a surrogate pair: a damaged record may have one in a name.
    connection.executemany(
        "INSERT OR REPLACE INTO record (name, files, listed) VALUES (?, ?, ?)",
        [(s.name, s.files, json.dumps(found[s.name].model_dump())) for s in changed],
    )


def _why(cause: Exception) -> str:
    if isinstance(cause, OSError):
        return str(cause.strerror)
    if isinstance(cause, ValueError):  # pydantic's as well as json's
        return "what it holds cannot be read; `ream verify` makes it anew"
    said = str(cause)
    if "locked" in said or isinstance(cause, _NotOurs):
        return said
    if isinstance(cause, sqlite3.DatabaseError) and not isinstance(cause, sqlite3.OperationalError):
        return f"{said}; `ream verify` makes it anew"
    return said
