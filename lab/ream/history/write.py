# SPDX-License-Identifier: GPL-2.0-only
"""Files that appear whole or not at all."""

import os
import tempfile
from contextlib import suppress
from pathlib import Path

from ream.errors import BadUsage

NEW_FILE_MODE = 0o666


def write_whole(path: Path, content: bytes, *, force: bool = False) -> None:
    """Write a file, on disk before it has its name; force: in place of one that is there.

    Raises BadUsage if there is one, or if it cannot be written: then nothing of ours stays.
    """
    try:
        _write(path, content, force=force)
    except FileExistsError as cause:
        raise BadUsage(f"{path}: there is such a file already; --force replaces it") from cause
    except (OSError, ValueError) as cause:
        said = cause.strerror if isinstance(cause, OSError) else cause
        raise BadUsage(f"{path}: cannot be written: {said}") from cause


def _write(path: Path, content: bytes, *, force: bool) -> None:
    if path.exists() and not path.is_file():  # /dev/stdout, or a pipe that somebody reads
        if path.is_dir():
            raise IsADirectoryError(21, "Is a directory")
        path.write_bytes(content)
        return
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
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
