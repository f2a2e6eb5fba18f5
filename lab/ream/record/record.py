# SPDX-License-Identifier: GPL-2.0-only
"""The record of one run: a directory that appears whole, or not at all, and never changes."""

import errno
import fcntl
import json
import os
import re
import secrets
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self, TextIO

from ream.errors import BadUsage, CannotRunHere, ReamError
from ream.measure.sample import NO_EXTRA, Sample

SCHEMA = 1
"""Of run.json and receipt.json; docs/format.md says what it means."""

RUN = "run.json"
RECEIPT = "receipt.json"
SAMPLES = "samples.jsonl"
TABLE = "table.txt"
LETTER = "letter.txt"
CONSOLES = "consoles"
"""A directory: what each guest of the vm stage printed."""

_FILES = {RUN, RECEIPT, SAMPLES, TABLE, LETTER, CONSOLES}
_PARTIAL = re.compile(r"\.\d{8}T\d{6}Z-[\w.-]+-[0-9a-f]{4}\.partial")

LEAST_FREE_BYTES = 16 << 20
"""Room for a long run's samples many times over; asked for before anything is measured."""

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def new_run_id(experiment: str, stage: str) -> str:
    """A name that sorts by time and that two runs of the same second do not share."""
    now = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    return f"{now}-{experiment}-{stage}-{secrets.token_hex(2)}"


class RecordWriter:
    """A record while its run goes on, in a hidden directory beside its final place.

    Made by open_record(). Samples are on disk as soon as append() returns, so that a run can be
    watched; finish() gives the directory its name. Without finish() nothing is left.
    """

    def __init__(self, final: Path, partial: Path, samples: TextIO) -> None:
        self.path = final
        self._partial = partial
        self._samples = samples

    def append(self, sample: Sample, extra: Mapping[str, Any] = NO_EXTRA) -> None:
        """Add one line; `extra` are keys of the runner's that we do not read.

        Raises CannotRunHere if it cannot be written.
        """
        with _told(self._partial):
            self._samples.write(sample.to_json(extra) + "\n")
            self._samples.flush()

    def keep(self, name: str, file: Path) -> None:
        """Copy a file into the record, below it by the given name; it is never rewritten.

        Raises CannotRunHere if there is no room.
        """
        with _told(self._partial):
            place = self._partial / name
            place.parent.mkdir(exist_ok=True)
            _write_durably(place, file.read_text(encoding="utf-8", errors="replace"))

    def finish(
        self, run: Mapping[str, Any], receipt: Mapping[str, Any], *, table: str, letter: str
    ) -> Path:
        """Write what is said about the samples and give the record its name.

        Raises CannotRunHere if there is no room; the record does not appear then, nor if
        another has taken its name.
        """
        texts = {RUN: _pretty(run), RECEIPT: _pretty(receipt), TABLE: table, LETTER: letter}
        with _told(self.path):
            for name, text in texts.items():
                _write_durably(self._partial / name, text)
            os.fsync(self._samples.fileno())
            self._samples.close()
            # rename() refuses to replace a directory that holds anything, and records do.
            self._partial.rename(self.path)
            _sync_directory(self.path.parent)
        return self.path


@contextmanager
def open_record(runs: Path, run_id: str) -> Iterator[RecordWriter]:
    """Begin the record `runs`/`run_id`; on leaving without finish() it is gone.

    Call it before measuring: raises BadUsage if the directory cannot be written to or the name
    is taken, CannotRunHere if there is no room. A run killed outright leaves a hidden
    directory, which the next run here removes.
    """
    final, partial = runs / run_id, runs / f".{run_id}.partial"
    with _told(runs):
        runs.mkdir(parents=True, exist_ok=True)
        if (free := shutil.disk_usage(runs).free) < LEAST_FREE_BYTES:
            raise CannotRunHere(
                f"{runs}: {free >> 20} MiB free, a record needs {LEAST_FREE_BYTES >> 20} MiB"
            )
        lock = _claim(runs, final, partial)
    try:
        with _told(partial):
            samples = (partial / SAMPLES).open("x", encoding="utf-8")
        try:
            yield RecordWriter(final, partial, samples)
        finally:
            with suppress(OSError):  # what a full disk refused before, closing would try again
                samples.close()
    finally:
        shutil.rmtree(partial, ignore_errors=True)  # finish() has renamed it, or nobody wants it
        os.close(lock)


