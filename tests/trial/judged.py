# SPDX-License-Identifier: GPL-2.0-only
"""Writes docs/judged.md of the records of a trial: what was judged, and what was expected.

PYTHONPATH=lab python tests/trial/judged.py
"""

import json
import statistics
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "docs" / "judged.md"
RECORD, CHANGES, HEAD, TAIL = (
    HERE / name for name in ("record.jsonl", "changes.tsv", "head.md", "tail.md")
)
WRONG = 5
MOST_STEPS = 15

KINDS = {
    "fix": "Fixes, reversed: wrong",
    "fix2": "Further fixes, reversed, in a second trial: wrong",
    "harmless": "Changes that cannot be observed, reversed: not wrong",
    "hunk": "Hunks between 6.12 and 7.3: not wrong unless confirmed",
    "edit": "Generated edits that change nothing: not wrong",
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
        its = [one for one in found if one["kind"] == kind]
        if kind == "edit":
            its = [one for one in its if one["exit"] == WRONG]
        if its:
            parts += [f"## {heading}", "", *_table(its), ""]
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
