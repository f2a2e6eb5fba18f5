# SPDX-License-Identifier: GPL-2.0-only
"""The table of a merge in plain ASCII with at most 100 columns, made from the merge alone."""

import textwrap
from collections.abc import Iterator

from ream.counted import counted
from ream.experiment import shown
from ream.fleet.merge import Merge, Merged, MergedRow, Missing
from ream.measure.statistics import Estimate
from ream.report.numbers import fit
from ream.width import table_line, width

LABEL = 10
NAME = 18
WHERE = 14
LEAST_P = 0.0001
"""Smaller p-values are printed as less than this."""

READ = (
    "ratio = variant / before, lower is better; of a machine with its 95 % interval over its "
    "launches, of all with one over machines: what it takes to speak of a machine that is not "
    "among them. Only ratios are pooled, each machine with the same weight."
)
READ_ONE = (
    "ratio = variant / before, lower is better; of the ONE machine, with its 95 % interval over "
    "launches: none can be over machines, so it says nothing of another one."
)
FEW = (
    "an interval over two machines is wide, however many their launches: a third machine narrows it"
)
DOUBTFUL = "may be biased; `ream report` of each says by what"


def render(merge: Merge, *, again: str) -> str:
    """The complete table, ending in a newline; again: the command that measures missing cells."""
    blocks = [list(_head(merge)), *(list(_row(row)) for row in merge.rows)]
    blocks.append([*_left_out(merge)])
    text = "\n\n".join("\n".join(block) for block in blocks if block)
    # The command is neither wrapped nor escaped: it is to be pasted.
    command = f"{'again':<{LABEL}}{again}\n" if again else ""
    return text.encode("ascii", "backslashreplace").decode() + "\n" + command


def _head(merge: Merge) -> Iterator[str]:
    nr_records = sum(machine.nr_records for machine in merge.machines)
    yield f"ream merge: {counted(nr_records, 'record')}, {counted(len(merge.machines), 'machine')}"
    for machine in merge.machines:
        known = "" if machine.line in machine.key else f" ({machine.key})"
        text = f"{machine.letter}: {machine.line}{known}, {counted(machine.nr_records, 'record')}"
        yield from _said("machine", text)
    yield from _said("read", READ if len(merge.machines) > 1 else READ_ONE)
    if len(merge.machines) == 2:  # noqa: PLR2004 # one degree of freedom
        yield from _said("note", FEW)
    for machine in merge.machines:
        if machine.nr_doubtful:
            count = f"{machine.nr_doubtful} of {counted(machine.nr_records, 'record')}"
            yield from _said("doubt", f"{machine.letter}: {count} {DOUBTFUL}")
    for note in merge.notes:
        yield from _said("note", note)


def _row(row: MergedRow) -> Iterator[str]:
    yield from textwrap.wrap(f"{row.experiment} {row.stage}, {row.row}: {row.title}", width())
    if not row.variants:
        yield "  nothing is measured beside it that it could be a ratio to"
        return
    yield from table_line(
        f"  {'':<{NAME}}", [f"{'':<{WHERE}}launches", f"  {'ratio [low .. high]':<22}"]
    )
    for variant in row.variants:
        yield from _variant(variant)


def _variant(one: Merged) -> Iterator[str]:
    name = shown(one.variant)
    for letter, estimate in one.by_machine.items():
        yield from _line(name, letter, len(estimate.per_launch), _interval(estimate))
        name = ""
    if one.over == "launches":
        return
    nr_launches = sum(len(its.per_launch) for its in one.by_machine.values())
    yield from _line("", f"all {len(one.by_machine)}", nr_launches, _interval(one.whole))
    indent = " " * (NAME + 2)
    yield from textwrap.wrap(
        _heterogeneity(one), width(), initial_indent=indent, subsequent_indent=indent
    )


def _heterogeneity(one: Merged) -> str:
    if one.alike is None:
        return "whether machines differ cannot be said: one launch of a machine has no spread"
    if one.differ:
        chance = f"p {fit(one.alike, 6, 4)}" if one.alike >= LEAST_P else f"p < {LEAST_P}"
        return f"the machines DIFFER more than their launches explain ({chance} by chance)"
    return f"the machines differ no more than their launches explain (p {fit(one.alike, 4)})"


def _line(name: str, where: str, launches: int, ratio: str) -> Iterator[str]:
    cells = (f"{where:<{WHERE}}{launches:>8}", f"  {ratio:<22}")
    yield from table_line(f"  {name:<{NAME}}", cells)


def _interval(estimate: Estimate) -> str:
    ratio, low, high = (fit(n, 5, 3) for n in (estimate.ratio, estimate.low, estimate.high))
    return f"{ratio} [{low} .. {high}]"


def _left_out(merge: Merge) -> Iterator[str]:
    for one in merge.damaged:
        yield from _said("damaged", f"left out: {one.fault}")
    if merge.planned is None:
        return
    nr_done = merge.planned - len(merge.missing)
    yield from _said("plan", f"{nr_done} of {counted(merge.planned, 'cell')} have their records")
    for missing in merge.missing:
        yield from _said("missing", _missing(missing))


def _missing(one: Missing) -> str:
    text = f"{one.cell}: {one.experiment} {one.stage}, {one.row}"
    if one.repeat:
        text += f", repetition {one.repeat + 1}"
    if one.wanted > 1:
        text += f": from {one.done} of {counted(one.wanted, 'machine')}"
    return text


def _said(label: str, text: str) -> Iterator[str]:
    lines = textwrap.wrap(text, width() - LABEL, break_long_words=False, break_on_hyphens=False)
    for number, line in enumerate(lines or [""]):
        yield f"{label if number == 0 else '':<{LABEL}}{line}"
