# SPDX-License-Identifier: GPL-2.0-only
"""Renders a judgement on one screen: a sentence, the rows with regressions first, the reasons."""

import shlex
import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from ream.counted import counted
from ream.judge.judgement import (
    COSTS,
    DIFFERS,
    WEIGHED,
    Finding,
    Judgement,
    Operation,
    Outcome,
)
from ream.judge.kept import quoted
from ream.judge.question import Question
from ream.judge.reach import shortened
from ream.judge.unexamined import unexamined, unexecuted
from ream.judge.words import OF_OUTCOME, before, in_a_word, locked, sentence, signed
from ream.kernel.variant import try_to_apply
from ream.plain import plain
from ream.report.contract import Ratio
from ream.report.counts_table import SHORT
from ream.report.numbers import interval
from ream.report.sensitivity import per_cent
from ream.report.words import explained
from ream.stage.hosted import hosting
from ream.width import width

MOST_ROWS = 14
"""The most rows in the table. The others are counted, and --json has all."""
LEAST_EACH = 2
"""Rows of each outcome that the table shows at least, if there are as many."""
MOST_STEPS = 15
"""Steps of the longest program that a page prints although it shows no fault."""
MOST_FUNCTIONS = 2
LEAST_WHERE = 16
"""Least width for functions in the table, in columns."""
LABEL = 11
NAME, TIME, RATIO, SAYS, CHANGE, LOCKED = 20, 9, 22, 12, 10, 7

SHORTEST: Mapping[Outcome, str] = {
    "more": "more", "mixed": "mixed", "same": "same", "fewer": "fewer",
}  # fmt: skip
"""Outcomes in a column of the table, whose heading names the quantity."""

SHORT_COSTS: Mapping[str, str] = {
    **{name: name for name in COSTS},
    "instructions": "instr", "lines_read": "lines", "lines_written": "lines",
}  # fmt: skip
"""Names of quantities in a column of the table."""


def planned(asked: Question) -> Iterator[str]:
    """Yield what a judgement would do; the series is applied, but nothing is built.

    Raises DoesNotApply if it does not.
    """
    patches = asked.series.patches
    label = try_to_apply(patches, asked.tree, cache=asked.cache)
    applies = f"to {label}" if label else "not tried: the kernel source is not here yet"
    yield from _said("series" if patches else "upgrade", plain(asked.series.name))
    for number, patch in enumerate(patches, 1):
        yield from _said("" if number > 1 else "patches", f"{number}. {plain(patch.subject)}")
    if patches:
        yield from _said("applies", applies)
    if patches:
        yield from _said("first", "all of mm/ with and without it; programs of what it changes")
    known = [one.name for one in hosting()]
    if asked.quick:
        return
    yield from _said("compile", f"what {', '.join(known)} host, with and without the series")
    yield from _said("verify", "rows that execute what differs; count them, if QEMU can here")
    if asked.guests:
        yield from _said("boot", "debug kernels with and without it; the kernel's own tests there")
    yield from _said("time", f"them, those that are affected most first, for {asked.minutes:g} min")
    yield from _said("records", str(asked.runs))


def render(its: Judgement) -> str:
    """Return the page, ending in a newline."""
    return "\n".join(map(plain, _lines(its))) + "\n"


def to_object(its: Judgement) -> dict[str, Any]:
    """Return the object of --json with the page's sentences; docs/commands.md documents it."""
    words = {
        "verdict": in_a_word(its),
        "sentence": sentence(its),
        "not_examined": [*unexamined(its)],
    }
    return {**its.to_object(), **words}


def _lines(its: Judgement) -> Iterator[str]:
    yield from _head(its)
    if its.wrong is not None:
        for line in its.wrong.lines[1:]:
            yield from _said("", line)
        yield from _to_run(its, its.wrong.finding)
    if its.reach and its.reach.nearest is not None:
        yield from _said("nearest", its.reach.nearest)
    for name, why in its.unhosted.items():
        yield from _said("not run", f"{name}: {why}")
    if its.operations:
        yield from _table(its)
    yield from _patches(its)
    for label, texts in (
        ("its table", its.own_tables),
        ("guest", its.guests),
        ("control", its.controls),
        ("note", its.notes),
    ):
        for text in texts:
            yield from _said(label, text)
    if its.records:
        its_last = f"`ream report {its.records[-1]} --rows{_of_runs(its)}` has the times"
        yield from _said("records", f"{', '.join(its.records)}; {its_last}")
    if unseen := [*unexamined(its)]:
        yield from _said("not seen", "; ".join(unseen))


