# SPDX-License-Identifier: GPL-2.0-only
"""The record of one run: a directory that appears complete or not at all, and never changes."""

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
from ream.paths import QUOTED, data_dir
from ream.record.archive import archive_of, archives_of, paths_in
from ream.record.journal import JOURNAL, Journal, holds_a_round, told
from ream.record.packed import SUFFIX, content_of, lines_of, place_of
from ream.record.sums import SUMS, differing, has_sums, sums_of

SCHEMA = 1
"""Schema number of run.json and receipt.json, described in docs/format.md."""

RUN = "run.json"
RECEIPT = "receipt.json"
SAMPLES = "samples.jsonl"
TABLE = "table.txt"
LETTER = "letter.txt"
ANNOTATED = "annotated.txt"
"""On request, the instructions of functions with the number of executions of each."""
CONSOLES = "consoles"
"""The directory with the console output of each guest of the vm stage."""

PLAN = "plan.json"
"""The request and its basis, written before anything is measured."""
NOISE = "noise.jsonl"
"""The observations of the machine during the run."""
SERIES = "series.json"
"""The patches themselves, which only an unfinished record contains."""

MIB = 1 << 20

PARTIAL = ".partial"
FRESH = ".new"

_OWN = (RUN, RECEIPT, SAMPLES)
"""The files that make a directory a record, even a damaged one."""
_READ = (RUN, RECEIPT, SAMPLES, TABLE, LETTER, PLAN, NOISE)
"""The files of a finished record that ream reads or shows, each possibly compressed."""
SUMMED = "summary_id"
"""The receipt's key whose presence shows that the record was written with checksums."""
NOT_USED = "the record is damaged and not used"
_OURS = {*_READ, ANNOTATED, SUMS, SERIES, JOURNAL}
_PASSING = {SERIES, JOURNAL, "journal.new", *(f".{name}{FRESH}" for name in _OURS)}
"""Files that a finished record does not have, or not for long."""
_FILES = {*_OURS, *_PASSING}
_TIME = "%Y%m%dT%H%M%SZ"
_BEGINS = re.compile(r"\.?(\d{8}T\d{6}Z)-")
_PARTIAL = re.compile(r"\.\d{8}T\d{6}Z-[\w.-]+-[0-9a-f]{4}\.partial")
_LOOKS, _LOOK_S = 5, 0.05

_LAST = re.compile(r"last(?:-([0-9]{1,6}))?")
MOST_NAMED = 4
"""The most records that the error for an ambiguous name lists."""

LEAST_BYTES = 256 << 10
"""Room for a record without its rows and samples."""
ROW_BYTES = 16 << 10
"""Room for one row in run.json, receipt and table, with the noise during its measurement."""
SAMPLE_BYTES = 512
"""Room for one line in samples.jsonl and one in the journal, which mostly have 190 bytes each."""
CONSOLE_BYTES = 64 << 10
"""Room for a guest's console output, three times its usual size."""


def new_run_id(
    experiment: str, stage: str, *, runs: Path | None = None, now: datetime | None = None
) -> str:
    """A run id that sorts by time and differs from others of the same second.

    runs: the directory of the record. The id sorts after the newest record there, even if that was
    begun in this second or the clock (now) was set back: it then has that record's time plus a
    second.
    """
    begun = (now or datetime.now(UTC)).replace(microsecond=0)
    if runs is not None and (newest := newest_time(runs)) is not None and newest >= begun:
        begun = newest + timedelta(seconds=1)
    return f"{begun.strftime(_TIME)}-{experiment}-{stage}-{secrets.token_hex(2)}"


def newest_time(runs: Path) -> datetime | None:
    """The start of the newest record of a directory, finished or not, according to its name."""
    times = [match[1] for path in paths_in(runs) if (match := _BEGINS.match(path.name))]
    for text in sorted(times, reverse=True):
        with suppress(ValueError):  # digits that are no date
            return datetime.strptime(text, _TIME).replace(tzinfo=UTC)
    return None