def _claim(runs: Path, final: Path, partial: Path) -> int:
    """Make our own hidden directory, and remove those whose owners died.

    An owner holds a lock on its directory, which its death releases. The lock on `runs` keeps
    a directory from being taken for a dead run's between its making and its locking.
    Returns the descriptor that holds our lock.
    """
    gate = os.open(runs, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(gate, fcntl.LOCK_EX)
        for other in runs.glob(".*.partial"):
            if _is_ours(other):
                _remove_if_dead(other)
        if final.exists():
            raise BadUsage(f"{final}: there is such a record already, and records never change")
        partial.mkdir()
        own = os.open(partial, os.O_RDONLY | os.O_DIRECTORY)
        fcntl.flock(own, fcntl.LOCK_EX)
        return own
    finally:
        os.close(gate)


def _is_ours(partial: Path) -> bool:
    """Whether a directory is an unfinished record; --output may point anywhere."""
    with suppress(OSError):
        held = {entry.name for entry in partial.iterdir()}
        return _PARTIAL.fullmatch(partial.name) is not None and held <= _FILES
    return False


def _remove_if_dead(directory: Path) -> None:
    with suppress(OSError):  # its owner lives (EWOULDBLOCK), or has just removed it
        other = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(directory, ignore_errors=True)
        finally:
            os.close(other)


@contextmanager
def _told(path: Path) -> Iterator[None]:
    """Turn what the file system says into one line of ours."""
    try:
        yield
    except OSError as cause:
        if cause.errno in _FULL:
            raise CannotRunHere(f"{path}: {cause.strerror}; the run is not recorded") from cause
        raise BadUsage(f"{path}: cannot write a record there: {cause.strerror}") from cause


def _pretty(value: Mapping[str, Any]) -> str:
    return json.dumps(value, indent=1, allow_nan=False) + "\n"


def _write_durably(path: Path, text: str) -> None:
    with path.open("x", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def _sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@dataclass(frozen=True)
class Record:
    """A finished record, read back."""

    path: Path
    run: Mapping[str, Any]
    receipt: Mapping[str, Any]

    @classmethod
    def load(cls, asked: str, runs: Path) -> Self:
        """A record by its run id, by the path of its directory, or the "last" one.

        runs: the directory that holds records. Raises BadUsage if there is none, or if what is
        there was not written by a ream that this one understands.
        """
        path = find_record(asked, runs)
        return cls(path, _read_object(path / RUN), _read_object(path / RECEIPT))

    def samples(self) -> Iterator[Sample]:
        """Its samples, in the order they were taken; raises ReamError at a line that is none."""
        path = self.path / SAMPLES
        try:
            with path.open(encoding="utf-8", errors="replace") as lines:
                for number, line in enumerate(lines, start=1):
                    yield Sample.from_json(line, where=f"{path}:{number}")
        except OSError as cause:
            raise ReamError(f"{path}: {cause.strerror}") from cause


def find_record(asked: str, runs: Path) -> Path:
    """The directory of a record; raises BadUsage saying where it looked."""
    if asked == "last":
        # Run ids begin with their time, so the last by name is the last by time.
        found = sorted(path.parent for path in runs.glob(f"[0-9]*/{RUN}"))
        if not found:
            raise BadUsage(f"no record in {runs} yet; `ream run` makes one")
        return found[-1]
    candidates = (runs / asked, Path(asked)) if "/" not in asked else (Path(asked),)
    for path in candidates:
        if (path / RUN).is_file():
            return path
    raise BadUsage(f"no record {asked!r}: neither a run in {runs} nor a directory with {RUN}")


def _read_object(path: Path) -> Mapping[str, Any]:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except OSError as cause:
        raise BadUsage(f"{path}: {cause.strerror}") from cause
    except (ValueError, RecursionError) as cause:
        raise BadUsage(f"{path}: not JSON; the record is damaged") from cause
    schema = value.get("schema") if isinstance(value, dict) else None
    if type(schema) is not int or schema != SCHEMA:  # to Python, true is 1 as well
        raise BadUsage(f"{path}: schema {schema!r}; this ream reads schema {SCHEMA}")
    return dict(value)
