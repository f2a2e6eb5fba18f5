# SPDX-License-Identifier: GPL-2.0-only
"""Which changed files are known to compile to what they did, and which are not.

Objects that are the same say nothing of code that was not compiled: of other files, of headers that
other files include, and of what a configuration leaves out.
"""

import re
from collections.abc import Collection, Iterable, Iterator
from itertools import accumulate
from pathlib import Path, PurePosixPath

NO_CODE = ("Documentation/", "LICENSES/", "tools/testing/")
"""Folders of a kernel source of which nothing is compiled into a kernel."""
NO_CODE_FILES = ("MAINTAINERS", "CREDITS", ".mailmap")
IN_C = (".c", ".h", ".S")
"""What the C preprocessor reads."""

_COMMENT = re.compile(
    r"""(?P<kept>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')|/\*.*?\*/|//[^\n]*""", re.DOTALL
)
"""A comment, or a string, in which nothing is one."""
_TOKEN = re.compile(
    r""""(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|\w+"""
    r"""|\.\.\.|<<=|>>=|->|\+\+|--|<<|>>|&&|\|\||\#\#|[-+*/%&|^=!<>]=|\S"""
)
_DIRECTIVE = re.compile(r"\s*#\s*(?P<word>\w*)")
_BEGINS, _ENDS = ("if", "ifdef", "ifndef"), "endif"


def undecided_files(
    names: Iterable[str], before: Path, after: Path, same: Collection[str]
) -> tuple[str, ...]:
    """The files of which it is not known that they compile to the same as before, sorted.

    names: of files that a series changes. before, after: the source trees. same: objects, as
    "mm/memory.o", that were compiled from both trees and have the same code and data.
    It is known of files of which nothing is compiled, of changes of comments and white space, and
    of sources of such objects, unless code between #if and #endif differs: a configuration may
    leave that out.
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
    """Return C with `#line` in some places, so that what is behind them has other line numbers.

    places: how many lines are before each, and the number that the next line gets. Within a comment
    or a line that goes on, the place is the next one that is neither.
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
    """The objects that changed files of a tree can change; None if it may be any of them."""
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
    """Whether another file of its folder includes a source."""
    line = re.compile(rf'^\s*#\s*include\s+"(?:\S*/)?{re.escape(source.name)}"', re.MULTILINE)
    return any(line.search(_text(path)) for path in (tree / source.parent).glob("*.[ch]"))


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:  # the series adds it, or removes it
        return ""


def _settings(text: str) -> Iterator[str]:
    """The lines of a Makefile or a Kconfig file that are no comment."""
    for line in text.splitlines():
        if line.strip() and not line.lstrip().startswith("#"):
            yield line.rstrip()


def _tokens(text: str, *, conditional: bool = False) -> Iterator[str]:
    """What the compiler makes of a text in C; a directive is one token.

    conditional: what stands between #if and #endif alone.
    """
    bare = _COMMENT.sub(lambda found: found["kept"] or " ", text.replace("\\\n", " "))
    depth = 0
    for line in bare.splitlines():
        found = _DIRECTIVE.match(line)
        depth += found is not None and found["word"] in _BEGINS
        if depth or not conditional:
            yield from [" ".join(line.split())] if found else _TOKEN.findall(line)
        depth -= found is not None and found["word"] == _ENDS
