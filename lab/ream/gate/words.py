# SPDX-License-Identifier: GPL-2.0-only
"""The outcome of a check as text, as an object, and as cases for KTAP and JUnit."""

import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from ream.compare.alike import remedies
from ream.experiment import shown_in
from ream.gate.gate import Gate, JudgedRow, Word, percent
from ream.history.comparison import estimate_object, rounded
from ream.record.record import SCHEMA
from ream.report import case, junit, ktap
from ream.report.case import plain
from ream.values import Scalar
from ream.width import WIDEST, width

NAME = 34
WORDS = {"pass": "ok", "fail": "FAIL", "inconclusive": "INCONCLUSIVE", "skip": "SKIP"}
SAID: Mapping[Word, str] = {
    "fail": "slower than allowed",
    "inconclusive": "inconclusive",
    "pass": "within the limit",
    "skip": "not compared",
}
GREW = {**SAID, "fail": "grew beyond the limit"}
SIDES = ("in the baseline", "now")
FEW = 0.01
AT_THE_LIMIT = 0.025
"""The share of cases that fail if their true change is exactly the limit."""


def text(gate: Gate) -> str:
    """The complete answer in plain ASCII, ending in a newline."""
    return "".join(f"{plain(line)}\n" for line in _lines(gate))


def _lines(gate: Gate) -> Iterator[str]:
    yield f"ream check: {gate.experiment}, {gate.stage} stage"
    yield f"  run       {gate.run}"
    yield f"  baseline  {gate.baseline}"
    yield from textwrap.wrap(
        f"  limit     {_limit(gate)}",
        min(88, width()),
        subsequent_indent=" " * 12,
    )
    for unlike in gate.unlike:
        word = "UNLIKE" if unlike.refuses else "differs"
        yield from textwrap.wrap(
            f"  {word:10}{shown_in(unlike.said(*SIDES))}", width(), subsequent_indent=" " * 12
        )
    for remedy in remedies(gate.unlike):
        yield from textwrap.wrap(
            remedy, width(), initial_indent=" " * 12, subsequent_indent=" " * 12
        )
    yield ""
    for one in gate.cases:
        yield from textwrap.wrap(
            f"  {one.name:{NAME}} {WORDS[one.word]:12}  {one.reason}",
            width(),
            subsequent_indent=" " * (NAME + 17 if width() == WIDEST else 12),
        )
    yield ""
    yield from textwrap.wrap(f"{WORDS[gate.word]}: {in_short(gate)}", width())


def _limit(gate: Gate) -> str:
    if gate.counts:
        return f"{gate.limit_pct:g} % more of anything that is counted; counts have no interval"
    return (
        f"{gate.limit_pct:g} % slower: the change of variant / before, and its whole 95 % interval,"
        " must be beyond it to fail"
    )


def in_short(gate: Gate) -> str:
    """The number of cases with each outcome, and the number expected to fail by chance."""
    said = GREW if gate.counts else SAID
    parts = [f"{number} {text}" for word, text in said.items() if (number := gate.number(word))]
    skipped = Counter(one.reason for one in gate.cases if one.word == "skip")
    if skipped:
        parts[-1] += f" ({', '.join(f'{number} {why}' for why, number in skipped.items())})"
    if gate.counts:
        return ", ".join(parts)
    if all(one.change is None for one in gate.cases):
        return f"{', '.join([*parts, 'so nothing was decided'])}"
    return f"{', '.join(parts)}; {by_chance(gate)}"


def by_chance(gate: Gate) -> str:
    """The number of timed cases expected to fail by chance, in words."""
    timed = sum(one.change is not None and one.change.degrees is not None for one in gate.cases)
    if not timed:
        return "counts do not fail by chance"
    few = f"{gate.by_chance:.2g}" if gate.by_chance >= FEW else f"less than {FEW}"
    return (
        f"of {timed} timed, {few} would fail by chance were nothing changed, "
        f"{AT_THE_LIMIT * timed:.2g} were each exactly at the limit"
    )


def to_object(gate: Gate) -> dict[str, Any]:
    """The object that `--json` prints; docs/commands.md describes its fields."""
    return {
        "schema": SCHEMA,
        "run": gate.run,
        "baseline": gate.baseline,
        "experiment": gate.experiment,
        "stage": gate.stage,
        "machine": gate.machine,
        "max_regression_pct": gate.limit_pct,
        "outcome": gate.word,
        "by_chance": rounded(gate.by_chance),
        "unlike": [
            {"what": one.what, "baseline": one.a, "run": one.b, "gravity": one.gravity}
            for one in gate.unlike
        ],
        "cases": [
            {
                "row": one.row,
                "variant": one.variant,
                "unit": one.unit,
                "outcome": one.word,
                "reason": one.reason,
                "run": None if one.now is None else estimate_object(one.now),
                "baseline": None if one.base is None else estimate_object(one.base),
                "change": None
                if one.change is None
                else {
                    "ratio": rounded(one.change.ratio),
                    "low": rounded(one.change.low),
                    "high": rounded(one.change.high),
                },
                "chance": rounded(one.chance),
            }
            for one in gate.cases
        ],
    }


def to_ktap(gate: Gate) -> str:
    """The cases as KTAP."""
    comments = [
        (
            f"{gate.run} against {gate.baseline}, at most {gate.limit_pct:g} %"
            f" {'more' if gate.counts else 'slower'}"
        ),
        *(f"differs: {one.said(*SIDES)}" for one in gate.unlike),
        in_short(gate),
    ]
    return ktap.render([_case(one) for one in gate.cases], comments)


def to_junit(gate: Gate) -> str:
    """The cases as JUnit XML."""
    return junit.render(
        f"ream.{gate.experiment}",
        [_case(one) for one in gate.cases],
        {
            "run": gate.run,
            "baseline": gate.baseline,
            "stage": gate.stage,
            "machine": gate.machine,
            "max_regression_pct": f"{gate.limit_pct:g}",
            "in_short": plain(in_short(gate)),
        },
    )


def _case(one: JudgedRow) -> case.Case:
    """A case for CI systems, which have no inconclusive outcome: it is skipped with a reason."""
    reason = f"inconclusive: {one.reason}" if one.word == "inconclusive" else one.reason
    return case.Case(
        group=one.row,
        name=one.variant,
        outcome="skip" if one.word == "inconclusive" else one.word,
        reason=reason,
        numbers=tuple(_numbers(one)),
    )


def _numbers(one: JudgedRow) -> Iterator[tuple[str, Scalar]]:
    for name, estimate in (("run", one.now), ("baseline", one.base)):
        if estimate is not None:
            yield f"{name}_ratio", f"{estimate.ratio:.5g}"
            if estimate.low is not None and estimate.high is not None:
                yield f"{name}_ci95", f"{estimate.low:.5g}..{estimate.high:.5g}"
            yield f"{name}_launches", len(estimate.per_launch)
    if one.change is not None:
        yield "change_pct", percent(one.change.ratio).removesuffix(" %")
        if one.change.low is not None and one.change.high is not None:
            yield "change_ci95", f"{one.change.low:.5g}..{one.change.high:.5g}"
    if one.word != "skip":
        yield "unit", one.unit
