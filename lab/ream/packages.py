# SPDX-License-Identifier: GPL-2.0-only
"""Which package has a program, by the package manager of this machine: lab/packages.txt."""

import shutil

from ream.paths import CHECKOUT

TABLE = CHECKOUT / "lab" / "packages.txt"
UNKNOWN = "-"

MANAGERS = {
    "apt-get": "apt-get install",
    "dnf": "dnf install",
    "pacman": "pacman -S --needed",
    "zypper": "zypper install",
}
"""In the order of the table's columns, what installs a package; the first that there is counts."""


def rows() -> list[tuple[str, ...]]:
    """The table: stage, kind, name, and a package for each manager."""
    lines = (line.split() for line in TABLE.read_text(encoding="utf-8").splitlines())
    return [tuple(words) for words in lines if words and words[0] != "#"]


def install_line(program: str) -> str | None:
    """What to type to have a program; None if no package is known of."""
    column = next((at for at, name in enumerate(MANAGERS) if shutil.which(name)), None)
    if column is None:
        return None
    manager = tuple(MANAGERS)[column]
    for _, _, name, *packages in rows():
        if name == program and packages[column] != UNKNOWN:
            return f"{MANAGERS[manager]} {packages[column]}"
    return None
