# SPDX-License-Identifier: GPL-2.0-only
"""Renders a judgement as GitHub-flavoured Markdown for a job summary, with the verdict first."""

import re
from collections.abc import Iterable, Iterator, Sequence

from ream.errors import ReamError
from ream.judge import words
from ream.judge.explain import bare_text, for_others
from ream.judge.html import ENDS
from ream.judge.judgement import Finding, Judgement, Operation
from ream.judge.unexamined import unexamined, unexecuted
from ream.plain import plain, plain_lines

MOST_FUNCTIONS = 2
LEAST_FENCE = 3


def render(its: Judgement) -> str:
    """Return the text, ending in a newline and without paths of this machine."""
    return "\n".join(_lines(for_others(its))) + "\n"


def unjudged(series: str, cause: ReamError) -> str:
    """Return the text for a series that could not be judged: the reason, its first line on top."""
    first, _, rest = bare_text(str(cause)).partition("\n")
    its = [f"## {_text(series)}: not judged\n", f"{_text(first)}\n"]
    return "\n".join([*its, f"{_fence(rest)}\n"] if rest.strip() else its)


def _lines(its: Judgement) -> Iterator[str]:
    yield f"## {_text(its.series)}: {ENDS[its.exit_code]}\n"
    yield f"{_text(words.sentence(its))}\n"
    findings = [*its.findings]
    if its.wrong is not None:
        yield from _wrong(findings.pop(0), its.wrong.lines)
    yield from _list("Findings", map(_finding, findings))
    yield from _list("Reach", map(_text, _reach(its)))
    rows = [*its.ordered()]
    yield from _counts([one for one in rows if one.counted is not None])
    yield from _times([one for one in rows if one.timed is not None])
    yield from _list("Not examined", map(_text, _not_examined(its)))
    yield from _list("Conditions", map(_text, _conditions(its)))
    if its.reproduce:
        yield from ("To reproduce, with ream:\n", _fence(its.reproduce))


def _wrong(one: Finding, lines: Sequence[str]) -> Iterator[str]:
    """Yield the rule that was broken, and a program that shows it or else the known details."""
    yield "### What is wrong\n"
    yield f"- Rule: {_text(one.rule)}"
    if one.step is not None:
        yield f"- Step: {_code(one.step)}"
    yield from _place(one)
    yield ""
    if rest := one.program or "\n".join(lines[1:]):
        yield f"{_fence(rest)}\n"


def _place(one: Finding) -> Iterator[str]:
    if one.file is not None:
        yield f"- Nearest changed line: {_code(f'{one.file}:{one.line}')}"


def _finding(one: Finding) -> str:
    where = "" if one.file is None else f"{_code(f'{one.file}:{one.line}')}: "
    return f"{where}{_text(one.rule)}: {_text(one.message)}"


def _reach(its: Judgement) -> Iterator[str]:
    if its.whole is not None:
        yield f"All of mm/: {its.whole.words()}"
        yield from unexecuted(its.whole)
    if its.reach is not None:
        yield its.reach.sentence()
        yield from (f"{one}; whatever uses it is compiled anew" for one in its.reach.layout)


def _not_examined(its: Judgement) -> Iterator[str]:
    yield from unexamined(its)
    if its.reach is not None and its.reach.nearest is not None:
        yield f"Nearest: {its.reach.nearest}"
    yield from (f"{name}: {why}" for name, why in its.unhosted.items())
    yield from its.notes


def _conditions(its: Judgement) -> Iterator[str]:
    base = f"Upgrade from {its.tree} to {its.to}" if its.to else f"Base: {its.tree}"
    yield from (base, f"Machine: {its.machine}")
    yield from (*its.own_tables, *its.guests, *its.controls)
    if its.records:
        yield f"Records: {', '.join(its.records)}"


# --- Tables ----------------------------------------------------------------------------


def _counts(rows: Sequence[Operation]) -> Iterator[str]:
    heads = ("Row", "Outcome", "Decided by", "Instructions", "Locked operations", "Functions")
    yield from _table("Counts", heads, ((*_outcome(one), *_counted(one)) for one in rows))


def _counted(one: Operation) -> tuple[str, ...]:
    assert one.counted is not None
    functions = (f"{name}()" for name, _ in one.functions[:MOST_FUNCTIONS])
    locked = f"{words.locked(one)} for each {one.counted.per}"
    return words.decided(one), words.change(one), locked, ", ".join(functions)


def _times(rows: Sequence[Operation]) -> Iterator[str]:
    heads = ("Row", "Outcome", "Before", "Ratio", "95 % interval", "Smallest effect that is found")
    yield from _table("Times", heads, ((*_outcome(one), *_timed(one)) for one in rows))


def _timed(one: Operation) -> tuple[str, ...]:
    its = one.timed
    assert its is not None
    known = its.low is not None and its.high is not None
    interval = f"{its.low:.3f} to {its.high:.3f}" if known else ""
    time = f"{words.before(one)} for each {its.per}" if its.before_ns else ""
    smallest = f"{its.smallest_effect:.3f}" if its.smallest_effect else ""
    return time, f"{its.ratio:.3f}", interval, smallest


def _outcome(one: Operation) -> tuple[str, str]:
    return f"{one.experiment} {one.row}", words.OF_OUTCOME[one.outcome]


def _table(title: str, heads: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Yield a heading and a table; nothing if there are no rows."""
    if lines := [f"| {' | '.join(map(_text, row))} |" for row in rows]:
        yield f"### {title}\n"
        yield f"| {' | '.join(heads)} |"
        yield f"|{' --- |' * len(heads)}"
        yield from (*lines, "")


def _list(title: str, texts: Iterable[str]) -> Iterator[str]:
    """Yield a heading and a list; nothing if there are no items."""
    if lines := [f"- {one}" for one in texts]:
        yield from (f"### {title}\n", *lines, "")


# --- Untrusted texts -------------------------------------------------------------------


def _text(text: str) -> str:
    """Escape what Markdown or HTML would interpret, and what GitHub takes for a mention."""
    bare = plain(text).replace("&", "&amp;").replace("<", "&lt;")
    return re.sub(r"([\\`*\[\]|~$#]|(?<!\w)_|_(?!\w))", r"\\\1", bare).replace("@", "&#64;")


def _code(text: str) -> str:
    fence = "`" * (_longest_run(text) + 1)
    return f"{fence} {plain(text)} {fence}"


def _fence(text: str) -> str:
    fence = "`" * max(LEAST_FENCE, _longest_run(text) + 1)
    return f"{fence}text\n{plain_lines(text)}\n{fence}"


def _longest_run(text: str) -> int:
    return max(map(len, re.findall("`+", text)), default=0)
