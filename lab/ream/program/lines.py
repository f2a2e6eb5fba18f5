# SPDX-License-Identifier: GPL-2.0-only
"""The lines that a hosted kernel reads: one step each, numbers only.

A file of definitions, whose path the caller gives, declares the steps and the order of their
arguments as `STEP(name, argument, ...)`.
"""

import re
from collections.abc import Iterable, Mapping
from itertools import groupby
from operator import attrgetter
from pathlib import Path

from ream.errors import BadUsage
from ream.program.scene import Call

_STEP = re.compile(r"^STEP\(([^)]*)\)", re.MULTILINE)
_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_WORD = re.compile(r"[a-z][a-z0-9_]*", re.ASCII)

Definitions = Mapping[str, tuple[str, ...]]
"""Arguments of each step by its name."""


def load_definitions(path: Path) -> Definitions:
    """Read the steps that a file declares. Raises BadUsage for an unreadable or malformed file."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as fault:
        raise BadUsage(f"{path}: cannot be read: {fault}") from fault
    found: dict[str, tuple[str, ...]] = {}
    for match in _STEP.finditer(_COMMENT.sub("", text)):
        name, *arguments = (word.strip() for word in match[1].split(","))
        if name in found or not all(_WORD.fullmatch(word) for word in (name, *arguments)):
            raise BadUsage(f"{path}: {match[0]}: not a step of words, or there twice")
        found[name] = tuple(arguments)
    return found


def lines(calls: Iterable[Call], definitions: Definitions, *, shows: bool = False) -> str:
    """Write calls as lines: that of the text, the step's name, and its arguments in order.

    shows: VMAs and rss are reported after each line of the text, but not between two that meet.
    Raises BadUsage if the definitions lack a step, or name other arguments than it has.
    """
    written, hidden = [], 0
    for line, group in groupby(calls, key=attrgetter("line")):
        for call in group:
            if call.name == "interrupt":
                hidden = 2  # this one, and the one that is not done before the next
            if call.measured:
                written.append(_line(line, "measure", {}, definitions))
            words = {name: f"={word}" for name, word in call.words.items()}
            written.append(_line(line, call.name, {**call.arguments, **words}, definitions))
        if shows and line and not hidden:
            written.append(_line(line, "spaces", {}, definitions))
        hidden = max(0, hidden - 1)
    return "".join(f"{line}\n" for line in written)


def _line(
    line: int, name: str, arguments: Mapping[str, int | str], definitions: Definitions
) -> str:
    if name not in definitions:
        raise BadUsage(f"line {line}: {name}: this kernel's definitions have no such step")
    order = definitions[name]
    if set(order) != set(arguments):
        raise BadUsage(
            f"line {line}: {name}: has {', '.join(arguments) or 'nothing'}; the definitions "
            f"ask for {', '.join(order) or 'nothing'}"
        )
    return " ".join(map(str, (line, name, *(arguments[argument] for argument in order))))
