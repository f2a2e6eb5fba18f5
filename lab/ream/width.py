# SPDX-License-Identifier: GPL-2.0-only
"""How wide text for people is: as their terminal, within what our tables can be read at."""

import shutil
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

NARROWEST = 60
WIDEST = 100
"""Columns of records, of output that no terminal shows, and the default."""

ROOMY = 80
"""Columns from which on text goes on below its own column."""
NARROW_INDENT = 6

_width: ContextVar[int] = ContextVar("width", default=WIDEST)


def width() -> int:
    """Columns that a line may take now."""
    return _width.get()


@contextmanager
def as_wide_as(columns: int) -> Iterator[None]:
    """Let lines take as many columns, within bounds, for the length of a `with` block."""
    before = _width.set(max(NARROWEST, min(WIDEST, columns)))
    try:
        yield
    finally:
        _width.reset(before)


def terminal_columns() -> int:
    """Return COLUMNS, else the width of the terminal on standard output, else WIDEST."""
    return shutil.get_terminal_size(fallback=(WIDEST, 1)).columns


def table_line(label: str, cells: Sequence[str], optional: Sequence[str] = ()) -> Iterator[str]:
    """A line of a table from cells as wide as their columns, and optional ones while they fit.

    Where the others do not fit beside each other the line goes on below itself, and never within a
    cell: its heading, made of cells of the same widths, is cut at the same places.
    """
    nr_fit, wide = 0, len(label) + sum(map(len, cells))
    while nr_fit < len(optional) and (wide := wide + len(optional[nr_fit])) <= width():
        nr_fit += 1
    text = label
    for cell in (*cells, *optional[:nr_fit]):
        if len(cell) > width() - len(label):  # no column is as wide: only damage is
            yield from textwrap.wrap(f"{text}{cell}", width(), subsequent_indent=" " * len(label))
            text = " " * len(label)
            continue
        if len(text) + len(cell.rstrip()) > width() and len(text) > len(label):
            if text.strip():
                yield text.rstrip()
            text = " " * len(label)
        text += cell
    if text.strip():
        yield text.rstrip()


def print_hanging(line: str, indent: int) -> None:
    """Print a line, which goes on below its last column where it is too long."""
    if width() < ROOMY:
        indent = min(indent, NARROW_INDENT)
    wrapped = textwrap.wrap(line, width(), subsequent_indent=" " * indent, break_on_hyphens=False)
    print("\n".join(wrapped))
