# SPDX-License-Identifier: GPL-2.0-only
"""Layouts with columns of words: boots by number of threads, and compaction by mode."""

import re
from collections.abc import Iterator, Mapping, Sequence

from ream.mail.layout import Parsed, distinct, places
from ream.mail.text import NUMBER, MailLine, number
from ream.published import AS_NAMED, TableRow
from ream.values import Scalar

THREADS = "node% (thr)  speedup  time_ms (stdev)  speedup  time_ms (stdev)"
MODES = "Mode  Wall time(ms)  Migrated  DMA_Copy  Hog_Iters  User%  Sys%  Idle%"

_THREADS_HEAD = re.compile(r"node% \(thr\)((?: speedup time_ms \(stdev\)){2})")
_GROUPS = re.compile(r"kernel boot deferred init")
_TIMED = rf"(-{{1,2}}|-?{NUMBER}%) ({NUMBER}) \( ?({NUMBER}) ?\)"
_THREADS_ROW = re.compile(rf"(?:({NUMBER})% )?\( ?([0-9]{{1,4}}) ?\) {_TIMED} {_TIMED}")
_CPUS = re.compile(r"[0-9]+ nodes? \* .* = ([0-9]{1,5}) CPUs")
_MEMORY = re.compile(r"([0-9]{1,7})G/node = [0-9]+G memory")
_METHOD = (
    "threads = 0 is the kernel before the change; speed-ups are per cent of that row, as printed"
)
_FEW = 8
"""How many lines above the head are searched for the machine."""


def threads_starts(lines: Sequence[MailLine]) -> Sequence[int]:
    """The places of heads of tables by threads."""
    return places(lines, lambda line: _THREADS_HEAD.fullmatch(line.text) is not None)


def read_by_threads(lines: Sequence[MailLine], start: int, end: int) -> Parsed | None:
    """Boot and deferred initialisation by threads. A mail has one such table per machine."""
    above = _above(lines[max(0, start - _FEW) : start])
    rows, understood = [], {lines[start].number, *(line.number for line in above)}
    for line in lines[start + 1 : end]:
        if (found := _THREADS_ROW.fullmatch(line.text)) is not None:
            rows.append(_threads_row(found))
            understood.add(line.number)
    return Parsed(
        unit="ms",
        better="lower",
        method=_METHOD,
        rows=distinct(rows),
        facts=_machine([line.text for line in above]),
        lines=frozenset(understood),
    )


def _threads_row(found: re.Match[str]) -> TableRow:
    pct, threads, *timed = found.groups()
    values: dict[str, int | float] = {}
    sd: dict[str, int | float] = {}
    for name, (speedup, time_ms, stdev) in (("boot", timed[:3]), ("init", timed[3:])):
        values[f"{name}_ms"] = number(time_ms)
        sd[f"{name}_ms"] = number(stdev)
        if speedup.strip("-"):
            values[f"{name}_pct"] = number(speedup.rstrip("%"))
    return TableRow(
        params={"node_pct": 0 if pct is None else number(pct), "threads": int(threads)},
        values=values,
        sd=sd,
    )


def _above(lines: Sequence[MailLine]) -> list[MailLine]:
    """The last lines before a head that are about its machine, without rows of an earlier table."""
    last_row = max(
        (n for n, line in enumerate(lines) if _THREADS_ROW.fullmatch(line.text)), default=-1
    )
    about = [line for line in lines[last_row + 1 :] if line.text]
    for n, line in enumerate(about):
        if _CPUS.search(line.text):
            # Its CPU stands in the line before that of its nodes, and nothing else is about it.
            return about[max(0, n - 1) :]
    return [line for line in about if _GROUPS.fullmatch(line.text)]


def _machine(above: Sequence[str]) -> dict[str, Scalar]:
    said = [text for text in above if not _GROUPS.fullmatch(text)]
    facts: dict[str, Scalar] = {"machine": ", ".join(said)} if said else {}
    for text in said:
        if cpus := _CPUS.search(text):
            facts["cpus"] = int(cpus[1])
        if memory := _MEMORY.search(text):
            facts["node_gib"] = int(memory[1])
    return facts


_COLUMNS: Mapping[str, str] = {
    "Wall time(ms)": "wall_ms",
    "Migrated": "migrated",
    "DMA_Copy": "dma_copies",
    "Hog_Iters": "hog_iterations",
    "User%": "user_pct",
    "Sys%": "sys_pct",
    "Idle%": "idle_pct",
}
_MODE = re.compile(r"(?:[0-9]{1,3} )?((?:busy-)?(?:baseline|dma)) (.+)")
_LOWER, _HIGHER = ("wall_ms", "sys_pct"), ("hog_iterations", "idle_pct", "user_pct")


def mode_starts(lines: Sequence[MailLine]) -> Sequence[int]:
    """The places of heads of tables by mode."""
    return places(lines, lambda line: bool(_columns(line.text)))


def read_by_mode(lines: Sequence[MailLine], start: int, end: int) -> Parsed | None:
    """A line for each mode, a column for each quantity; a dash means no value."""
    names = _columns(lines[start].text)
    rows, understood = [], {lines[start].number}
    for line in lines[start + 1 : end]:
        if (found := _MODE.fullmatch(line.text)) is None:
            continue
        if (values := _values(found[2].split(), names)) is not None:
            rows.append(TableRow(params={"mode": found[1]}, values=values))
            understood.add(line.number)
    return Parsed(
        unit=AS_NAMED,
        better=_better(names),
        method="a line for each mode; busy- has a counting loop on the same CPU",
        rows=distinct(rows),
        notes={"better": "not in the table: what these quantities are"},
        lines=frozenset(understood),
    )


def _columns(text: str) -> tuple[str, ...]:
    """The names of a head's columns; empty if it is no head or has an unknown column."""
    if not text.startswith("Mode "):
        return ()
    rest, names = text.removeprefix("Mode "), []
    while rest:
        known = next((column for column in _COLUMNS if f"{rest} ".startswith(f"{column} ")), None)
        if known is None:
            return ()
        names.append(_COLUMNS[known])
        rest = rest.removeprefix(known).lstrip()
    return tuple(names) if len({*names}) == len(names) else ()


def _values(words: Sequence[str], names: Sequence[str]) -> dict[str, int | float] | None:
    if len(words) != len(names):
        return None
    values: dict[str, int | float] = {}
    for name, word in zip(names, words, strict=True):
        if word == "-":
            continue
        if not re.fullmatch(NUMBER + ("%" if name.endswith("_pct") else ""), word):
            return None
        values[name] = number(word.rstrip("%"))
    return values


def _better(names: Sequence[str]) -> str:
    def clauses() -> Iterator[str]:
        for word, known in (("lower", _LOWER), ("higher", _HIGHER)):
            if own := [name for name in known if name in names]:
                yield f"{word} {' and '.join(own)}"

    return ", ".join(clauses())
