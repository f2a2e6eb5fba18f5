# SPDX-License-Identifier: GPL-2.0-only
"""Edits after which each object is what it was: of comments, of white space and of names.

A comment before a statement is one; a line that is indented once more, of a statement in one line,
is one; so is another name for a local variable, if its name is nowhere else in the file, so that
it is no member's and no macro knows it.
"""

import re
from collections.abc import Iterator
from itertools import count, takewhile

Lines = list[str]

KINDS = ("a comment", "white space", "a name")

_STATEMENT = re.compile(r"^\t+[a-z_][^\"]*\);$")
_LOCAL = re.compile(r"^\t(?:unsigned )?(?:int|long|bool|pgoff_t|gfp_t)\s+(\w{2,})(?: = .*)?;$")
_ENDS = (";", "{", "}")


def edits(text: Lines) -> Iterator[tuple[str, Lines]]:
    """Every edit of a file: what it is, and the whole file then."""
    for at in range(1, len(text)):
        before, line = text[at - 1], text[at]
        if line.endswith("\\") or not before.startswith("\t") or not before.endswith(_ENDS):
            continue
        if _STATEMENT.match(line):
            indent = line[: len(line) - len(line.lstrip("\t"))]
            yield KINDS[0], [*text[:at], f"{indent}/* This is next. */", *text[at:]]
            yield KINDS[1], [*text[:at], f"\t{line}", *text[at + 1 :]]
    for at, line in enumerate(text):
        its = _LOCAL.match(line)
        if its and (renamed := _renamed(text, at, its[1])):
            yield KINDS[2], renamed


def _renamed(text: Lines, at: int, name: str) -> Lines | None:
    """The file with another name for what a line declares; None if it is also elsewhere."""
    begins = at - len([*takewhile(lambda one: text[one] != "{", count(at, -1))])
    ends = at + len([*takewhile(lambda one: text[one] != "}", count(at))])
    is_there = re.compile(rf"\b{name}\b")
    elsewhere = (*text[:begins], *text[ends:])
    if any(map(is_there.search, elsewhere)) or any('"' in one for one in text[begins:ends]):
        return None
    inside = [is_there.sub(f"{name}_here", one) for one in text[begins:ends]]
    return [*text[:begins], *inside, *text[ends:]]
