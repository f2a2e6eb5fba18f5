# SPDX-License-Identifier: GPL-2.0-only
"""Command lines that users may type, for `--help` and the man pages."""

import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

FILE = Path(__file__).with_suffix(".toml")
INDENT, GOES_ON = "  ", " \\"


@cache
def examples() -> Mapping[str, Mapping[str, str]]:
    """What each command line does, by command; those of `ream` itself are for its first page."""
    return tomllib.loads(FILE.read_text(encoding="utf-8"))


def lines(command: str, columns: int) -> Iterator[str]:
    """The examples of a command, as a shell takes them: what each does is a comment.

    The comments stand beside the command lines, or above them where one has no room.
    """
    its = examples()[command]
    widest = max(map(len, its))
    beside = all(len(f"{INDENT}{'':{widest}}  # {says}") <= columns for says in its.values())
    for line, says in its.items():
        if beside:
            yield f"{INDENT}{line:{widest}}  # {says}"
        else:
            yield f"{INDENT}# {says}"
            yield from _continued(line, columns)


def _continued(line: str, columns: int) -> Iterator[str]:
    """A command line that goes on below itself, cut at its spaces, where it is too long."""
    indent = INDENT
    while len(indent + line) > columns and " " in line:
        room = columns - len(indent + GOES_ON)
        head = line[: room + 1].rpartition(" ")[0] or line.partition(" ")[0]
        yield f"{indent}{head}{GOES_ON}"
        line, indent = line[len(head) + 1 :], INDENT * 2
    yield indent + line
