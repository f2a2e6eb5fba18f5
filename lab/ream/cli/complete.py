# SPDX-License-Identifier: GPL-2.0-only
"""Names that a shell offers when Tab is pressed, as they are on disk.

The shell waits for them, so TOML files are parsed without the checks that a run makes.
"""

import tomllib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from ream.errors import BadUsage
from ream.folders import base_names, file_of, names, table_files
from ream.grid import expanded
from ream.paths import data_dir
from ream.record.archive import paths_in

VARIABLE = "_REAM_COMPLETE"
"""In the environment of a ream that a shell asks for completions."""


def experiments(incomplete: str) -> list[str]:
    return [name for name in names() if name.startswith(incomplete)]


def bases(incomplete: str) -> list[str]:
    """Versions of the kernel that --base knows."""
    return [name for name in ("latest", *base_names()) if name.startswith(incomplete)]


def tables(incomplete: str) -> list[str]:
    """Ids of published tables."""
    every = (one.get("id", "") for path in table_files() for one in _read(path, "table"))
    return [name for name in every if name.startswith(incomplete)]


def rows(args: Sequence[str], incomplete: str) -> list[str]:
    """Rows of the experiment that the line names, else of all of them."""
    known = names()
    asked = [name for name in known if name in args] or known
    every = (one.get("name", "") for name in asked for one in _rows(file_of(name)))
    return [name for name in every if name.startswith(incomplete)]


def runs(incomplete: str) -> list[str]:
    """Run ids, the newest first, and `last`."""
    folder = data_dir() / "runs"
    found = [path.name for path in reversed(paths_in(folder)) if path.name[0].isdigit()]
    return [name for name in ("last", *found) if name.startswith(incomplete)]


def _rows(path: Path) -> Iterator[Any]:
    with suppress(BadUsage):
        yield from (row for _, row in expanded(_read(path, "rows"), source=""))


def _read(path: Path, key: str) -> Iterator[dict[str, Any]]:
    with suppress(OSError, ValueError):
        yield from tomllib.loads(path.read_text(encoding="utf-8")).get(key, ())