def _program(steps: str | None) -> Iterator[str]:
    """Yield a program that behaves differently with the series, if it is short."""
    lines = (steps or "").splitlines()
    if 0 < len(lines) <= MOST_STEPS:
        yield from _said("", "the program:")
        for line in lines:
            yield from _said("", f"  {line}")


def _of_runs(its: Judgement) -> str:
    """Return the option for the folder of the records, if the judgement was given one."""
    words = [part for word in shlex.split(its.command) for part in word.split("=", 1)]
    given = (after for word, after in pairwise(words) if word in ("-o", "--output"))
    return next((f" --runs {quoted(folder)}" for folder in given), "")


def _to_run(its: Judgement, found: Finding) -> Iterator[str]:
    """Yield the command that runs a saved program, with line continuations for pasting."""
    if (command := its.programs.get(found.id)) is None:
        return
    label, lines = "to run it", [""]
    for word in map(quoted, shlex.split(command)):
        if lines[-1] and LABEL + len(f"{lines[-1]} {word} \\") > width():
            lines.append(f"  {word}")
        else:
            lines[-1] += f" {word}" if lines[-1] else word
    for line in lines[:-1]:
        yield f"{label:<{LABEL}}{line} \\"
        label = ""
    yield f"{label:<{LABEL}}{lines[-1]}"


def _head(its: Judgement) -> Iterator[str]:
    if its.to is None:
        patches = counted(len(its.subjects), "patch", "patches")
        yield from _said("series", f"{its.series}: {patches}, on {its.tree}")
    else:
        yield from _said("upgrade", f"from {its.tree} to {its.to}")
    yield from _said("machine", its.machine)
    yield from _said("judgement", sentence(its))
    if its.whole is not None:
        yield from _said("all of mm/", its.whole.words())
        for text in unexecuted(its.whole):
            yield from _said("", text)
        if its.whole.differs:
            yield from _said("", its.whole.differs)
            yield from _program(its.whole.differing)
            for one in its.findings:
                if one.rule == DIFFERS:
                    yield from _to_run(its, one)
    if its.reach is None:
        return
    yield from _said("reach", its.reach.sentence())
    for text in its.reach.layout:
        yield from _said("layout", f"{text}; whatever uses it is compiled anew")
    before, after = its.reach.text_bytes
    if before or after:
        size = f"{after - before:+,} bytes of code in the hosted objects that differ ({before:,})"
        yield from _said("size", size)


def _said(label: str, text: str) -> Iterator[str]:
    yield from textwrap.wrap(
        text,
        width(),
        initial_indent=f"{label:<{LABEL}}",
        subsequent_indent=" " * LABEL,
        break_on_hyphens=False,
    )


# --- The table -------------------------------------------------------------------------


def _table(its: Judgement) -> Iterator[str]:
    shown, left = _shown([*its.ordered()])
    yield ""
    ratio, narrow = "time, ratio [95 %]", f"{'operation':<{NAME}} {{}}"
    rest = f"{ratio:<{RATIO}} {'found':<{SAYS}}{'counts':>{CHANGE}}{'locked':>{LOCKED}}"
    room = width() - len(narrow.format(rest))
    is_where = room > LEAST_WHERE
    # This column is the first to be dropped.
    has_times = any(map(before, shown)) and room - TIME - 1 >= is_where * LEAST_WHERE
    head = narrow.format(f"{'before':>{TIME}} {rest}" if has_times else rest)
    yield f"{head}  where" if is_where else head
    for one in shown:
        yield from _row(one, has_times=has_times)
    if left:
        numbers = [(OF_OUTCOME[o], sum(one.outcome == o for one in left)) for o in OF_OUTCOME]
        each = ", ".join(f"{number} {what}" for what, number in numbers if number)
        said = f"and {counted(len(left), 'row')} more: {each}; --json has all of them"
        yield from textwrap.wrap(said, width(), break_on_hyphens=False)
    yield from textwrap.wrap(_legend(its), width(), break_on_hyphens=False)
    yield ""


def _legend(its: Judgement) -> str:
    """Explain the columns to a reader who sees them for the first time."""
    pers = dict.fromkeys(one.counted.per for one in its.operations if one.counted is not None)
    timed = [one.timed for one in its.operations if one.timed is not None]
    times = (
        "Time: with the series over that without it; above 1 is slower. It decides where a row is"
        " slower, equal (not changed by more than that) or faster. Undecided: not told from the"
        " noise of two copies of one kernel, or the time is against the counts."
    )
    each = dict.fromkeys(its.per for its in timed if its.before_ns is not None)
    times += f" Before: without it, for each {' or '.join(each)}." if each else ""
    words = explained("count", "locked", "regression")
    if not pers:
        return f"{times} {words}"
    counts = (
        "Counts: change of the quantity that is named beside more, mixed (and less of others) or"
        " fewer, and that decides there; else of the instructions executed. Same: no quantity"
        " changes by more than 0.1 %. Locked, and the numbers in where: locked operations and"
        f" instructions more for each {' or '.join(pers)}."
    )
    said = f"{times} {counts}" if timed else counts
    return f"{said} {words}"


