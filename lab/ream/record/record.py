# SPDX-License-Identifier: GPL-2.0-only
"""The record of one run: a directory that appears whole, or not at all, and never changes."""

import fcntl
import json
import os
import re
import secrets
import shlex
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, BinaryIO, Self

from ream.errors import BadUsage, CannotRunHere, ReamError, VerificationFailed
from ream.measure.sample import NO_EXTRA, Sample
from ream.paths import data_dir
from ream.record.journal import JOURNAL, Journal, holds_a_round, told
from ream.record.packed import SUFFIX, content_of, lines_of, place_of
from ream.record.sums import SUMS, differing, has_sums, sums_of

SCHEMA = 1
"""Of run.json and receipt.json; docs/format.md says what it means."""

RUN = "run.json"
RECEIPT = "receipt.json"
SAMPLES = "samples.jsonl"
TABLE = "table.txt"
LETTER = "letter.txt"
ANNOTATED = "annotated.txt"
"""Where it was asked for: the instructions of functions, with how often each was executed."""
CONSOLES = "consoles"
"""A directory: what each guest of the vm stage printed."""

PLAN = "plan.json"
"""What was asked, and of what; written before anything is measured."""
NOISE = "noise.jsonl"
"""What the machine did meanwhile."""
SERIES = "series.json"
"""The patches themselves, only as long as the record is unfinished."""

MIB = 1 << 20

PARTIAL = ".partial"
FRESH = ".new"

_OWN = (RUN, RECEIPT, SAMPLES)
"""What makes a directory a record, if only a damaged one."""
_READ = (RUN, RECEIPT, SAMPLES, TABLE, LETTER, PLAN, NOISE)
"""What we read of a finished record, or show of it; each may have its compressed form instead."""
SUMMED = "summary_id"
"""The receipt's key that every ream writes which writes checksums."""
NOT_USED = "the record is damaged and not used"
_OURS = {*_READ, ANNOTATED, SUMS, SERIES, JOURNAL}
_PASSING = {SERIES, JOURNAL, "journal.new", *(f".{name}{FRESH}" for name in _OURS)}
"""What a finished record has not, or not for long."""
_FILES = {*_OURS, *_PASSING}
_TIME = "%Y%m%dT%H%M%SZ"
_BEGINS = re.compile(r"\.?(\d{8}T\d{6}Z)-")
_PARTIAL = re.compile(r"\.\d{8}T\d{6}Z-[\w.-]+-[0-9a-f]{4}\.partial")
_LOOKS, _LOOK_S = 5, 0.05

_LAST = re.compile(r"last(?:-([0-9]{1,6}))?")
MOST_NAMED = 4
"""Of records that a short name fits."""

LEAST_BYTES = 256 << 10
"""Room for what is said of a run, without its rows and samples."""
ROW_BYTES = 16 << 10
"""What a row takes of run.json, receipt and table, with the noise meanwhile."""
SAMPLE_BYTES = 512
"""A line of samples.jsonl and one of the journal, of which most have 190 each."""
CONSOLE_BYTES = 64 << 10
"""What a guest prints, three times over."""


def new_run_id(
    experiment: str, stage: str, *, runs: Path | None = None, now: datetime | None = None
) -> str:
    """A name that sorts by time and that two runs of the same second do not share.

    runs: the directory that the record is for. Its newest record stays before this one, also if
    that was begun this second, or the clock (now) has been set back meanwhile: the name then has
    that record's time and a second.
    """
    begun = (now or datetime.now(UTC)).replace(microsecond=0)
    if runs is not None and (newest := newest_time(runs)) is not None and newest >= begun:
        begun = newest + timedelta(seconds=1)
    return f"{begun.strftime(_TIME)}-{experiment}-{stage}-{secrets.token_hex(2)}"


def newest_time(runs: Path) -> datetime | None:
    """When the newest record of a directory was begun, unfinished ones among them, by its name."""
    names = [entry.name for entry in runs.iterdir()] if runs.is_dir() else []
    times = [match[1] for name in names if (match := _BEGINS.match(name))]
    for text in sorted(times, reverse=True):
        with suppress(ValueError):  # digits that are no date
            return datetime.strptime(text, _TIME).replace(tzinfo=UTC)
    return None


