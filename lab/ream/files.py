# SPDX-License-Identifier: GPL-2.0-only
"""Files of the user: those that are read, and those that appear whole or not at all."""

import os
import tempfile
from contextlib import suppress
from pathlib import Path

from ream.errors import BadUsage

NEW_FILE_MODE = 0o666


def check_place(path: Path, *, force: bool = False) -> None:
    """Whether write_whole() could write there, asked before the work that makes the content.

    Raises BadUsage if something of that name is there (unless `force`), or no directory for it.
    """
    # By os.path, which takes a name that is too long for one that is not there.
    if os.path.isdir(path):  # noqa: PTH112
        raise BadUsage(f"{path}: is a directory; name a file in it")
    if not force and os.path.lexists(path) and not _is_way_out(path):
        raise _taken(path)
    if not os.path.isdir(path.parent):  # noqa: PTH112
        raise BadUsage(f"{path}: cannot be written: {path.parent} is no directory")


def read_given(path: Path, *, largest_bytes: int, what: str) -> str:
    """Read a text file that a user names; what: the things in it, for the message.

    Raises BadUsage saying why it cannot be read, or that it is too large to be such a file.
    """
    try:
        with path.open(encoding="utf-8") as opened:
            text = opened.read(largest_bytes + 1)
    except OSError as cause:
        raise BadUsage(f"{path}: {cause.strerror}") from cause
    except UnicodeDecodeError as cause:
        raise BadUsage(f"{path}: not a text file (byte {cause.start} is not UTF-8)") from cause
    if len(text) > largest_bytes:
        raise BadUsage(f"{path}: larger than {largest_bytes >> 20} MiB: no file of {what}")
    return text


def write_whole(path: Path, content: bytes, *, force: bool = False) -> None:
    """Write a file, on disk before it has its name; force: in place of one that is there.

    Raises BadUsage if there is one, or if it cannot be written: then nothing of ours stays.
    """
    try:
        _write(path, content, force=force)
    except FileExistsError as cause:
        raise _taken(path) from cause
    except (OSError, ValueError) as cause:
        said = cause.strerror if isinstance(cause, OSError) else cause
        raise BadUsage(f"{path}: cannot be written: {said}") from cause


def _taken(path: Path) -> BadUsage:
    return BadUsage(f"{path}: there is such a file already; --force replaces it")


def _is_way_out(path: Path) -> bool:
    """Whether the path is neither a regular file nor a directory but exists, as /dev/stdout."""
    return os.path.exists(path) and not (  # noqa: PTH110
        os.path.isfile(path) or os.path.isdir(path)  # noqa: PTH112, PTH113
    )


def _write(path: Path, content: bytes, *, force: bool) -> None:
    if _is_way_out(path):
        path.write_bytes(content)
        return
    if path.is_dir():
        raise IsADirectoryError(21, "Is a directory")
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name[:100]}.", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fchmod(file.fileno(), NEW_FILE_MODE & ~_umask())
            os.fsync(file.fileno())
        if force:
            Path(name).replace(path)
        else:
            os.link(name, path)  # unlike rename(), it refuses to replace a file
    finally:
        with suppress(FileNotFoundError):
            Path(name).unlink()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
