# SPDX-License-Identifier: GPL-2.0-only
"""Opens files of records: regular files only, and none larger than any run writes.

A FIFO, a device or an endless file in a directory of records causes a one-line error. It neither
blocks the reader nor fills memory.
"""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path
from typing import IO

MOST_BYTES = 64 << 20
"""The size limit of a file that is read at once, such as run.json; known ones need half of it."""
MOST_LONG_BYTES = 1 << 30
"""The size limit of a file that is read line by line: samples.jsonl with five million samples."""
LONGEST_LINE = 16 << 20

_KINDS = (
    (stat.S_ISDIR, "a directory"),
    (stat.S_ISFIFO, "a FIFO"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a character device"),
    (stat.S_ISBLK, "a block device"),
)


@contextmanager
def regular(path: Path, most: int) -> Iterator[BufferedReader]:
    """Open a regular file of at most `most` bytes for reading.

    Raises OSError if it cannot be opened, is no regular file (EINVAL) or is larger (EFBIG).
    """
    try:
        # Without O_NONBLOCK, opening a FIFO waits for a writer.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
    except OSError as cause:
        if cause.errno == errno.ENXIO:
            raise OSError(errno.EINVAL, "a socket or a device, not a regular file") from cause
        raise
    try:
        _check(os.fstat(descriptor), most)
        file = os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise
    with file:
        yield file


def _check(status: os.stat_result, most: int) -> None:
    if not stat.S_ISREG(status.st_mode):
        kind = next((name for is_it, name in _KINDS if is_it(status.st_mode)), "something else")
        raise OSError(errno.EINVAL, f"{kind}, not a regular file")
    if status.st_size > most:
        raise _too_large(most)


def whole(file: IO[bytes], most: int) -> bytes:
    """The contents of a file, decompressed if need be; raises OSError (EFBIG) beyond `most`."""
    content = file.read(most + 1)
    if len(content) > most:
        raise _too_large(most)
    return content


def lines_of(file: IO[bytes], most: int) -> Iterator[bytes]:
    """The lines of an open file; raises OSError (EFBIG) if one is too long, or all together are."""
    nr_bytes = 0
    while line := file.readline(LONGEST_LINE + 1):
        nr_bytes += len(line)
        if len(line) > LONGEST_LINE:
            raise OSError(errno.EFBIG, f"a line of more than {LONGEST_LINE >> 20} MiB")
        if nr_bytes > most:
            raise _too_large(most)
        yield line


def _too_large(most: int) -> OSError:
    return OSError(errno.EFBIG, f"more than {most >> 20} MiB, which no run writes")
