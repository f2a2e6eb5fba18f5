# SPDX-License-Identifier: GPL-2.0-only
"""The journal of an unfinished run, from which it resumes after any interruption.

A run consists of pieces, such as launches or boots. The output of a piece is written as it arrives,
and a mark completes it. What follows the last mark of a piece is discarded on resume, as is the
output of a piece that begins again. Each line is one JSON object:

    {"piece": "launch 3", "said": ...}
    {"piece": "launch 3", "whole": true}
    {"piece": "launch 3", "dropped": true}
    {"settled": "rows", "value": ...}

A finished record has no journal.
"""

import errno
import json
import os
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from ream.errors import BadUsage, CannotRunHere
from ream.record.packed import lines_of

JOURNAL = "journal.jsonl"

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@contextmanager
def told(path: Path) -> Iterator[None]:
    """Turn an OSError at a record into CannotRunHere if there is no room, else BadUsage."""
    try:
        yield
    except OSError as cause:
        if cause.errno in _FULL:
            raise CannotRunHere(
                f"{path}: {cause.strerror}; make room, or choose another place with --output"
            ) from cause
        # mkdir(2) says "File exists" of a file, which reads as if a record were in the way.
        other = isinstance(cause, FileExistsError) and not path.is_dir()
        said = "it is no directory" if other else cause.strerror
        raise BadUsage(f"{path}: cannot write a record there: {said}") from cause


class Journal:
    """The journal of one run. The process that has it open holds the lock of its record.

    Raises CannotRunHere if a line cannot be written.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._kept: dict[str, list[str]] = {}
        self._new: dict[str, list[str]] = defaultdict(list)
        self._settled: dict[str, Any] = {}
        self.nr_added = 0
        """The number of outputs that were added since the journal was opened."""
        self.nr_dropped = 0
        """The number of lines that an interruption left incomplete or damaged."""
        with told(path):
            if path.exists():
                self._read()
                self._rewrite()
            self._file = path.open("ab", buffering=0)

    @property
    def holds_a_round(self) -> bool:
        """Whether any piece is complete."""
        return bool(self._kept)

    def has(self, piece: str) -> bool:
        """Whether any output of this piece is complete."""
        return piece in self._kept

    def said(self, piece: str) -> tuple[str, ...]:
        """The completed output of a piece in order, each part as JSON."""
        return tuple(self._kept.get(piece, ()))

    def add(self, piece: str, said: str) -> None:
        """Write output of a piece, as JSON on one line; the next whole() completes it."""
        self._new[piece].append(said)
        self.nr_added += 1
        self._write(f'{{"piece": {json.dumps(piece)}, "said": {said}}}\n')

    def whole(self, piece: str) -> None:
        """Complete a piece: everything that it has written so far is kept on resume."""
        self._write(_mark(piece))
        self._kept.setdefault(piece, []).extend(self._new.pop(piece, ()))

    def drop(self, piece: str) -> None:
        """Discard what a piece has written since its last mark, as it begins again."""
        self._new.pop(piece, None)
        self._write(json.dumps({"piece": piece, "dropped": True}) + "\n")

    def settled(self, name: str) -> Any:
        """The value of a decision made when the run began; None if it was not made."""
        return self._settled.get(name)

    def settle(self, name: str, value: Any) -> Any:
        """Store a decision unless it was made before; return the value that is stored."""
        if name not in self._settled:
            self.note(name, value)
        return self._settled[name]

    def note(self, name: str, value: Any) -> None:
        """Store a decision, replacing an earlier one."""
        self._settled[name] = json.loads(json.dumps(value))
        self._write(_decision(name, self._settled[name]))

    def close(self) -> None:
        """Close the file. Its contents remain readable."""
        with suppress(OSError):
            self._file.close()

    def remove(self) -> None:
        """Remove the journal of a finished record."""
        self.close()
        self._path.unlink(missing_ok=True)

    def move_to(self, directory: Path) -> None:
        """Follow the record to its new directory."""
        self._path = directory / self._path.name

    def _read(self) -> None:
        said: dict[str, list[str]] = defaultdict(list)
        lines = lines_of(self._path)
        for line in lines:
            if (entry := _entry(line)) is None:
                # What follows a damaged line may be out of place.
                self.nr_dropped = len([left for left in (line, *lines) if left.strip()])
                break
            if "settled" in entry:
                self._settled[entry["settled"]] = entry["value"]
            elif "whole" in entry:
                self._kept.setdefault(entry["piece"], []).extend(said.pop(entry["piece"], ()))
            elif "dropped" in entry:
                said.pop(entry["piece"], None)
            else:
                said[entry["piece"]].append(json.dumps(entry["said"]))
        self.nr_dropped += sum(len(its) for its in said.values())

    def _rewrite(self) -> None:
        """Rewrite the file without discarded lines, so that later readers need not skip them."""
        fresh = self._path.with_suffix(".new")
        with fresh.open("w", encoding="utf-8") as file:
            file.writelines(_decision(name, value) for name, value in self._settled.items())
            for piece, its in self._kept.items():
                file.writelines(
                    f'{{"piece": {json.dumps(piece)}, "said": {said}}}\n' for said in its
                )
                file.write(_mark(piece))
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(self._path)

    def _write(self, line: str) -> None:
        left = line.encode()
        with told(self._path.parent):
            while left:  # unbuffered: a full disk takes a part, and closing tries nothing again
                left = left[self._file.write(left) :]


def holds_a_round(directory: Path) -> bool:
    """Whether an unfinished record has a complete piece to resume from."""
    with suppress(OSError):
        likely = (line for line in lines_of(directory / JOURNAL) if b'"whole"' in line)
        return any((entry := _entry(line)) and "whole" in entry for line in likely)
    return False


def _mark(piece: str) -> str:
    return json.dumps({"piece": piece, "whole": True}) + "\n"


def _decision(name: str, value: Any) -> str:
    return json.dumps({"settled": name, "value": value}) + "\n"


def _entry(line: bytes) -> dict[str, Any] | None:
    """The object of a line; None if it is no valid entry."""
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(entry, dict):
        return None
    if "settled" in entry:
        return entry if isinstance(entry["settled"], str) and "value" in entry else None
    known = any(word in entry for word in ("said", "whole", "dropped"))
    return entry if known and isinstance(entry.get("piece"), str) else None
