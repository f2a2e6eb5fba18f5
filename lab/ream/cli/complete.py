# SPDX-License-Identifier: GPL-2.0-only
"""What a shell offers when somebody presses Tab: names, as they are on disk.

A shell waits for this: so TOML is read bare, without the checks a run makes.
"""

import tomllib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from ream.errors import BadUsage
from ream.grid import expanded
from ream.paths import EXPERIMENTS, PUBLISHED, data_dir

VARIABLE = "_REAM_COMPLETE"
"""In the environment of a ream that a shell asks for completions."""


def experiments(incomplete: str) -> list[str]:
    return [path.stem for path in _files(EXPERIMENTS) if path.stem.startswith(incomplete)]


def tables(incomplete: str) -> list[str]:
    """Ids of published tables."""
    every = (one.get("id", "") for path in _files(PUBLISHED) for one in _read(path, "table"))
    return [name for name in every if name.startswith(incomplete)]


def rows(args: Sequence[str], incomplete: str) -> list[str]:
    """Rows of the experiment that the line names, else of all of them."""
    named = [path for path in _files(EXPERIMENTS) if path.stem in args]
    every = (one.get("name", "") for path in named or _files(EXPERIMENTS) for one in _rows(path))
    return [name for name in every if name.startswith(incomplete)]


def runs(incomplete: str) -> list[str]:
    """Run ids, the newest first, and `last`."""
    folder = data_dir() / "runs"
    found = sorted((path.name for path in folder.glob("[0-9]*")), reverse=True)
    return [name for name in ("last", *found) if name.startswith(incomplete)]


def _files(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.toml"))


def _rows(path: Path) -> Iterator[Any]:
    with suppress(BadUsage):
        yield from (row for _, row in expanded(_read(path, "rows"), source=""))


def _read(path: Path, key: str) -> Iterator[dict[str, Any]]:
    with suppress(OSError, ValueError):
        yield from tomllib.loads(path.read_text(encoding="utf-8")).get(key, ())
