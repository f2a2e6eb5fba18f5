# SPDX-License-Identifier: GPL-2.0-only
"""Reads files of records: of a directory, where an earlier version compressed some, or an archive.

Every reader accepts all three forms, so a packed record need not be unpacked.
"""

import errno
import gzip
import io
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, cast

from ream.record.archive import files_of
from ream.record.regular import MOST_BYTES, MOST_LONG_BYTES, regular, whole
from ream.record.regular import lines_of as regular_lines

SUFFIX = ".gz"


def place_of(path: Path) -> Path:
    """The path of a record's file: its own, or that of its compressed form."""
    packed = path.with_name(path.name + SUFFIX)
    return packed if packed.exists() and not path.exists() else path


def has(path: Path) -> bool:
    """Whether a record has this file, in any form; a damaged archive has none."""
    with suppress(OSError):
        return place_of(path).is_file() or path.name in files_of(path.parent)
    return False


@contextmanager
def _opened(path: Path, most: int) -> Iterator[BinaryIO]:
    """A file of a record to read, in any form.

    Raises OSError if it cannot be opened, is no regular file or is too large. Raises OSError also
    if the body reads damaged data.
    """
    archived = files_of(path.parent).get(path.name)
    if archived is not None:
        yield io.BytesIO(archived)
        return
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


def content_of(path: Path, most: int | None = None) -> bytes:
    """The contents of a record's file, in any form.

    Raises OSError if it cannot be opened, is damaged, no regular file or larger than `most`, by
    default MOST_BYTES.
    """
    most = MOST_BYTES if most is None else most
    with _opened(path, most) as file:
        return whole(file, most)


def lines_of(path: Path) -> Iterator[bytes]:
    """The lines of a record's file, in any form.

    Raises OSError if it cannot be opened, is damaged, no regular file or too large.
    """
    with _opened(path, MOST_LONG_BYTES) as file:
        yield from regular_lines(file, MOST_LONG_BYTES)