class RecordWriter:
    """A record while its run goes on, in a hidden directory beside its final place.

    Made by open_record(). Samples are on disk as soon as append() returns, so that a run can be
    watched; finish() gives the directory its name. `journal` says what is to stay if it does not.
    """

    def __init__(self, final: Path, partial: Path, samples: BinaryIO, journal: Journal) -> None:
        self.path = final
        self.journal = journal
        self._partial = partial
        self._samples = samples
        self._begins = True

    def begin(self) -> None:
        """All samples come again, from the journal or anew: with the first, the old ones go."""
        self._begins = True

    def append(self, sample: Sample, extra: Mapping[str, Any] = NO_EXTRA) -> None:
        """Add one line; `extra` are keys of the runner's that we do not read.

        Raises CannotRunHere if it cannot be written.
        """
        left = f"{sample.to_json(extra)}\n".encode()
        with told(self._partial):
            if self._begins and os.fstat(self._samples.fileno()).st_size:
                self._samples.truncate(0)
            self._begins = False
            while left:  # unbuffered, so that nothing is tried again when it is closed
                left = left[self._samples.write(left) :]

    def append_noise(self, line: str) -> None:
        """Add a line of what the machine did meanwhile; raises CannotRunHere if it cannot."""
        with told(self._partial), (self._partial / NOISE).open("a", encoding="utf-8") as file:
            file.write(f"{line.rstrip()}\n")

    def noise_until(self) -> float:
        """Up to which `t_s` an earlier start of the run has looked; 0 if there was none."""
        with suppress(OSError):
            for line in reversed([*lines_of(self._partial / NOISE)]):
                with suppress(ValueError, TypeError, KeyError):  # a line that a death cut off
                    return float(json.loads(line)["t_s"])
        return 0.0

    def write(self, name: str, text: str) -> None:
        """Write a file of the record, durably; raises CannotRunHere if there is no room."""
        with told(self._partial):
            _write_durably(self._partial / name, text)

    def keep(self, name: str, file: Path) -> None:
        """Copy a file into the record, below it by the given name.

        Where it is gone, and the record has one already, that one stays: a boot's console is
        kept with what the boot gave. Raises CannotRunHere if there is no room.
        """
        place = self._partial / name
        if not file.exists() and place.exists():
            return
        with told(self._partial):
            place.parent.mkdir(exist_ok=True)
            _write_durably(place, file.read_text(encoding="utf-8", errors="replace"))

    def finish(
        self, run: Mapping[str, Any], receipt: Mapping[str, Any], *, table: str, letter: str
    ) -> Path:
        """Write what is said about the samples and give the record its name.

        Raises CannotRunHere if there is no room; the record does not appear then, nor if
        another has taken its name.
        """
        texts = {RUN: pretty(run), RECEIPT: pretty(receipt), TABLE: table, LETTER: letter}
        with told(self.path):
            for name, text in texts.items():
                _write_durably(self._partial / name, text)
            os.fsync(self._samples.fileno())
            self._samples.close()
            _write_durably(self._partial / SUMS, sums_of(self._partial, _PASSING))
            # rename() refuses to replace a directory that holds anything, and records do.
            self._partial.rename(self.path)
            # Last: a death before the rename must still find what to go on from.
            (self.path / SERIES).unlink(missing_ok=True)
            self.journal.move_to(self.path)
            self.journal.remove()
            _sync_directory(self.path.parent)
        return self.path


