# SPDX-License-Identifier: GPL-2.0-only
"""Records small enough to keep in a repository: their long files compressed, all else as it is.

Every reader takes either form, so nobody has to unpack a record to use it.
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

SUFFIX = ".gz"
_LONG = (".jsonl", ".log")
_RECEIPT = "receipt.json"


def place_of(path: Path) -> Path:
    """Where a file of a record is: under its name, or under that of its compressed form."""
    packed = path.with_name(path.name + SUFFIX)
    return packed if packed.exists() and not path.exists() else path


@contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """A file of a record to read, whatever its form.

    Raises OSError as opening it does, and where the body reads what is damaged.
    """
    place = place_of(path)
    try:
        with gzip.open(place) if place != path else path.open("rb") as file:
            yield cast("BinaryIO", file)
    except (EOFError, zlib.error, gzip.BadGzipFile) as cause:
        raise OSError(errno.EIO, "what it holds compressed is damaged") from cause


def pack(record: Path, directory: Path) -> Path:
    """Copy a record into `directory` with its long files compressed; the record itself stays.

    The same record makes the same bytes at any time. Raises BadUsage if the directory has a
    record of that name already, or if it cannot be written; nothing of the copy stays then.
    """
    place, fresh = directory / record.name, directory / f".{record.name}.new"
    try:
        directory.mkdir(parents=True, exist_ok=True)
        if place.exists():
            raise BadUsage(f"{place}: there is such a record already, and records never change")
        fresh.mkdir()
        try:
            for file in sorted(path for path in record.rglob("*") if path.is_file()):
                _copy(file, fresh / file.relative_to(record))
            fresh.rename(place)
        finally:
            shutil.rmtree(fresh, ignore_errors=True)
    except OSError as cause:
        raise BadUsage(f"{place}: cannot be written: {cause.strerror}") from cause
    return place


def _copy(file: Path, to: Path) -> None:
    to.parent.mkdir(exist_ok=True)
    if file.suffix not in _LONG and file.name != _RECEIPT:
        shutil.copyfile(file, to)
        return
    # Without name and time in its head, so that packing again changes nothing.
    to.with_name(to.name + SUFFIX).write_bytes(gzip.compress(file.read_bytes(), mtime=0))
