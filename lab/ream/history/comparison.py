# SPDX-License-Identifier: GPL-2.0-only
"""A comparison of runs as text and as an object."""

import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from ream.compare.alike import remedies
from ream.counted import counted
from ream.experiment import shown, shown_in
from ream.history.compare import Compared, ComparedLine
from ream.measure.statistics import Estimate
from ream.record.record import SCHEMA
from ream.report.case import plain
from ream.report.numbers import fit
from ream.width import width

DIGITS = 5
NAME = 20

HOW_TO_READ = (
    "ratio = variant / before, or of a given series / the tree it stands on, with its 95 % "
    "interval over launches, lower is better; pooled: the launches of all runs of a machine "
    "together, and over machines with machines as the replicates; of counted instructions, from "
    "the least to the greatest round."
)


def text(compared: Compared) -> str:
    """The comparison for people: plain ASCII, at most 100 columns where names allow."""
    lines = [f"ream compare: {compared.experiment}, {compared.stage} stage"]
    lines += [f"  [{number}] {run}" for number, run in enumerate(compared.runs, start=1)]
    lines += _wrapped("read", HOW_TO_READ)
    for unlike in compared.unlike:
        number = compared.runs.index(unlike.run) + 1
        for one in unlike.differences:
            word = "UNLIKE" if one.refuses else "differs"
            lines += _wrapped(word, shown_in(one.said("in [1]", f"in [{number}]")))
    for remedy in remedies(one for unlike in compared.unlike for one in unlike.differences):
        lines += _wrapped("", remedy)
    for run, rows in compared.missing.items():
        number = compared.runs.index(run) + 1
        lines += _wrapped("not in", f"[{number}]: {', '.join(rows)}")
    shown = None
    for line in compared.lines:
        if line.row != shown:
            shown = line.row
            lines += ["", f"{line.row}" + (f" ({line.unit})" if line.unit != "ns" else "")]
        lines += _line(line, compared)
    lines += ["", *_wrapped("in short", in_short(compared))]
    return "".join(f"{plain(line)}\n" for line in lines)


def in_short(compared: Compared) -> str:
    """How many lines were tested, in how many the runs differ, and why others were not tested."""
    untested = Counter(line.untested for line in compared.lines if line.untested is not None)
    nr_tested = len(compared.lines) - untested.total()
    said = [f"{nr_tested} of {counted(len(compared.lines), 'line')} were tested"]
    if untested:
        reasons = ", ".join(f"{number} {why}" for why, number in untested.items())
        said.append(f"{untested.total()} not: {reasons}")
    return "; ".join(said) + "".join(f". {one}" for one in _found(compared, nr_tested))


def _found(compared: Compared, nr_tested: int) -> Iterator[str]:
    """Sentences on the tested lines, without their full stops."""
    differing = [line for line in compared.lines if line.differ]
    if not nr_tested:
        yield "A test takes the same row and variant in two runs, with two launches in each"
    elif not differing:
        yield "In none of them do the runs differ more than their launches explain"
    else:
        yield f"In {len(differing)} of them the runs differ more than their launches explain"
    of_one_thing = [line for line in differing if not line.other]
    if of_one_thing:
        yield (
            f"In {len(of_one_thing)} of these the pooled interval is too narrow, and the one over"
            " runs is to be believed"
        )
    if nr_others := len(differing) - len(of_one_thing):
        rules = dict.fromkeys(one.thing.rule for line in differing for one in line.other)
        which = "all" if nr_others == len(differing) else nr_others
        yield f"In {which} of these, what was measured differs, too: {', '.join(rules)}"


def _line(line: ComparedLine, compared: Compared) -> Iterator[str]:
    # A tag tells runs apart in as few columns as it can.
    each = [f"[{compared.runs.index(one.run) + 1}] {_interval(one.estimate)}" for one in line.runs]
    if line.pooled is not None and len(line.runs) > 1:
        over = f" of {line.nr_machines} machines" if line.nr_machines > 1 else ""
        each.append(f"pooled{over} {_interval(line.pooled)}")
    if line.differ:
        over_runs = line.over_runs
        each.append("RUNS DIFFER" + (f": over runs {_interval(over_runs)}" if over_runs else ""))
    if line.why_not is not None:
        # What differs in all lines is said once, above them.
        own = "; ".join(one.said() for one in line.other if one.thing.of)
        why_not = own if line.other else line.why_not
        each.append(f"not pooled: {shown_in(why_not)}" if why_not else "not pooled")
    if line.untested is not None:
        each.append(f"not tested: {line.untested}")
    yield from _packed(f"  {shown(line.variant):{NAME}}", each)


def _packed(label: str, parts: Sequence[str]) -> Iterator[str]:
    """Lines with as many parts as fit; no part is cut."""
    text = label
    for part in parts:
        if len(text) + len(part) > width() and text.strip():
            yield text.rstrip()
            text = " " * len(label)
        text += f"{part}   "
    yield text.rstrip()


def _interval(estimate: Estimate) -> str:
    if estimate.low is None or estimate.high is None:
        return f"{fit(estimate.ratio, 5, 3)} [one launch]"
    ratio, low, high = (fit(one, 5, 3) for one in (estimate.ratio, estimate.low, estimate.high))
    return f"{ratio} [{low} .. {high}]"


def _wrapped(label: str, said: str) -> list[str]:
    return textwrap.wrap(f"{label:10}{said}", width(), subsequent_indent=" " * 10)


def to_object(compared: Compared) -> dict[str, Any]:
    """The object that `--json` prints; docs/commands.md describes its fields."""
    return {
        "schema": SCHEMA,
        "experiment": compared.experiment,
        "stage": compared.stage,
        "runs": list(compared.runs),
        "machines": dict(compared.machines),
        "unlike": [
            {
                "run": unlike.run,
                "what": one.what,
                "first": one.a,
                "other": one.b,
                "gravity": one.gravity,
            }
            for unlike in compared.unlike
            for one in unlike.differences
        ],
        "missing": {run: list(rows) for run, rows in compared.missing.items()},
        "lines": [_line_object(line) for line in compared.lines],
    }


def _line_object(line: ComparedLine) -> dict[str, Any]:
    return {
        "row": line.row,
        "variant": line.variant,
        "unit": line.unit,
        "runs": [
            {"run": one.run, "machine": one.machine, **estimate_object(one.estimate)}
            for one in line.runs
        ],
        "pooled": None if line.pooled is None else estimate_object(line.pooled),
        "not_pooled": line.why_not,
        "not_tested": line.untested,
        "nr_machines": line.nr_machines,
        "over_runs": None if line.over_runs is None else estimate_object(line.over_runs),
        "chance": rounded(line.chance),
        "differ": line.differ,
    }


def estimate_object(estimate: Estimate) -> dict[str, Any]:
    """An estimate as an object of `--json`; `replicates` counts what it is over."""
    return {
        "ratio": rounded(estimate.ratio),
        "low": rounded(estimate.low),
        "high": rounded(estimate.high),
        "replicates": len(estimate.per_launch),
    }


def rounded(value: float | None) -> float | None:
    """The value with DIGITS significant digits, or None."""
    return None if value is None else float(f"{value:.{DIGITS}g}")