@contextmanager
def open_record(
    runs: Path, run_id: str, *, resume: bool = False, nr_bytes: int = LEAST_BYTES
) -> Iterator[RecordWriter]:
    """Begin the record `runs`/`run_id`, or go on with it; on leaving without finish() it is gone,
    or stays hidden if its journal holds a whole round. nr_bytes: room that it may take.

    It is gone all the same after VerificationFailed: measuring until memory happens to be right
    is no measurement. Call it before measuring: raises BadUsage if the directory cannot be
    written to, the name is taken, or another process has the record; CannotRunHere if there is
    no room. An error that leaves a record gets a note on how to go on.
    """
    final, partial = runs / run_id, runs / f".{run_id}.partial"
    with told(runs):
        runs.mkdir(parents=True, exist_ok=True)
        if (free := shutil.disk_usage(runs).free) < nr_bytes:
            raise CannotRunHere(
                f"{runs}: {free / MIB:.1f} MiB free, a record needs up to {nr_bytes / MIB:.1f} MiB"
            )
        lock = claim_again(partial) if resume else _claim(runs, final, partial)
    stays = resume
    try:
        with ExitStack() as stack:
            journal = Journal(partial / JOURNAL)
            stack.callback(journal.close)
            with told(partial):
                # Opened to append, so that truncating it is enough to begin again.
                samples = (partial / SAMPLES).open("ab", buffering=0)
            stack.callback(samples.close)
            try:
                yield RecordWriter(final, partial, samples, journal)
            except BaseException as error:
                # What comes after finish() has changed the name interrupts nothing.
                wanted = journal.holds_a_round and partial.exists()
                stays = wanted and not isinstance(error, VerificationFailed)
                if stays and not isinstance(error, BadUsage):  # that would not help
                    error.add_note(f"what was measured is kept: `{resume_line(partial)}`")
                raise
            stays = journal.holds_a_round
    finally:
        if not stays:
            shutil.rmtree(partial, ignore_errors=True)  # finish() has renamed it: nothing is there
        os.close(lock)


def resume_line(partial: Path) -> str:
    """The command that goes on with an unfinished record."""
    words = ("ream", "run", "--resume", partial.name[1 : -len(PARTIAL)])
    return shlex.join([*words, *elsewhere(partial.parent)])


def elsewhere(runs: Path) -> tuple[str, ...]:
    """The words of a command that say where records are; none where they are as a rule."""
    where = runs.absolute()
    return () if where == data_dir() / "runs" else ("--output", str(where))


