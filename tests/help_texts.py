# SPDX-License-Identifier: GPL-2.0-only
"""The help of every command, as lab/help keeps it: a new clone shows it before it is set up.

usage: python tests/help_texts.py    write these files again
"""

import tempfile
from collections.abc import Mapping
from pathlib import Path

from in_process import answer
from ream.cli import app
from ream.manual.tree import pages
from ream.paths import CHECKOUT

FOLDER = CHECKOUT / "lab" / "help"
COLUMNS = 80


def help_texts() -> Mapping[str, str]:
    """The text of `ream --help` by "ream", and of `ream NAME --help` by NAME."""
    with tempfile.TemporaryDirectory() as here:
        return {page.name or "ream": _help(page.name, Path(here)) for page in pages(app)}


def _help(name: str, here: Path) -> str:
    words = (name, "--help") if name else ("--help",)
    environment = {"COLUMNS": str(COLUMNS), "NO_COLOR": "1", "HOME": str(here)}
    return answer(words, here=here, environment=environment, fed="").out


def main() -> None:
    """Write the files, and none besides."""
    for file in FOLDER.glob("*.txt"):
        file.unlink()
    for name, text in help_texts().items():
        (FOLDER / f"{name}.txt").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
