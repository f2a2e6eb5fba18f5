# SPDX-License-Identifier: GPL-2.0-only
"""Finds changed files that are known to compile to the same code as before.

Equal objects prove nothing about code that was not compiled: other files, headers that other files
include, and code that a configuration leaves out.
"""

import re
from collections.abc import Collection, Iterable, Iterator
from itertools import accumulate
from pathlib import Path, PurePosixPath

NO_CODE = ("Documentation/", "LICENSES/", "tools/testing/")
"""Folders of a kernel source of which nothing is compiled into a kernel."""
NO_CODE_FILES = ("MAINTAINERS", "CREDITS", ".mailmap")
IN_C = (".c", ".h", ".S")
"""Suffixes of files that the C preprocessor reads."""

_COMMENT = re.compile(
    r"""(?P<kept>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')|/\*.*?\*/|//[^\n]*""", re.DOTALL
)
"""Matches comments, and strings, in which there are no comments."""
_TOKEN = re.compile(
    r""""(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|\w+"""
    r"""|\.\.\.|<<=|>>=|->|\+\+|--|<<|>>|&&|\|\||\#\#|[-+*/%&|^=!<>]=|\S"""
)
_DIRECTIVE = re.compile(r"\s*#\s*(?P<word>\w*)")
_BEGINS, _ENDS = ("if", "ifdef", "ifndef"), "endif"


def undecided_files(
    names: Iterable[str], before: Path, after: Path, same: Collection[str]
) -> tuple[str, ...]:
    """Return the files that are not known to compile to the same code as before, sorted.

    names: files that a series changes. before, after: the source trees. same: objects, as
    "mm/memory.o", that were compiled from both trees and have the same code and data.
    Known are files that are not compiled, files with changes only in comments and white space, and
    sources of objects in `same`, unless code between #if and #endif differs, which a configuration
    may leave out.
    """
    return tuple(
        name
        for name in sorted(set(names))
        if not _is_decided(name, _text(before / name), _text(after / name), same)
    )


def _is_decided(name: str, old: str, new: str, same: Collection[str]) -> bool:
    path = PurePosixPath(name)
    if name.startswith(NO_CODE) or name in NO_CODE_FILES:
        return True
    if path.suffix not in IN_C:
        return [*_settings(old)] == [*_settings(new)]
    if [*_tokens(old)] == [*_tokens(new)]:
        return True
    if path.suffix == ".h" or str(path.with_suffix(".o")) not in same:
        return False
    return [*_tokens(old, conditional=True)] == [*_tokens(new, conditional=True)]


def with_line_numbers(new: str, places: Iterable[tuple[int, int]]) -> str:
    """Return C with `#line` inserted in some places, which changes the line numbers after them.

    places: the number of lines before each, and the number that the next line gets. Within a
    comment or a continued line, the directive is inserted at the next possible line.
    """
    lines = new.splitlines(keepends=True)
    starts = [*accumulate((len(line) for line in lines), initial=0)]
    spans = [found.span() for found in _COMMENT.finditer(new) if found["kept"] is None]
    for at, number in sorted(places, reverse=True):
        to = at
        while to < len(lines) and (
            any(first < starts[to] < end for first, end in spans)
            or (to and lines[to - 1].rstrip("\n").endswith("\\"))
        ):
            to += 1
        lines.insert(to, f"#line {number + to - at}\n")
    return "".join(lines)


def objects_of(names: Iterable[str], tree: Path) -> frozenset[str] | None:
    """Return the objects that changed files of a tree can affect; None if any may be affected."""
    found = set[str]()
    for name in names:
        path = PurePosixPath(name)
        if name.startswith(NO_CODE) or name in NO_CODE_FILES:
            continue
        if path.suffix != ".c" or _is_included(path, tree):
            return None
        found.add(str(path.with_suffix(".o")))
    return frozenset(found)


def _is_included(source: PurePosixPath, tree: Path) -> bool:
    """Whether another file in its folder includes a source."""
    line = re.compile(rf'^\s*#\s*include\s+"(?:\S*/)?{re.escape(source.name)}"', re.MULTILINE)
    return any(line.search(_text(path)) for path in (tree / source.parent).glob("*.[ch]"))


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:  # the series adds or removes the file
        return ""


def _settings(text: str) -> Iterator[str]:
    """Yield the lines of a Makefile or a Kconfig file without comments."""
    for line in text.splitlines():
        if line.strip() and not line.lstrip().startswith("#"):
            yield line.rstrip()


def _tokens(text: str, *, conditional: bool = False) -> Iterator[str]:
    """Yield the tokens of a text in C; a directive is one token.

    conditional: only the tokens between #if and #endif.
    """
    bare = _COMMENT.sub(lambda found: found["kept"] or " ", text.replace("\\\n", " "))
    depth = 0
    for line in bare.splitlines():
        found = _DIRECTIVE.match(line)
        depth += found is not None and found["word"] in _BEGINS
        if depth or not conditional:
            yield from [" ".join(line.split())] if found else _TOKEN.findall(line)
        depth -= found is not None and found["word"] == _ENDS
