# SPDX-License-Identifier: GPL-2.0-only
"""Explanations in a letter or a page for readers new to ream, without details of this machine."""

import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from functools import cache
from pathlib import Path

from ream.errors import BadUsage
from ream.experiment import PATCHED, named
from ream.judge.judgement import Judgement, Operation
from ream.paths import CHECKOUT, cache_dir

ABOUT = (
    "ream compiles the kernel's own functions with and without a series, runs them in a process,"
    " verifies the memory that they leave, counts what they execute, and times them. The file"
    " docs/method.md in its source explains how, and docs/judged.md how often it was right."
)


def names(its: Judgement, rows: Sequence[Operation]) -> Iterator[tuple[str, str]]:
    """Yield the names that a judgement uses, each with an explanation.

    rows: the rows that are shown. For a wrong series, the wrong row or case comes first.
    """
    if its.wrong is not None:
        yield from _of_wrong(its.wrong.experiment, its.wrong.lines[0])
    for one in rows:
        if one.title:
            yield one.row, one.title


def _of_wrong(experiment: str, line: str) -> Iterator[tuple[str, str]]:
    name, colon, rest = line.partition(": ")
    if not colon:
        return
    try:
        titles = {row.name: row.title() for row in named(experiment).at("native").rows}
    except BadUsage:  # the kernel's own tests in a guest
        titles = {}
    if name in titles:
        yield name, f"a row of {experiment}: {titles[name]}"
    elif re.fullmatch(r"[\w.-]+(/[\w.-]+)?", name):
        case, slash, operation = name.partition("/")
        what = f", on which {operation} was tried" if slash else ""
        shape = f"an edge case of {experiment}: memory of the shape {case!r}{what}"
        yield name, f"{shape}; all edge cases are verified before anything is timed"
    if rest.startswith(f"{PATCHED}:"):
        yield PATCHED, "the kernel with the series"


def for_others(its: Judgement) -> Judgement:
    """Return a judgement in which each local path, as `_local_path` finds it, is its last part.

    Rows, listings and operations are unchanged: they come from counts, times and the kernel's
    source. Commands that run a program name a file of this machine, and are left out.
    """
    kept = {"rows": its.rows, "listings": its.listings, "operations": its.operations}
    empty = {"rows": (), "listings": (), "operations": (), "command": "", "programs": {}}
    bare = _bare(replace(its, **empty))  # type: ignore[arg-type]
    assert isinstance(bare, Judgement)
    return replace(bare, **kept)  # type: ignore[arg-type]


def bare_text(text: str) -> str:
    """Return a text in which only the last part of each local path is left."""
    return _local_path().sub(r"\1", text)


def _bare(value: object) -> object:
    """Return a value with no local path in any of its strings."""
    if isinstance(value, str):
        return bare_text(value)
    if isinstance(value, tuple):
        return tuple(map(_bare, value))
    if isinstance(value, Mapping):
        return {name: _bare(one) for name, one in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        return replace(
            value, **{one.name: _bare(getattr(value, one.name)) for one in fields(value)}
        )
    return value


@cache
def _local_path() -> re.Pattern[str]:
    """A pattern for paths in folders of the user, of ream and of temporary files.

    Its group is the last part of the path.
    """
    folders = {CHECKOUT, cache_dir(), Path.home(), Path.cwd(), Path(tempfile.gettempdir())}
    within = "|".join(
        re.escape(str(one)) for one in sorted(folders, key=lambda one: -len(str(one))) if one.name
    )
    return re.compile(rf"(?<![\w./-])(?:{within})(?:/[^\s/:;,'\")]+)*/([^\s/:;,'\")]+)")
