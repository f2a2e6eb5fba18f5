# SPDX-License-Identifier: GPL-2.0-only
"""Archives of records: zip files in which each record is a tar file, compressed with xz.

A record in an archive has the path that it would have as a directory beside the archive, so its
name alone identifies it. Records are read into memory and never unpacked to disk.
"""

import errno
import io
import lzma
import os
import shutil
import struct
import tarfile
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path

from ream.record.regular import MOST_LONG_BYTES, regular

ARCHIVE = ".zip"
MEMBER = ".tar.xz"

_LEVEL = 6 | lzma.PRESET_EXTREME
"""The window of level 6 is 8 MiB: it holds a whole record, and reading takes little memory."""
_DAMAGE = (
    zipfile.BadZipFile,
    tarfile.TarError,
    lzma.LZMAError,
    EOFError,
    ValueError,
    LookupError,
    RuntimeError,
    struct.error,
)
"""The exceptions that reading a damaged archive raises."""


@contextmanager
def _opened(archive: Path) -> Iterator[zipfile.ZipFile]:
    try:
        with regular(archive, MOST_LONG_BYTES) as file, zipfile.ZipFile(file) as opened:
            yield opened
    except _DAMAGE as cause:
        raise OSError(errno.EIO, f"{archive.name} is a damaged archive") from cause


def names_in(archive: Path) -> list[str]:
    """The names of the records in an archive; raises OSError if it is damaged or no archive."""
    with _opened(archive) as opened:
        names = [one.removesuffix(MEMBER) for one in opened.namelist() if one.endswith(MEMBER)]
    return [name for name in names if name and "/" not in name and not name.startswith(".")]


def archives_of(directory: Path) -> Mapping[str, Path]:
    """Map the name of each archived record in a directory to its archive.

    Damaged archives are left out. A missing directory has no archives.
    """
    try:
        status = directory.stat()
    except (OSError, ValueError):  # a name too long, or with a zero byte in it
        return {}
    return _archives(directory, status.st_ino, status.st_mtime_ns)


@lru_cache(maxsize=8)
def _archives(directory: Path, _inode: int, _changed_ns: int) -> Mapping[str, Path]:
    found: dict[str, Path] = {}
    for archive in sorted(directory.glob(f"[!.]*{ARCHIVE}")):
        with suppress(OSError):
            found |= dict.fromkeys(names_in(archive), archive)
    return found


def archive_of(record: Path) -> Path | None:
    """The archive with a record; None if it is a directory, or no archive beside it has it."""
    return None if record.is_dir() else archives_of(record.parent).get(record.name)


def paths_in(directory: Path) -> list[Path]:
    """The entries of a directory and the records in its archives, sorted by name.

    There are none in what is no directory. Raises OSError if it cannot be listed.
    """
    if not directory.is_dir():
        return []
    archived = (directory / name for name in archives_of(directory))
    return sorted({*directory.iterdir(), *archived})


def files_of(record: Path) -> Mapping[str, bytes]:
    """The files of an archived record by name; none if no archive has it.

    Raises OSError if the record is damaged, or larger than any run writes.
    """
    archive = archive_of(record)
    if archive is None:
        return {}
    status = archive.stat()
    return _files(archive, record.name, status.st_size, status.st_mtime_ns)


@lru_cache(maxsize=4)
def _files(archive: Path, name: str, _size: int, _changed_ns: int) -> Mapping[str, bytes]:
    found: dict[str, bytes] = {}
    left = MOST_LONG_BYTES
    with (
        _opened(archive) as opened,
        tarfile.open(fileobj=io.BytesIO(opened.read(f"{name}{MEMBER}")), mode="r|xz") as tar,
    ):
        for member in tar:
            left -= member.size
            if left < 0:
                raise OSError(errno.EFBIG, f"more than {MOST_LONG_BYTES >> 20} MiB")
            if member.isreg() and (file := tar.extractfile(member)) is not None:
                found[member.name] = file.read()
    return found


def add(archive: Path, name: str, files: Mapping[str, bytes]) -> None:
    """Add a record to an archive, which is made if it is missing.

    The same record always gives the same bytes. The archive is replaced as a whole or not at all.
    Raises OSError if it is damaged or cannot be written.
    """
    fresh = archive.with_name(f".{archive.name}.new")
    try:
        if archive.exists():
            names_in(archive)
            shutil.copyfile(archive, fresh)
        with zipfile.ZipFile(fresh, "a") as opened:
            opened.writestr(zipfile.ZipInfo(f"{name}{MEMBER}"), _compressed(files))
        with fresh.open("rb") as file:
            os.fsync(file.fileno())
        fresh.replace(archive)
    finally:
        fresh.unlink(missing_ok=True)
        _archives.cache_clear()  # the directory's time may be too coarse to show the change


def _compressed(files: Mapping[str, bytes]) -> bytes:
    place = io.BytesIO()
    with (
        lzma.open(place, "wb", preset=_LEVEL) as packed,
        tarfile.open(fileobj=packed, mode="w|") as tar,
    ):
        for name, content in sorted(files.items()):
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return place.getvalue()
