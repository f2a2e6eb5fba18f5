# SPDX-License-Identifier: GPL-2.0-only
"""The files of a kit: plans and images named after their contents, sums, and one archive."""

import gzip
import hashlib
import os
import re
import tarfile
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import IO, cast

from ream.errors import CannotRunHere
from ream.kit.contents import ID_DIGITS, KIT, SUMS, Kit, id_of

NAME_DIGITS = 16
PIECE_BYTES = 1 << 20
LARGEST_PLAN = 1 << 20
"""Largest file that is checked for being a plan, in bytes."""
LEVEL = 6
"""Compression level; level 9 takes several times as long for a few percent."""

_DESCRIPTOR = re.compile(rb"/proc/self/fd/(\d+)")


class Images:
    """Memory images and the plans that name them; files of equal content are stored once."""

    def __init__(self, stage: Path) -> None:
        self._stage = stage
        for folder in ("i", "p"):
            (stage / folder).mkdir()

    def plan(self, name: str, plan: Path) -> tuple[str, str]:
        """Store a plan that names open descriptors; return its name in the kit and its SHA-256."""
        text = self._with_names(plan.read_bytes(), {})
        digest = hashlib.sha256(text).hexdigest()
        file = f"p/{name}-{digest[:ID_DIGITS]}"
        (self._stage / file).write_bytes(text)
        return file, digest

    def _with_names(self, text: bytes, known: dict[bytes, str]) -> bytes:
        """Return the text with descriptors replaced by file names."""

        def kept(match: re.Match[bytes]) -> bytes:
            if match[1] not in known:
                known[match[1]] = self._image(int(match[1]), known)
            return known[match[1]].encode()

        return _DESCRIPTOR.sub(kept, text)

    def _image(self, descriptor: int, known: dict[bytes, str]) -> str:
        """Store a file and return its name. It may be a plan itself, which names other files."""
        digest, size, at = hashlib.sha256(), os.fstat(descriptor).st_size, 0
        if size <= LARGEST_PLAN and _DESCRIPTOR.search(text := os.pread(descriptor, size, 0)):
            named = self._with_names(text, known)
            file = f"i/{hashlib.sha256(named).hexdigest()[:NAME_DIGITS]}"
            (self._stage / file).write_bytes(named)
            return file
        while at < size:
            piece = os.pread(descriptor, PIECE_BYTES, at)
            digest.update(piece)
            at += len(piece)
        file = f"i/{digest.hexdigest()[:NAME_DIGITS]}"
        if not (self._stage / file).exists():
            with (self._stage / file).open("wb") as to:
                for start in range(0, size, PIECE_BYTES):
                    to.write(os.pread(descriptor, PIECE_BYTES, start))
        return file


def packed(stage: Path, kit: Kit, launches: Sequence[tuple[str, int]], file: Path) -> int:
    """Write the archive, whole or not at all; return its size in bytes.

    launches: names in the order in which they run, each with its expected seconds.
    """
    text = kit.to_text().encode()
    name = f"ream-kit-{id_of(text)}"
    (stage / KIT).write_bytes(text)
    (stage / "launches").write_text("".join(f"{one} {seconds}\n" for one, seconds in launches))
    (stage / "memory").write_text(_memory(kit))
    (stage / "kit.env").write_text(
        f"KIT={name}\nARCH={kit.arch}\nMINUTES={round(kit.minutes)}\n", encoding="ascii"
    )
    script = resources.files("ream.kit").joinpath("run.sh").read_bytes()
    (stage / "run.sh").write_bytes(script)
    (stage / SUMS).write_text(_sums(stage))
    fresh = file.with_name(f".{file.name}.new")
    try:
        with fresh.open("wb") as raw, gzip.GzipFile("", "wb", LEVEL, raw, mtime=0) as to:
            _archive(stage, name, cast("IO[bytes]", to))
        fresh.replace(file)
    except OSError as cause:
        raise CannotRunHere(f"{file}: cannot be written: {cause.strerror}") from cause
    finally:
        fresh.unlink(missing_ok=True)
    return file.stat().st_size


def _memory(kit: Kit) -> str:
    """Return lines with the MiB that the largest program needs, by number of CPUs."""
    needed: dict[int, int] = {}
    for one in kit.experiments:
        for part in one.parts:
            for count, plan in part.plans.items():
                needed[int(count)] = max(needed.get(int(count), 0), plan.needed_bytes)
    return "".join(f"{count} {-(-size >> 20)}\n" for count, size in sorted(needed.items()))


def _files(stage: Path) -> list[Path]:
    return sorted(path for path in stage.rglob("*") if path.is_file())


def _sums(stage: Path) -> str:
    lines = []
    for path in _files(stage):
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        lines.append(f"{digest}  {path.relative_to(stage)}\n")
    return "".join(lines)


def _archive(stage: Path, name: str, to: IO[bytes]) -> None:
    """Write a tar archive that has no names of users or groups and no times."""
    runs = {"run.sh", "facts", "confine", "runner"}
    with tarfile.open(fileobj=to, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for path in _files(stage):
            entry = archive.gettarinfo(path, f"{name}/{path.relative_to(stage)}")
            entry.uid = entry.gid = entry.mtime = 0
            entry.uname = entry.gname = ""
            entry.mode = 0o755 if path.name in runs else 0o644
            with path.open("rb") as file:
                archive.addfile(entry, file)
