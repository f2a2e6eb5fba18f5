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
from ream.report.reasons import Reasons
from ream.report.table import MOST_WHOLE
from ream.report.words import explained
from ream.width import NARROW_INDENT, ROOMY, table_line, width

DIGITS = 5
NAME = 20
RATIO = 8
"""Width in columns of a run's ratio."""

HOW_TO_READ = (
    "ratio = variant / before, or of a given series / the tree it stands on, with its 95 % "
    "interval over launches, lower is better; pooled: the launches of all runs of a machine "
    "together, and over machines with machines as the replicates; of counted instructions, from "
    "the least to the greatest round. DIFFER: by more than their launches explain. "
    + explained("interval", "launch", "pooled")
)


def text(compared: Compared) -> str:
    """All of the comparison for people: plain ASCII, at most 100 columns where names allow."""
    lines = [*_found_first(compared), *_about(compared)]
    shown = None
    for line in compared.lines:
        if line.row != shown:
            shown = line.row
            lines += ["", f"{line.row}" + (f" ({line.unit})" if line.unit != "ns" else "")]
        lines += _line(line, compared)
    return "".join(f"{plain(line)}\n" for line in lines)


def overview(compared: Compared) -> str:
    """The same in a table: a line for each row and variant, and each reason once, below it.

    Where rows are few, it is all of the comparison.
    """
    nr_rows = len({line.row for line in compared.lines})
    if nr_rows <= MOST_WHOLE:
        return text(compared)
    more = f"--rows prints {counted(nr_rows, 'row')} one by one, with the interval of each run."
    lines = [*_found_first(compared), "", *_table(compared), "", *_about(compared), ""]
    lines += textwrap.wrap(more, width(), break_on_hyphens=False)
    return "".join(f"{plain(line)}\n" for line in lines)


def _found_first(compared: Compared) -> Iterator[str]:
    """Which runs are compared, and what was found."""
    yield f"ream compare: {compared.experiment}, {compared.stage} stage"
    yield from (f"  [{number}] {run}" for number, run in enumerate(compared.runs, start=1))
    yield from _wrapped("in short", in_short(compared))


def _about(compared: Compared) -> Iterator[str]:
    for label, said in about(compared):
        yield from _wrapped(label, said)


def about(compared: Compared) -> Iterator[tuple[str, str]]:
    """Labelled lines: how the runs are unlike, and how the ratios are read."""
    for unlike in compared.unlike:
        number = compared.runs.index(unlike.run) + 1
        for one in unlike.differences:
            word = "UNLIKE" if one.refuses else "differs"
            yield word, shown_in(one.said("in [1]", f"in [{number}]"))
    for remedy in remedies(one for unlike in compared.unlike for one in unlike.differences):
        yield "", remedy
    for run, rows in compared.missing.items():
        number = compared.runs.index(run) + 1
        yield "not in", f"[{number}]: {', '.join(rows)}"
    yield "read", HOW_TO_READ


def _table(compared: Compared) -> Iterator[str]:
    """The ratio of each run and the pooled one, and letters for why a line lacks one."""
    reasons = Reasons()
    cells = [[f"[{number + 1}]" for number in range(len(compared.runs))] + ["pooled"]]
    names, row = [("row", "variant")], ""
    for line in compared.lines:
        names.append(("" if line.row == row else line.row, shown(line.variant)))
        row = line.row
        of_run = {one.run: fit(one.estimate.ratio, 5, 3) for one in line.runs}
        cells.append([*(of_run.get(run, "-") for run in compared.runs), _last(line, reasons)])
    wide, widest = (max(map(len, its)) + 2 for its in zip(*names, strict=True))
    for (name, of), (*ratios, last) in zip(names, cells, strict=True):
        label = f"{name:<{wide}}{of:<{widest}}"
        yield from table_line(label, [*(f"{one:<{RATIO}}" for one in ratios), last])
    for letter, reason, _ in reasons.found():
        yield from _wrapped(letter, reason)


def _last(line: ComparedLine, reasons: "Reasons") -> str:
    """The pooled ratio, or that there is none, and why."""
    words = []
    if line.pooled is not None and len(line.runs) > 1:
        words.append(interval(line.pooled))
    if line.differ:
        words.append("DIFFER")
    why = [f"not pooled: {own}" if (own := _why_not_pooled(line)) else ""]
    why += [f"not tested: {line.untested}" if line.untested is not None else ""]
    words += [reasons.letter(one) for one in why if one]
    return " ".join(words) or "-"


def _why_not_pooled(line: ComparedLine) -> str:
    """What differs in this line; empty if it is pooled, or for what is said above all lines."""
    own = "; ".join(one.said() for one in line.other if one.thing.of)
    return shown_in(own if line.other else line.why_not or "")


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
    each = [f"[{compared.runs.index(one.run) + 1}] {interval(one.estimate)}" for one in line.runs]
    if line.pooled is not None and len(line.runs) > 1:
        over = f" of {line.nr_machines} machines" if line.nr_machines > 1 else ""
        each.append(f"pooled{over} {interval(line.pooled)}")
    yield from _packed(f"  {shown(line.variant):{NAME}}", [*each, *remarks(line)])


def remarks(line: ComparedLine) -> Iterator[str]:
    """That its runs differ, and why it is not pooled or not tested."""
    if line.differ:
        over_runs = line.over_runs
        yield "RUNS DIFFER" + (f": over runs {interval(over_runs)}" if over_runs else "")
    if line.why_not is not None:
        why_not = _why_not_pooled(line)
        yield f"not pooled: {why_not}" if why_not else "not pooled"
    if line.untested is not None:
        yield f"not tested: {line.untested}"


def _packed(label: str, parts: Sequence[str]) -> Iterator[str]:
    """Lines with as many parts as fit; a part is cut only where it is longer than a line."""
    text, indent = label, " " * (len(label) if width() >= ROOMY else NARROW_INDENT)
    for part in parts:
        if len(text) + len(part) > width() and text.strip():
            yield text.rstrip()
            text = indent
        text += f"{part}   "
        if len(text.rstrip()) > width():
            *cut, text = textwrap.wrap(text.rstrip(), width(), subsequent_indent=indent)
            yield from cut
            text += "   "
    yield text.rstrip()


def interval(estimate: Estimate) -> str:
    """A ratio with its interval over launches."""
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
