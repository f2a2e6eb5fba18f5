# SPDX-License-Identifier: GPL-2.0-only
"""Files with many programs, in which a line `=== NAME` begins each."""

import re
from collections.abc import Mapping
from pathlib import Path

from ream.errors import BadUsage
from ream.files import write_whole

COLLECTION = ".programs"
FIRST_LINE = "# SPDX-License-Identifier: GPL-2.0-only\n"

_HEAD = re.compile(r"^=== (\S+)\n", re.MULTILINE)


def texts_in(path: Path) -> dict[str, str]:
    """The texts of a file's programs by name.

    Raises BadUsage if it cannot be read, or if two of them have the same name.
    """
    try:
        _, *parts = _HEAD.split(path.read_text(encoding="utf-8", errors="replace"))
    except OSError as fault:
        raise BadUsage(f"{path}: {fault.strerror}") from fault
    names = parts[::2]
    if again := {name for name in names if names.count(name) > 1}:
        raise BadUsage(f"{path}: two programs are called {min(again)}")
    return dict(zip(names, parts[1::2], strict=True))


def text_of(path: Path) -> str:
    """The text of one program: of the file PATH, or of the program NAME if it is `PATH:NAME`.

    Raises BadUsage if there is none.
    """
    place, colon, name = str(path).rpartition(":")
    if colon and place.endswith(COLLECTION) and not path.exists():
        texts = texts_in(Path(place))
        if name not in texts:
            raise BadUsage(f"{place}: no program {name!r} among {', '.join(texts) or 'none'}")
        return texts[name]
    if path.suffix == COLLECTION:
        raise BadUsage(f"{path}: many programs; name one of them as {path}:NAME")
    try:
        return path.read_bytes().decode(errors="replace")
    except OSError as fault:
        raise BadUsage(f"{path}: {fault.strerror}") from fault


def write_texts(path: Path, texts: Mapping[str, str]) -> None:
    """Write a file of programs, sorted by name, whole or not at all."""
    parts = (f"=== {name}\n{text}" for name, text in sorted(texts.items()))
    write_whole(path, f"{FIRST_LINE}{''.join(parts)}".encode(), force=True)
