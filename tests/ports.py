# SPDX-License-Identifier: GPL-2.0-only
"""Stores ports as what differs from the patches that they are ports of, or writes them whole.

PYTHONPATH=lab .venv/bin/python tests/ports.py FOLDER [--whole INTO]

FOLDER has a file `series` that lists one folder: that of the patches which are ported. Line
numbers, blobs, dates and diffstats are not stored: git apply finds the lines without them.
"""

import argparse
import difflib
import re
from pathlib import Path

from ream.kernel.diff import holds_diff, is_difference
from ream.kernel.series import load_series

_UNTOLD = re.compile(
    r"^(From [0-9a-f]{40}|Date:|index|Subject: \[PATCH| \S+ +\|| \d+ files? changed).*?(?=\]|$)"
    r"|^(@@) -\d+(,\d+)? \+\d+(,\d+)? @@.*"
)
WHOLE_FROM = 0.75
"""A difference as long as that, compared with its patch, is harder to read than the patch."""


def told(line: str) -> str:
    """What a line of a patch says that may hold on another base as well."""
    return _UNTOLD.sub(lambda found: "".join(filter(None, found.groups())), line)


def difference(name: str, old: str, new: str) -> str:
    """A unified diff from a patch to its port, without what tools find out by themselves."""
    before, after = old.split("\n"), new.split("\n")
    blocks = difflib.SequenceMatcher(None, [*map(told, before)], [*map(told, after)], False)
    meant = [
        line
        for kind, i, j, k, m in blocks.get_opcodes()
        for line in (before[i:j] if kind == "equal" else after[k:m])
    ]
    lines = difflib.unified_diff(before, meant, f"a/{name}", f"b/{name}", n=1, lineterm="")
    return "".join(f"{line}\n" for line in lines)


def store(folder: Path) -> None:
    """Store the whole patches in a folder of ports as what differs; unchanged ones are removed."""
    listed = (folder / "series").read_text().split()[-1]
    for one in load_series(folder / listed).patches:
        file = folder / one.name
        new = file.read_text() if file.is_file() else ""
        if not holds_diff(new.encode()) or is_difference(new.encode(), one.name):
            continue
        if not (text := difference(one.name, one.body.decode(), new)):
            file.unlink()
        elif text.count("\n") <= WHOLE_FROM * new.count("\n"):
            file.write_text(text)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--whole", type=Path, metavar="INTO")
    asked = parser.parse_args()
    if asked.whole is None:
        store(asked.folder)
        return
    for one in load_series(asked.folder).patches:
        (asked.whole / one.name).write_bytes(one.body)


if __name__ == "__main__":
    main()
