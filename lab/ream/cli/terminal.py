# SPDX-License-Identifier: GPL-2.0-only
"""Shows results on a terminal as git does: in a pager where they are long, and with colours.

Files and pipes get neither. NO_COLOR turns colours off (no-color.org), and PAGER=cat the pager.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import IO, cast

PAGED = frozenset({"compare", "help", "history", "list", "report", "show"})
"""Commands that only print what there is, as `replicate --record` does. Others say on standard
error how far they are."""
ENDS_WITH_ONE_SCREEN = "FRX"
"""Options of less(1), as git sets them: F leaves a text that fits alone, and R shows colours."""

_GREEN, _RED, _PLAIN = "\x1b[32m", "\x1b[31m", "\x1b[39m"
_GAINS = re.compile(r"(?<![\w.-])\d+(?:\.\d+)?x (?:faster|fewer)\b|\bAGREES\b")
_LOSSES = re.compile(
    r"(?<![\w.-])\d+(?:\.\d+)?x (?:slower|more)\b|\bWRONG\b|\bNOT VERIFIED\b|\bCONTRADICTS\b"
)
_SWEPT = re.compile(r"^ {2}\S+(?: \S+)*(?: +(?:=|\?|-|WRONG|[\d.]+x))+$", re.MULTILINE)
"""A line of a table of what is swept: a variant, and how many times faster it is at each value."""
_FACTOR = re.compile(r"(?<= )([\d.]+)x(?= |$)")


def coloured(text: str) -> str:
    """The text with gains in green, and losses and faults in red."""
    text = _SWEPT.sub(lambda line: _FACTOR.sub(_coloured_factor, line[0]), text)
    text = _GAINS.sub(rf"{_GREEN}\g<0>{_PLAIN}", text)
    return _LOSSES.sub(rf"{_RED}\g<0>{_PLAIN}", text)


def _coloured_factor(found: re.Match[str]) -> str:
    """A factor by what it says: above 1 is faster, below it slower."""
    factor = float(found[1])
    colour = _GREEN if factor > 1 else _RED if factor < 1 else ""
    return f"{colour}{found[0]}{_PLAIN}" if colour else found[0]


def wants_colours(words: Sequence[str], environment: Mapping[str, str]) -> bool:
    """Whether a command's results have colours on a terminal; JSON never has."""
    is_dumb = environment.get("TERM", "dumb") == "dumb"
    return not (is_dumb or environment.get("NO_COLOR") or "--json" in words)


def pager_of(words: Sequence[str], environment: Mapping[str, str]) -> list[str]:
    """The command line of the pager; empty if there is none, or the command needs none."""
    command = next((one for one in words if not one.startswith("-")), None)
    records = command == "replicate" and any(one.startswith("--record") for one in words)
    if not (command in PAGED or records) or environment.get("TERM", "dumb") == "dumb":
        return []
    try:
        asked = shlex.split(environment.get("PAGER", "less"))
    except ValueError:  # a quote without its second one
        return []
    return asked if asked and asked[0] != "cat" and shutil.which(asked[0]) else []


class _Shown:
    """Standard output on a terminal. A pager that is left early is no error."""

    def __init__(self, to: IO[str], *, with_colours: bool) -> None:
        self._to = to
        self._with_colours = with_colours

    def write(self, text: str) -> int:
        with suppress(BrokenPipeError):
            self._to.write(coloured(text) if self._with_colours else text)
        return len(text)

    def flush(self) -> None:
        with suppress(BrokenPipeError):
            self._to.flush()

    def __getattr__(self, name: str) -> object:
        return getattr(self._to, name)


@contextmanager
def on_terminal(words: Sequence[str]) -> Iterator[None]:
    """Show what a command prints meanwhile as its user expects; words: of the command line."""
    before = sys.stdout
    if not before.isatty():
        yield
        return
    pager = _started(pager_of(words, os.environ))
    to = pager.stdin if pager is not None and pager.stdin is not None else before
    shown = _Shown(cast("IO[str]", to), with_colours=wants_colours(words, os.environ))
    sys.stdout = cast("IO[str]", shown)
    try:
        yield
    finally:
        shown.flush()
        sys.stdout = before
        if pager is not None and pager.stdin is not None:
            with suppress(BrokenPipeError):
                pager.stdin.close()
            _wait(pager)


def _wait(pager: "subprocess.Popen[str]") -> None:
    """Until the user leaves the pager. It takes Ctrl-C itself, and must not outlive us."""
    while True:
        try:
            pager.wait()
        except KeyboardInterrupt:
            continue
        return


def _started(pager: Sequence[str]) -> "subprocess.Popen[str] | None":
    if not pager:
        return None
    environment = {"LESS": ENDS_WITH_ONE_SCREEN, **os.environ}
    try:
        return subprocess.Popen(
            pager, stdin=subprocess.PIPE, text=True, errors="backslashreplace", env=environment
        )
    except OSError:  # it is no program
        return None
