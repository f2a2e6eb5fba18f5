# SPDX-License-Identifier: GPL-2.0-only
"""SHA256SUMS: the checksums of a record's files, as sha256sum(1) writes them.

It is written once, as the last file of a finished record, and covers the files as they are:
`sha256sum -c SHA256SUMS` agrees with ream. Checksums reveal later changes, by accident
or by hand. A change that includes the checksums is found by `ream verify`, which computes the
numbers again from the samples.
"""

import hashlib
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path

from ream.record.archive import files_of
from ream.record.regular import MOST_BYTES, MOST_LONG_BYTES, regular, whole

SUMS = "SHA256SUMS"

_LINE = re.compile(r"([0-9a-f]{64}) [ *]([^\\\0\n]+)")


def sums_of(directory: Path, leave_out: Collection[str] = ()) -> str:
    """The contents of SHA256SUMS for every regular file below a directory except itself.

    leave_out: names of files that will be removed. Raises OSError if a file cannot be read.
    """
    names = sorted(
        str(path.relative_to(directory)) for path in directory.rglob("*") if path.is_file()
    )
    return "".join(
        f"{_digest(directory, name)}  {name}\n"
        for name in names
        if name != SUMS and name not in leave_out
    )


def has_sums(record: Path) -> bool:
    """Whether a record has checksums, which records of older versions lack.

    Raises OSError if the record is damaged in its archive.
    """
    return _exists(record, SUMS) or (record / SUMS).is_symlink()


def _exists(record: Path, name: str) -> bool:
    return name in files_of(record) or (record / name).exists()


def differing(record: Path, used: Iterable[str]) -> Iterator[str]:
    """Faults of a record's files according to its checksums, each a line that begins with a name.

    used: names of files that ream reads; those without a checksum are faults too. Missing files are
    reported by missing() instead. A record without checksums has no faults.
    """
    try:
        known = _read(record) if has_sums(record) else None
    except (OSError, ValueError) as cause:
        said = cause.strerror if isinstance(cause, OSError) else cause
        yield f"{SUMS}: {said}; it cannot be told whether the record has changed"
        return
    if known is None:
        return
    for name, digest in known.items():
        try:
            if _digest(record, name) != digest:
                yield f"{name}: its SHA-256 is not that in {SUMS}: it has changed since it was made"
        except FileNotFoundError:
            continue
        except OSError as cause:
            yield f"{name}: {cause.strerror}"
    for name in used:
        if name not in known and _exists(record, name):
            yield f"{name}: not in {SUMS}: it was put there since the record was made"


def missing(record: Path) -> tuple[str, ...]:
    """Names of files that have a checksum but do not exist."""
    try:
        known = _read(record)
    except (OSError, ValueError):
        return ()
    return tuple(name for name in known if not _exists(record, name))


def _read(record: Path) -> Mapping[str, str]:
    """Digests by file name; raises OSError, or ValueError at a malformed line."""
    text = files_of(record).get(SUMS)
    if text is None:
        with regular(record / SUMS, MOST_BYTES) as file:
            text = whole(file, MOST_BYTES)
    found: dict[str, str] = {}
    for number, line in enumerate(text.decode("utf-8").splitlines(), start=1):
        match = _LINE.fullmatch(line)
        if match is None or not _is_inside(match[2]) or match[2] in found:
            raise ValueError(f"line {number} is not `<digest>  <file>` of another file")
        found[match[2]] = match[1]
    return found


def _is_inside(name: str) -> bool:
    path = Path(name)
    return not path.is_absolute() and ".." not in path.parts


def _digest(record: Path, name: str) -> str:
    if (archived := files_of(record).get(name)) is not None:
        return hashlib.sha256(archived).hexdigest()
    with regular(record / name, MOST_LONG_BYTES) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
