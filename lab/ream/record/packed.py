# SPDX-License-Identifier: GPL-2.0-only
"""Records with their long files compressed, small enough to keep in a repository.

Every reader accepts both forms, so a packed record need not be unpacked.
"""

import errno
import gzip
import shutil
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

from ream.errors import BadUsage
from ream.record.regular import MOST_BYTES, MOST_LONG_BYTES, regular, whole
from ream.record.regular import lines_of as regular_lines
from ream.record.sums import SUMS, sums_of

SUFFIX = ".gz"
_LONG = (".jsonl", ".log", ".txt")
_LONG_TOO = ("plan.json", "receipt.json", "run.json")


def place_of(path: Path) -> Path:
    """The path of a record's file: its own, or that of its compressed form."""
    packed = path.with_name(path.name + SUFFIX)
    return packed if packed.exists() and not path.exists() else path


@contextmanager
def _opened(path: Path, most: int) -> Iterator[BinaryIO]:
    """A file of a record to read, compressed or not.

    Raises OSError if it cannot be opened, is no regular file or is too large. Raises OSError also
    if the body reads damaged data.
    """
    place = place_of(path)
    try:
        with regular(place, most) as file:
            if place == path:
                yield file
            else:
                with gzip.GzipFile(fileobj=file) as unpacked:
                    yield cast("BinaryIO", unpacked)
    except (EOFError, zlib.error, gzip.BadGzipFile) as cause:
        raise OSError(errno.EIO, "what it holds compressed is damaged") from cause


def content_of(path: Path) -> bytes:
    """The contents of a record's file, compressed or not.

    Raises OSError if it cannot be opened, is damaged, no regular file or larger than MOST_BYTES.
    """
    with _opened(path, MOST_BYTES) as file:
        return whole(file, MOST_BYTES)


def lines_of(path: Path) -> Iterator[bytes]:
    """The lines of a record's file, compressed or not.

    Raises OSError if it cannot be opened, is damaged, no regular file or too large.
    """
    with _opened(path, MOST_LONG_BYTES) as file:
        yield from regular_lines(file, MOST_LONG_BYTES)


def pack(record: Path, directory: Path) -> Path:
    """Copy a record into `directory` with its long files compressed; the record does not change.

    The same record always produces the same bytes. The copy has checksums of its own files. Raises
    BadUsage if the directory has a record of that name, if a file of the record cannot be read or
    is no regular file, or if the copy cannot be written. Nothing of the copy remains then.
    """
    place, fresh = directory / record.name, directory / f".{record.name}.new"
    try:
        directory.mkdir(parents=True, exist_ok=True)
        if place.exists():
            raise BadUsage(f"{place}: there is such a record already, and records never change")
        fresh.mkdir()
        try:
            for file in sorted(path for path in record.rglob("*") if not path.is_dir()):
                if (name := file.relative_to(record)) != Path(SUMS):
                    _copy(file, fresh / name)
            (fresh / SUMS).write_text(sums_of(fresh), encoding="utf-8")
            fresh.rename(place)
        finally:
            shutil.rmtree(fresh, ignore_errors=True)
    except OSError as cause:
        raise BadUsage(f"{place}: cannot be written: {cause.strerror}") from cause
    return place


def _copy(file: Path, to: Path) -> None:
    try:
        with regular(file, MOST_LONG_BYTES) as opened:
            content = whole(opened, MOST_LONG_BYTES)
    except OSError as cause:
        raise BadUsage(f"{file}: {cause.strerror}; the record is not packed") from cause
    if file.suffix in _LONG or file.name in _LONG_TOO:
        # Without name and time in its head, so that packing again changes nothing.
        to, content = to.with_name(to.name + SUFFIX), gzip.compress(content, mtime=0)
    to.parent.mkdir(exist_ok=True)
    to.write_bytes(content)