def shown(its: Judgement) -> list[Operation]:
    """Return the rows that the table shows."""
    return _shown([*its.ordered()])[0]


def _shown(ordered: Sequence[Operation]) -> tuple[list[Operation], list[Operation]]:
    """Return the rows that the table shows and those that it leaves out, both in the same order.

    The table shows the first LEAST_EACH of every outcome, so that many rows that are a little worse
    do not hide those that are much better. It shows all that are slower, up to MOST_ROWS.
    """
    of_outcome = Counter[Outcome]()
    first, others = set[int](), list[int]()
    for at, one in enumerate(ordered):
        of_outcome[one.outcome] += 1
        if of_outcome[one.outcome] <= (MOST_ROWS if one.outcome == "slower" else LEAST_EACH):
            first.add(at)
        else:
            others.append(at)
    chosen = first.union(others[: max(0, MOST_ROWS - len(first))])
    shown = [one for at, one in enumerate(ordered) if at in chosen]
    return shown, [one for at, one in enumerate(ordered) if at not in chosen]


def _row(one: Operation, *, has_times: bool) -> Iterator[str]:
    name = one.row
    if len(name) > NAME:
        yield name
        name = ""
    time = "" if one.timed is None else interval(_ratio(one))
    time = f"{before(one):>{TIME}} {time}" if has_times else time
    line = f"{name:<{NAME}} {time:<{RATIO + has_times * (TIME + 1)}} {_says(one):<{SAYS}}"
    counts = ("", "") if one.counted is None else (_telling(one), locked(one))
    line += f"{counts[0]:>{CHANGE}}{counts[1]:>{LOCKED}}"
    yield f"{line}  {_where(one, width() - len(line) - 2)}".rstrip()


def _ratio(one: Operation) -> Ratio:
    assert one.timed is not None
    return Ratio(ratio=one.timed.ratio, low=one.timed.low, high=one.timed.high)


def _says(one: Operation) -> str:
    """Return the outcome for a column, with the bound of an equal time or the deciding quantity."""
    timed = one.timed
    if timed is not None and one.outcome == "equal" and timed.within is not None:
        return f"equal {per_cent(timed.within - 1)}"
    said = SHORTEST.get(one.outcome, OF_OUTCOME[one.outcome])
    by = one.decided_by
    return said if by not in COSTS else f"{said} {SHORT_COSTS[by]}"


def _telling(one: Operation) -> str:
    """Return the change of the quantity that decided a row, or else of the instructions."""
    assert one.counted is not None
    by = one.decided_by
    return signed(one.counted.share("instructions" if by not in COSTS else by))


LEAST_TENTHS = 0.05
"""The smallest number that one decimal place shows."""


def _where(one: Operation, room: int) -> str:
    """Return the functions that execute more or less, as many as fit into `room` columns."""
    text = ""
    for name, numbers in one.functions[:MOST_FUNCTIONS]:
        number = numbers.get("instructions", 0.0)
        longer = f"{text}{', ' if text else ''}{name}()"
        said = f"{number:+.1f}" if abs(number) >= LEAST_TENTHS else f"{number:+.1g}"
        text = next((one for one in (f"{longer} {said}", longer) if len(one) <= room), text)
    return text


# --- Patches ---------------------------------------------------------------------------


def _patches(its: Judgement) -> Iterator[str]:
    """Yield lines for each patch: what it changes in the rows that it affects most."""
    steps: dict[int, list[tuple[float, str]]] = {}
    subjects: dict[int, str] = {}
    for one in its.operations:
        for step in one.steps:
            subjects[step.number] = step.subject
            own = steps.setdefault(step.number, [])
            if step.changes:
                size = sum(abs(step.changes.get(name, 0.0)) for name in WEIGHED)
                own.append((size, f"{one.row} {_numbers(step.changes)}"))
    for number in sorted(steps):
        largest = [text for _, text in sorted(steps[number], reverse=True)]
        said = shortened(largest[:MOST_FUNCTIONS]) or "all counts are the same"
        rows = f" in {counted(len(largest), 'row')}, most in" if largest else ":"
        yield from _said(f"patch {number}", f"{subjects[number]}{rows} {said}")


def _numbers(
    changes: Mapping[str, float], names: Sequence[str] = ("instructions", "locked")
) -> str:
    said = [f"{changes[name]:+.2f} {SHORT[name]}" for name in names if changes.get(name)]
    return " ".join(said) or "no instructions"