def claim_again(partial: Path) -> int:
    """Lock an unfinished record that nobody has; the descriptor that holds the lock.

    Raises BadUsage if another process has it: its run goes on, or has been resumed.
    """
    own = os.open(partial, os.O_RDONLY | os.O_DIRECTORY)
    for _ in range(_LOOKS):
        # Who only looks whether a run is alive holds the lock for a moment.
        with suppress(BlockingIOError):
            fcntl.flock(own, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return own
        time.sleep(_LOOK_S)
    os.close(own)
    raise BadUsage(f"{partial}: another process is measuring for this record; wait for its end")


def _claim(runs: Path, final: Path, partial: Path) -> int:
    """Make our own hidden directory, and remove those of dead owners that hold nothing.

    An owner holds a lock on its directory, which its death releases. The lock on `runs` keeps
    a directory from being taken for a dead run's between its making and its locking.
    Returns the descriptor that holds our lock.
    """
    gate = os.open(runs, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(gate, fcntl.LOCK_EX)
        for other in runs.glob(f".*{PARTIAL}"):
            if is_ours(other) and not holds_a_round(other):
                remove_if_dead(other)
        if final.exists() or partial.exists():
            raise BadUsage(f"{final}: there is such a record already, and records never change")
        partial.mkdir()
        own = os.open(partial, os.O_RDONLY | os.O_DIRECTORY)
        fcntl.flock(own, fcntl.LOCK_EX)
        return own
    finally:
        os.close(gate)


def is_ours(partial: Path) -> bool:
    """Whether a directory is an unfinished record; --output may point anywhere."""
    with suppress(OSError), os.scandir(partial) as held:
        return _PARTIAL.fullmatch(partial.name) is not None and all(
            entry.is_dir(follow_symlinks=False)
            if entry.name == CONSOLES
            else entry.name in _FILES and entry.is_file(follow_symlinks=False)
            for entry in held
        )
    return False


def remove_if_dead(directory: Path) -> bool:
    """Remove an unfinished record unless its owner lives; whether it is gone."""
    with suppress(OSError):  # its owner lives (EWOULDBLOCK), or has just removed it
        other = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(directory, ignore_errors=True)
        finally:
            os.close(other)
    return not directory.exists()


def pretty(value: Mapping[str, Any]) -> str:
    """An object as a file of a record has it."""
    return json.dumps(value, indent=1, allow_nan=False) + "\n"


def _write_durably(path: Path, text: str) -> None:
    """Whole or not at all, also where a run that was resumed has written one before."""
    fresh = path.with_name(f".{path.name}{FRESH}")
    try:
        with fresh.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)
    except BaseException:
        with suppress(OSError):
            fresh.unlink(missing_ok=True)
        raise


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

        runs: the directory that holds records. Raises BadUsage if there is none, if a file of it
        is not what its checksum says, or if it was not written by a ream that this one
        understands. Of a record without checksums only the last is known.
        """
        path = find_record(asked, runs)
        for fault in changed(path):
            raise BadUsage(f"{path}: {fault}; {NOT_USED}")
        found = cls(path, read_object(path / RUN), read_object(path / RECEIPT))
        if SUMMED in found.receipt and not has_sums(path):
            raise BadUsage(f"{path}: {SUMS} missing, with which it was written; {NOT_USED}")
        return found

    def samples(self) -> Iterator[Sample]:
        """Its samples, in the order they were taken; raises ReamError at a line that is none."""
        path = self.path / SAMPLES
        try:
            for number, line in enumerate(lines_of(path), start=1):
                text = line.decode(errors="replace")
                yield Sample.from_json(text, where=f"{path}:{number}")
        except OSError as cause:
            raise ReamError(f"{path}: {cause.strerror}") from cause


def changed(path: Path) -> Iterator[str]:
    """What of a record is not as its checksums say: each a line that begins with a file's name."""
    return differing(path, [name + form for name in _READ for form in ("", SUFFIX)])


def find_record(asked: str, runs: Path) -> Path:
    """The directory of a record; raises BadUsage saying where it looked.

    asked: a run id, the beginning or the end of one that no other has, the path of a directory,
    "last", or "last-1" for the one before it.
    """
    if back := _LAST.fullmatch(asked):
        # Run ids begin with their time, so the last by name is the last by time.
        # One that has lost its run.json is the last all the same: it is no other that was meant.
        found = sorted({path.parent for name in _OWN for path in runs.glob(f"[0-9]*/{name}*")})
        if not found:
            raise BadUsage(f"no record in {runs} yet; `ream run` makes one")
        if (number := int(back[1] or 0)) >= len(found):
            raise BadUsage(f"no record {asked!r}: there are {len(found)} in {runs}")
        path = found[-1 - number]
        if not is_record(path):
            raise BadUsage(f"{path}: no {RUN}; the record is damaged, name another")
        return path
    candidates = (runs / asked, Path(asked)) if "/" not in asked else (Path(asked),)
    for path in candidates:
        with suppress(OSError, ValueError):  # a name too long, or with a zero byte in it
            if is_record(path):
                return path
    alike = _alike(asked, runs)
    if len(alike) > 1:
        names = ", ".join(path.name for path in alike[:MOST_NAMED])
        more = f" and {len(alike) - MOST_NAMED} more" if len(alike) > MOST_NAMED else ""
        raise BadUsage(f"{asked!r} is {len(alike)} records: {names}{more}; give more of its name")
    if alike:
        return alike[0]
    raise BadUsage(f"no record {asked!r}: neither a run in {runs} nor a directory with {RUN}")


def _alike(asked: str, runs: Path) -> list[Path]:
    """Records whose names begin or end so; nothing begins with nothing."""
    return [
        path
        for path in sorted(runs.glob("[0-9]*"))
        if asked and (path.name.startswith(asked) or path.name.endswith(asked)) and is_record(path)
    ]


def is_record(path: Path) -> bool:
    """Whether this is the directory of a record that ended, packed or not."""
    return place_of(path / RUN).is_file()


def read_object(path: Path, *, way_out: str = "") -> Mapping[str, Any]:
    """The object of a file of a record, whole or not; raises BadUsage if it cannot be read.

    way_out: what its reader is to do about it.
    """
    more = f"; {way_out}" if way_out else ""
    try:
        value = json.loads(content_of(path).decode())
    except OSError as cause:
        raise BadUsage(f"{path}: {cause.strerror}{more}") from cause
    except (ValueError, RecursionError) as cause:
        raise BadUsage(f"{path}: not JSON; the record is damaged{more}") from cause
    schema = value.get("schema") if isinstance(value, dict) else None
    if type(schema) is not int or schema != SCHEMA:  # to Python, true is 1 as well
        raise BadUsage(f"{path}: schema {schema!r}; this ream reads schema {SCHEMA}{more}")
    return dict(value)