class RecordWriter:
    """A record during its run, in a hidden directory beside its final path.

    open_record() makes it. Samples are on disk when append() returns, so that a run can be watched;
    finish() renames the directory. `journal` decides what is kept after an interruption.
    """

    def __init__(self, final: Path, partial: Path, samples: BinaryIO, journal: Journal) -> None:
        self.path = final
        self.journal = journal
        self._partial = partial
        self._samples = samples
        self._begins = True

    def begin(self) -> None:
        """Expect all samples again, replayed or measured; the first one replaces the old ones."""
        self._begins = True

    def append(self, sample: Sample, extra: Mapping[str, Any] = NO_EXTRA) -> None:
        """Add one line; `extra` contains keys of the runner that ream does not read.

        Raises CannotRunHere if the line cannot be written.
        """
        left = f"{sample.to_json(extra)}\n".encode()
        with told(self._partial):
            if self._begins and os.fstat(self._samples.fileno()).st_size:
                self._samples.truncate(0)
            self._begins = False
            while left:  # unbuffered, so that nothing is tried again when it is closed
                left = left[self._samples.write(left) :]

    def append_noise(self, line: str) -> None:
        """Add a line of noise.jsonl; raises CannotRunHere if it cannot be written."""
        with told(self._partial), (self._partial / NOISE).open("a", encoding="utf-8") as file:
            file.write(f"{line.rstrip()}\n")

    def noise_until(self) -> float:
        """The last `t_s` that an earlier start of the run has observed; 0 without one."""
        with suppress(OSError):
            for line in reversed([*lines_of(self._partial / NOISE)]):
                with suppress(ValueError, TypeError, KeyError):  # a line that a death cut off
                    return float(json.loads(line)["t_s"])
        return 0.0

    def write(self, name: str, text: str) -> None:
        """Write a file of the record durably; raises CannotRunHere if there is no room."""
        with told(self._partial):
            _write_durably(self._partial / name, text)

    def keep(self, name: str, file: Path) -> None:
        """Copy a file into the record under the given name.

        If the file is gone and the record already has a copy, that copy is kept: a boot's console
        stays with its samples. Raises CannotRunHere if there is no room.
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
        """Write the results and the receipt, and give the record its final name.

        Raises CannotRunHere if there is no room. The record does not appear then, nor if another
        one has taken its name.
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
    runs: Path,
    run_id: str,
    *,
    resume: bool = False,
    keeps: bool = True,
    nr_bytes: int = LEAST_BYTES,
) -> Iterator[RecordWriter]:
    """Begin or resume the record `runs`/`run_id`.

    Leaving the block without finish() removes it, unless its journal has a complete piece; then it
    stays hidden. keeps: whether it may stay, which makes no sense for a run that cannot be resumed.
    nr_bytes: the disk space that it may need.

    After VerificationFailed it is removed in any case: repeating until memory happens to be right
    would be no measurement. Call it before measuring. Raises BadUsage if the directory cannot be
    written to, the name is taken, or another process has the record; CannotRunHere if there is no
    room. An error that leaves a record gets a note on how to resume.
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
                wanted = keeps and journal.holds_a_round and partial.exists()
                stays = wanted and not isinstance(error, VerificationFailed)
                if stays and not isinstance(error, BadUsage):  # that would not help
                    error.add_note(f"what was measured is kept: `{resume_line(partial)}`")
                raise
            stays = keeps and journal.holds_a_round
    finally:
        if not stays:
            shutil.rmtree(partial, ignore_errors=True)  # finish() has renamed it: nothing is there
        os.close(lock)


def resume_line(partial: Path) -> str:
    """The command that resumes the run of an unfinished record."""
    words = ("ream", "run", "--resume", partial.name[1 : -len(PARTIAL)])
    return shlex.join([*words, *elsewhere(partial.parent)])


def elsewhere(runs: Path, option: str = "--output") -> tuple[str, ...]:
    """The command's words for the directory of records; empty for the default directory."""
    where = runs.absolute()
    return () if where == data_dir() / "runs" else (option, str(where))


