# SPDX-License-Identifier: GPL-2.0-only
"""Where experiments and bases are, found by listing. A shell waits for this."""

import re
from pathlib import Path

from ream.errors import BadUsage
from ream.nearest import hint
from ream.paths import EXPERIMENTS, KERNEL_BASE

EXPERIMENT = "experiment.toml"
TABLES = "published.toml"

_DEFAULT = re.compile(r"^default = true$", re.MULTILINE)


def name_of(folder: Path) -> str:
    """Return the name of the experiment in a folder of this checkout."""
    return folder.name.replace("_", "-")


def names() -> list[str]:
    """Return the names of all experiments of this checkout, sorted."""
    return sorted(name_of(path.parent) for path in EXPERIMENTS.glob(f"*/{EXPERIMENT}"))


def file_of(name: str) -> Path:
    """The file of an experiment of this checkout; raises BadUsage if there is none."""
    if name not in (known := names()):
        raise BadUsage(
            f"no experiment {name!r}{hint(name, known)}; there is {', '.join(known)}, or give a"
            " folder or a .toml file"
        )
    return EXPERIMENTS / name.replace("-", "_") / EXPERIMENT


def default() -> str:
    """The experiment that is meant where none is named: whose file says so."""
    return next(name for name in names() if _DEFAULT.search(file_of(name).read_text("utf-8")))


def given_file(words: str | None) -> Path:
    """The file that a person means: of an experiment's name, of a folder, or the file itself.

    Raises BadUsage if it is none of these.
    """
    words = words or default()
    path = Path(words)
    if words not in names():
        if (path / EXPERIMENT).is_file():
            return path / EXPERIMENT
        if path.suffix == ".toml":
            return path
    return file_of(words)


def base_names() -> list[str]:
    """Versions of the kernels that kernel/base has a file of, the newest first."""
    found = (file.stem for file in KERNEL_BASE.glob("*.toml"))
    return sorted(found, key=version_numbers, reverse=True)


def version_numbers(version: str) -> tuple[int, ...]:
    """By which versions of the kernel are compared."""
    return tuple(int(part) for part in re.findall(r"\d+", version))


def table_files() -> list[Path]:
    """The published tables of every experiment."""
    return sorted(EXPERIMENTS.glob(f"*/{TABLES}"))
