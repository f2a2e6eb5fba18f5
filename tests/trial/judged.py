# SPDX-License-Identifier: GPL-2.0-only
"""Writes docs/judged.md of the records of a trial: what was judged, and what was expected.

PYTHONPATH=lab python tests/trial/judged.py
"""

import json
import re
import statistics
import textwrap
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "docs" / "judged.md"
RECORD, CHANGES, HEAD, TAIL = (
    HERE / name for name in ("record.jsonl", "changes.tsv", "head.md", "tail.md")
)
WRONG, UNDECIDED = 5, 4
FUNCTION = re.compile(r"(\w+)\(\)")
WIDTH = 99

KINDS = {
    "fix": "Fixes, reversed: wrong",
    "fix2": "Further fixes, reversed, in a second trial: wrong",
    "fix3": "Fixes of 6.12 and up to 7.3, reversed, in a third trial: wrong",
    "fix4": "The next fixes up to 7.3, reversed, in a fourth trial: wrong",
    "harmless": "Changes that cannot be observed, reversed: not wrong",
    "hunk": "Hunks between 6.12 and 7.3: not wrong unless confirmed",
    "edits": "Generated edits that change nothing, ten in a series: not wrong",
    "same": "Generated edits that change no object: nothing to execute",
    "unexecuted": "Generated edits of functions that nothing executes: nothing to say but that",
}
"""By kind, a heading: what the changes are, and the right answer."""

Row = dict[str, Any]


def rows() -> list[Row]:
    """The records, with what is known of each change."""
    lines = CHANGES.read_text(encoding="utf-8").splitlines()
    names = lines[0].split("\t")
    known = {
        one["name"]: one
        for one in (dict(zip(names, line.split("\t"), strict=True)) for line in lines[1:])
    }
    return [
        {**known.get(one["name"], {}), **one}
        for one in map(json.loads, RECORD.read_text(encoding="utf-8").splitlines())
    ]


def page(found: Sequence[Row]) -> str:
    """All of docs/judged.md."""
    parts = [HEAD.read_text(encoding="utf-8").rstrip("\n"), "", *_summary(found), ""]
    for kind, heading in KINDS.items():
        if its := [one for one in found if one["kind"] == kind]:
            said = textwrap.wrap(SAID[kind](its), WIDTH) if kind in SAID else []
            table = _generated if kind in SAID else _table
            parts += [f"## {heading}", "", *said, *([""] if said else []), *table(its), ""]
    _, _, tail = TAIL.read_text(encoding="utf-8").partition("\n")  # its licence is the page's
    return "\n".join((*parts, tail.rstrip("\n"), ""))


def _summary(found: Sequence[Row]) -> Iterator[str]:
    yield "| changes | judged | exit 5 | exit 0 | exit 4 | other exits | median seconds |"
    yield "|---|---|---|---|---|---|---|"
    for kind, heading in KINDS.items():
        its = [one for one in found if one["kind"] == kind]
        if not its:
            continue
        ends = [sum(one["exit"] == code for one in its) for code in (WRONG, 0, 4)]
        other = len(its) - sum(ends)
        seconds = statistics.median(one["wall_s"] for one in its)
        cells = (heading, len(its), *ends, other, f"{seconds:.0f}")
        yield f"| {' | '.join(map(str, cells))} |"


def _of_edits(its: Sequence[Row]) -> str:
    """How many are called wrong, and how much of them there was to see."""
    nr_edits = sum(len(one["subjects"]) for one in its)
    nr_functions = len({name for one in its for name in one["functions"] or ()})
    nr_met, nr_blocks = (sum(one[name] or 0 for one in its) for name in ("nr_entered", "nr_blocks"))
    return (
        f"{len(its)} series have {nr_edits} edits in all, and {_number(its, _is_wrong)} ended with"
        " 5, which would be a false alarm. The compiler makes the same code of many edits: the"
        f" series change {nr_functions} functions in all. Of {nr_blocks} blocks of code in changed"
        f" lines, programs executed {nr_met}."
    )


def _of_same(its: Sequence[Row]) -> str:
    return (
        f"Of {len(its)} edits, {_number(its, _is_same)} ended with 0, as each file compiles to the"
        f" same with them. In {_number(its, _is_timed)} a time was given."
    )


def _of_unexecuted(its: Sequence[Row]) -> str:
    return (
        f"Of {len(its)} edits, {_number(its, _is_undecided)} ended with 4. In"
        f" {_number(its, _names_its_function)} the function was named, and in"
        f" {_number(its, _is_timed)} a time was given. In {_number(its, _is_executed)} a program"
        " executed changed lines."
    )


SAID = {"edits": _of_edits, "same": _of_same, "unexecuted": _of_unexecuted}
"""By kind of what is generated, what its table shows."""


def _number(its: Sequence[Row], of: Callable[[Row], bool]) -> str:
    return str(sum(map(of, its)) or "none")


def _is_wrong(one: Row) -> bool:
    return bool(one["exit"] == WRONG)


def _is_undecided(one: Row) -> bool:
    return bool(one["exit"] == UNDECIDED)


def _is_same(one: Row) -> bool:
    return bool(one["exit"] == 0 and one["same"])


def _is_timed(one: Row) -> bool:
    return bool(one.get("timed"))


def _is_executed(one: Row) -> bool:
    return bool(one["nr_entered"])


def _names_its_function(one: Row) -> bool:
    """Whether the function that the subject names is among those that are said to change."""
    name = FUNCTION.search(one["subjects"][0])
    return name is not None and name[1] in (one["functions"] or ())


def _generated(its: Sequence[Row]) -> Iterator[str]:
    yield "| edit | judged | functions that change | changed blocks executed | seconds |"
    yield "|---|---|---|---|---|"
    for one in its:
        subjects = one["subjects"]
        change = f"{one['name']}: {subjects[0]}" if len(subjects) == 1 else one["name"]
        functions = ", ".join(f"{name}()" for name in one["functions"] or ())
        cells = change, _judged(one), functions, _blocks(one)
        yield f"| {' | '.join(map(_cell, cells))} | {one['wall_s']:.0f} |"


def _table(its: Sequence[Row]) -> Iterator[str]:
    yield "| change | expected | judged | steps | changed blocks executed | seconds |"
    yield "|---|---|---|---|---|---|"
    for one in its:
        cells = _change(one), one.get("expectation", ""), _judged(one), _steps(one), _blocks(one)
        yield f"| {' | '.join(map(_cell, cells))} | {one['wall_s']:.0f} |"


def _change(one: Row) -> str:
    subject = one.get("subject")
    return f'{one["id"]} reversed, "{subject}"' if subject else one["name"]


def _judged(one: Row) -> str:
    said = one.get("said") or [one.get("differs") or ""]
    return f"{one['exit']}: {said[0]}" if said[0] else str(one["exit"])


def _steps(one: Row) -> str:
    return str(one["nr_program_steps"]) if one.get("nr_program_steps") else ""


def _blocks(one: Row) -> str:
    return f"{one['nr_entered']} of {one['nr_blocks']}" if one.get("nr_blocks") else ""


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")


if __name__ == "__main__":
    PAGE.write_text(page(rows()), encoding="utf-8")
