# SPDX-License-Identifier: GPL-2.0-only
"""Packs records into archives, one for each experiment and type of CPU, to keep in a repository."""

import fcntl
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

from ream.errors import BadUsage
from ream.record import archive
from ream.record.packed import SUFFIX, content_of
from ream.record.parts import cpu_type, part
from ream.record.record import Record, is_record
from ream.record.regular import MOST_LONG_BYTES, regular, whole
from ream.record.sums import SUMS

_LONG = (".jsonl", ".log", ".txt", "plan.json", "receipt.json", "run.json")
"""The ends of names of those files that an earlier version compressed one by one."""


def pack(record: Record, directory: Path) -> Path:
    """Add a record to its archive in `directory`, and return its path there; it does not change.

    The archive has the record's own files, checksums included. Raises BadUsage if the directory
    has a record of that name, if a file of the record cannot be read or is no regular file, or if
    the archive cannot be written. The archive is as before then.
    """
    place = directory / record.path.name
    cpu = cpu_type(part(record.receipt, "machine")).replace("(R)", "")
    words = f"{record.run.get('experiment')} {cpu}".lower()
    home = directory / f"{re.sub('[^a-z0-9]+', '-', words).strip('-')}{archive.ARCHIVE}"
    files = _files(record.path)
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with _alone(directory):
            if place.exists() or is_record(place):
                raise BadUsage(f"{place}: there is such a record already, and records never change")
            archive.add(home, place.name, files)
    except OSError as cause:
        raise BadUsage(f"{home}: cannot be written: {cause.strerror}") from cause
    return place


@contextmanager
def _alone(directory: Path) -> Iterator[None]:
    """Keep another process from replacing an archive that this one extends."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _files(record: Path) -> Mapping[str, bytes]:
    """The files of a record as they were before any compression."""
    found = dict(archive.files_of(record))
    was_compressed = False
    for path in sorted(path for path in record.rglob("*") if not path.is_dir()):
        name = path.relative_to(record).as_posix()
        plain = name.removesuffix(SUFFIX)
        try:
            if plain != name and plain.endswith(_LONG):
                found[plain], was_compressed = content_of(record / plain, MOST_LONG_BYTES), True
            else:
                with regular(path, MOST_LONG_BYTES) as file:
                    found[name] = whole(file, MOST_LONG_BYTES)
        except OSError as cause:
            raise BadUsage(f"{path}: {cause.strerror}; the record is not packed") from cause
    if was_compressed and found.pop(SUMS, None) is not None:  # which were of the compressed files
        lines = (f"{sha256(found[name]).hexdigest()}  {name}\n" for name in sorted(found))
        found[SUMS] = "".join(lines).encode()
    return found