def claim_again(partial: Path) -> int:
    """Lock an unfinished record and return the descriptor that holds the lock.

    Raises BadUsage if another process has it because its run is running or has been resumed.
    """
    own = os.open(partial, os.O_RDONLY | os.O_DIRECTORY)
    for _ in range(_LOOKS):
        # A process that only checks whether a run is alive holds the lock for a moment.
        with suppress(BlockingIOError):
            fcntl.flock(own, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return own
        time.sleep(_LOOK_S)
    os.close(own)
    raise BadUsage(f"{partial}: another process is measuring for this record; wait for its end")


def _claim(runs: Path, final: Path, partial: Path) -> int:
    """Create and lock our hidden directory, and remove those of dead owners without a piece.

    An owner holds a lock on its directory, which its death releases. The lock on `runs` keeps a new
    directory from being taken for that of a dead run before it is locked. Returns the descriptor
    that holds our lock.
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
    """Whether a directory is an unfinished record; --output may name any directory."""
    with suppress(OSError), os.scandir(partial) as held:
        return _PARTIAL.fullmatch(partial.name) is not None and all(
            entry.is_dir(follow_symlinks=False)
            if entry.name == CONSOLES
            else entry.name in _FILES and entry.is_file(follow_symlinks=False)
            for entry in held
        )
    return False


def remove_if_dead(directory: Path) -> bool:
    """Remove an unfinished record unless its owner lives; return whether it is gone."""
    with suppress(OSError):  # its owner lives (EWOULDBLOCK), or has just removed it
        other = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(directory, ignore_errors=True)
        finally:
            os.close(other)
    return not directory.exists()


def pretty(value: Mapping[str, Any]) -> str:
    """An object in the form in which a record stores it."""
    return json.dumps(value, indent=1, allow_nan=False) + "\n"


def _write_durably(path: Path, text: str) -> None:
    """Write a file completely or not at all, even if a resumed run has written it before."""
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
    """A finished record that was read back."""

    path: Path
    run: Mapping[str, Any]
    receipt: Mapping[str, Any]

    @classmethod
    def load(cls, asked: str, runs: Path) -> Self:
        """Load a record by its run id, by the path of its directory, or as "last".

        runs: the directory that contains records. Raises BadUsage if there is none, if a file does
        not match its checksum, if the checksums have been removed, or if this version cannot read
        it. Records of older versions have no checksums, so changes to them are not found.
        """
        path = find_record(asked, runs)
        for fault in changed(path):
            raise BadUsage(f"{path}: {fault}; {NOT_USED}")
        found = cls(path, read_object(path / RUN), read_object(path / RECEIPT))
        if SUMMED in found.receipt and not has_sums(path):
            raise BadUsage(f"{path}: {SUMS} missing, with which it was written; {NOT_USED}")
        return found

    def samples(self) -> Iterator[Sample]:
        """The samples in the order they were taken; raises ReamError at an invalid line."""
        path = self.path / SAMPLES
        try:
            for number, line in enumerate(lines_of(path), start=1):
                text = line.decode(errors="replace")
                yield Sample.from_json(text, where=f"{path}:{number}")
        except OSError as cause:
            raise ReamError(f"{path}: {cause.strerror}") from cause


def changed(path: Path) -> Iterator[str]:
    """Faults of a record according to its checksums, each a line that begins with a file's name."""
    return differing(path, [name + form for name in _READ for form in ("", SUFFIX)])


def find_record(asked: str, runs: Path) -> Path:
    """The directory of a record; raises BadUsage, saying where it looked.

    asked: a run id, an unambiguous beginning or end of one, the path of a directory, "last", or
    "last-1" for the record before it. Ids that `runs` does not have are looked for among the
    records that the checkout's documents quote.
    """
    if back := _LAST.fullmatch(asked):
        # Run ids begin with their time, so the last by name is the last by time.
        # One that has lost its run.json is the last all the same: it is no other that was meant.
        paths = {path.parent for name in _OWN for path in runs.glob(f"[0-9]*/{name}*")}
        found = sorted(paths | {runs / name for name in archives_of(runs) if name[0].isdigit()})
        if not found:
            raise BadUsage(f"no record in {runs} yet; `ream run` makes one")
        if (number := int(back[1] or 0)) >= len(found):
            raise BadUsage(f"no record {asked!r}: there are {len(found)} in {runs}")
        path = found[-1 - number]
        if not is_record(path):
            raise BadUsage(f"{path}: no {RUN}; the record is damaged, name another")
        return path
    by_name = (runs / asked, Path(asked), QUOTED / asked)
    candidates = by_name if "/" not in asked else (Path(asked),)
    for path in candidates:
        with suppress(OSError, ValueError):  # a name too long, or with a zero byte in it
            if is_record(path):
                return path
    alike = _alike(asked, runs) or _alike(asked, QUOTED)
    if len(alike) > 1:
        names = ", ".join(path.name for path in alike[:MOST_NAMED])
        more = f" and {len(alike) - MOST_NAMED} more" if len(alike) > MOST_NAMED else ""
        raise BadUsage(f"{asked!r} is {len(alike)} records: {names}{more}; give more of its name")
    if alike:
        return alike[0]
    raise BadUsage(
        f"no record {asked!r}: neither a run in {runs} or in {QUOTED}, nor a directory with {RUN}"
    )


def _alike(asked: str, runs: Path) -> list[Path]:
    """Records whose names begin or end with this text; none for an empty text."""
    paths = [path for path in paths_in(runs) if path.name[0].isdigit()] if asked else []
    return [
        path
        for path in paths
        if (path.name.startswith(asked) or path.name.endswith(asked)) and is_record(path)
    ]


def is_record(path: Path) -> bool:
    """Whether this is the path of a finished record, packed or not."""
    return place_of(path / RUN).is_file() or archive_of(path) is not None


def read_object(path: Path, *, way_out: str = "") -> Mapping[str, Any]:
    """The object in a JSON file of a record, finished or not; raises BadUsage if it cannot be read.

    way_out: what the error advises the reader to do.
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
