# SPDX-License-Identifier: GPL-2.0-only
"""A judgement on one screen: a sentence, the operations with regressions first, and the reasons."""

import math
import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ream.counted import counted
from ream.errors import Inconclusive
from ream.judge.judgement import (
    BY_TIME,
    COSTS,
    LITTLE,
    TIME,
    WEIGHED,
    Judgement,
    Operation,
    Outcome,
)
from ream.judge.question import Question
from ream.judge.reach import shortened
from ream.judge.unexamined import unexamined, unexecuted
from ream.kernel.variant import try_to_apply
from ream.plain import plain
from ream.report.contract import Ratio
from ream.report.counts_table import QUANTITIES, SHORT
from ream.report.numbers import fit, interval
from ream.report.sensitivity import per_cent
from ream.report.words import explained
from ream.stage.hosted import hosting
from ream.width import width

MOST_ROWS = 14
"""In the table; of the others there is their number, and --json has them all."""
LEAST_EACH = 2
"""Rows of each outcome that the table has, if there are as many."""
MOST_USABLE = 2.0
"""Where no smaller ratio would be found, the time of a row says nothing of use."""
MOST_STEPS = 15
"""The longest program that a page prints though nothing is wrong in it."""
MOST_FUNCTIONS = 2
LEAST_WHERE = 16
"""Columns that functions need in the table."""
LABEL = 11
NAME, RATIO, SAYS, CHANGE, LOCKED = 20, 22, 12, 10, 7

OF_OUTCOME: Mapping[Outcome, str] = {
    "slower": "slower",
    "more": "executes more",
    "mixed": "mixed counts",
    "undecided": "undecided",
    "equal": "equal time",
    "same": "the same counts",
    "fewer": "executes fewer",
    "faster": "faster",
}


SAID: tuple[Outcome, ...] = (
    *("slower", "more", "faster", "fewer", "equal", "same", "mixed", "undecided"),
)
"""In the order of the sentence."""
WITHOUT_SIZE = ("equal", "same", "undecided")
A_LITTLE: Mapping[Outcome, str] = {"slower": "a little slower", "more": "executes a little more"}
"""Where the largest loss is LITTLE."""

SHORTEST: Mapping[Outcome, str] = {
    "more": "more", "mixed": "mixed", "same": "same", "fewer": "fewer",
}  # fmt: skip
"""In a column of the table, where a heading says of what."""

SHORT_COSTS: Mapping[str, str] = {
    **{name: name for name in COSTS},
    "instructions": "instr", "lines_read": "lines", "lines_written": "lines",
}  # fmt: skip
"""Quantities in a column of the table."""


def sentence(its: Judgement) -> str:
    """The judgement in words: what was found, in how many rows, and what decided them."""
    return " ".join(plain(part) for part in _sentences(its))


def _sentences(its: Judgement) -> Iterator[str]:
    if its.wrong is not None:
        yield f"WRONG: {its.wrong.lines[0]}."
        if its.wrong.first_patch is not None:
            number, subject = its.wrong.first_patch
            yield f"It begins with patch {number} of {len(its.subjects)}, {subject!r}."
        return
    if its.reach is None:
        yield f"{verdict(its)}: {_why_none(its)}."
        return
    if its.reach.only_moves:
        moved = counted(len(its.reach.moved), "hosted function")
        yield f"Undecided: it moves {moved} to other objects and changes none."
        yield "Nothing was measured."
        return
    if not its.reach.reached:
        yield f"{verdict(its)}: {_why_none(its)}, so nothing was measured."
        return
    if not its.operations:
        yield "Undecided: nothing that it reaches could be run."
        return
    yield f"{verdict(its)}: {'; '.join(_found(its))}."
    yield "Memory was verified after every sample."
    for number, subject, what in its.wrong_steps:
        yield f"Up to patch {number}, {subject!r}, it is WRONG alone: {what}."
    if its.exit_code == Inconclusive.exit_code and its.unshown:
        yield _unshown(its)
    if (sees := _sees(its)) is not None:
        yield sees


def _why_none(its: Judgement) -> str:
    """Why there is nothing to measure of a series that reaches nothing."""
    if its.changes_nothing:
        return "each file that it touches compiles to the same code and data with it"
    if its.reach is None:
        found, whole = "programs found nothing wrong", its.whole
        if whole is not None and not whole.functions:
            found = "it changes no function that is hosted"
        elif whole is not None and whole.misses_all:
            found = "no program executed a line that it changes"
        elif whole is not None and whole.nr_entered:
            found = "programs that execute it found nothing wrong"
        return f"{found}, and no row was asked for (--quick)"
    if not its.reach.same or (its.whole is not None and its.whole.functions):
        return "no row executes anything that it changes"
    if not its.reach.elsewhere:
        return "every hosted object has the same code and data with it"
    which = shortened(its.reach.elsewhere)
    return f"no hosted object changes, and it changes code that is not hosted, in {which}"


def verdict(its: Judgement) -> str:
    """The judgement in a few words, which weigh what is lost against what is gained."""
    if its.wrong is not None:
        return "wrong"
    if its.is_little:
        said = "Mostly faster" if its.having("faster") else "Mostly fewer are executed"
        return f"{said}, but undecided" if its.exit_code == Inconclusive.exit_code else said
    if its.loss:
        return _loss(its)
    if its.changes_nothing:
        return "Nothing changes"
    if its.exit_code:
        return f"Undecided{_why_or_where(its)}"
    return "No regression was found"


def _loss(its: Judgement) -> str:
    what = "small regression" if its.loss <= LITTLE else "regression"
    nr_slower, nr_faster = len(its.having("slower")), len(its.having("faster"))
    if nr_faster > nr_slower > 0:
        return f"Faster in most rows that time decides, but a {what}"
    return f"A {what}" if nr_slower else f"A {what} in what is executed"


def _why_or_where(its: Judgement) -> str:
    """Say why a judgement is undecided or in how many rows; nothing if something else is open."""
    if its.are_counts_misleading:
        return ", since counts and times disagree"
    nr, nr_rows = len(its.unshown), len(its.operations)
    is_all = its.unhosted or its.having("undecided") or its.having("mixed") or nr == nr_rows
    return "" if is_all or not nr else f" in {nr} of {counted(nr_rows, 'row')}"


def _found(its: Judgement) -> Iterator[str]:
    timed = False
    for outcome in SAID:
        if not (rows := its.having(outcome)):
            continue
        # Rows that times decide are told apart: the largest count may be one of theirs.
        other = "other " if timed and outcome not in BY_TIME.values() else ""
        timed = timed or outcome in BY_TIME.values()
        if outcome in WITHOUT_SIZE:
            number = counted(len(rows), f"{other}row")
            yield f"{OF_OUTCOME[outcome]}{_within(rows)} in {number}"
            continue
        by: dict[str | None, list[Operation]] = {}
        for one in rows:
            by.setdefault(one.decided_by, []).append(one)
        for quantity, some in by.items():
            yield _decided(outcome, quantity, some, other)


def _decided(outcome: Outcome, by: str | None, rows: Sequence[Operation], other: str) -> str:
    """Rows of one outcome that one quantity decided, or their time, and the largest of them."""
    number = counted(len(rows), f"{other}row")
    most = max(rows, key=lambda one: _share_of(one, by))
    of = "" if by is None or by == TIME else f" {QUANTITIES[by]}"
    if outcome == "mixed":
        verb = f"executes more{of} and less of others"
    elif outcome in A_LITTLE and max(one.loss for one in rows) <= LITTLE:
        at_most = "at most " if len(rows) > 1 else ""
        return f"{A_LITTLE[outcome]}{of} in {number}, {at_most}{_size(most)} ({most.row})"
    else:
        verb = f"{OF_OUTCOME[outcome]}{of}"
    how = "most in " if len(rows) > 1 else ""
    return f"{verb} in {number}, {how}{most.row} ({_size(most)})"


def _share_of(one: Operation, by: str | None) -> float:
    """How large the change is that decided a row."""
    if by is None or by == TIME or one.counted is None:
        return one.size
    return abs(one.counted.share(by))


def _within(rows: Sequence[Operation]) -> str:
    """Within which bounds times are equal, or counts the same; nothing if they do not differ."""
    bounds = [bound for one in rows if (bound := margin(one))]
    if not bounds:
        return ""
    low, high = per_cent(min(bounds)), per_cent(max(bounds))
    return f" within {high}" if low == high else f" within {low} to {high}"


def margin(one: Operation) -> float | None:
    """The bound, a share, within which a row is equal or the same; None of other outcomes."""
    if one.outcome == "equal" and one.timed is not None and one.timed.within is not None:
        return one.timed.within - 1
    return one.counted.margin if one.outcome == "same" and one.counted is not None else None


def decided(one: Operation) -> str:
    """What decided a row, and by how much; empty if it is undecided."""
    by = one.decided_by
    if by in QUANTITIES and one.counted is not None:
        return f"{_share(one.counted.share(by))} {QUANTITIES[by]}"
    bound = "" if by == TIME else _within([one])
    return "" if by is None else f"{by}{bound}"


def _size(one: Operation) -> str:
    if one.timed is not None and one.outcome in ("slower", "faster"):
        factor = max(one.timed.ratio, 1 / one.timed.ratio)
        return f"{fit(factor, 6, 3)}x"
    if one.counted is None:
        return "?"
    by = one.decided_by or WEIGHED[0]
    said = [locked(one) if by == "locked" else _share(one.counted.share(by))]
    said += [] if by == "instructions" else [f"{change(one)} instructions"]
    said += [] if by == "locked" else [f"{locked(one)} locked"]
    if one.outcome == "mixed":
        name, share = one.counted.most(-1)
        said += [f"{_share(share)} {QUANTITIES[name]}"] if name not in WEIGHED else []
    return ", ".join(said)


def _unshown(its: Judgement) -> str:
    """Why it is undecided though no row is."""
    rows = its.unshown
    which = shortened([one.row for one in rows])
    number = counted(len(rows), "row")
    return (
        f"In {number} ({which}) a loss may have been missed: a copy that was slowed on purpose was"
        " not found slower there, and counts alone do not decide."
    )


def _sees(its: Judgement) -> str | None:
    sizes = [
        (one.timed.smallest_effect, one.row)
        for one in its.operations
        if one.timed is not None and one.timed.smallest_effect
    ]
    if not sizes:
        names = {one.experiment for one in its.operations if one.counted}
        how = ", ".join(f"`ream run {name} --series PATCH`" for name in sorted(names))
        return f"Nothing was timed; {how} times rows." if names else None
    nr_rows, usable = len(its.operations), [one for one in sizes if one[0] <= MOST_USABLE]
    timed = f"{len(sizes)} of {counted(nr_rows, 'row')} timed"
    timed += "" if len(sizes) == nr_rows else ", and more of them with more --minutes"
    noisy = len(sizes) - len(usable)
    if noisy:
        timed += f", {noisy} too noisily to find that {'it takes' if noisy == 1 else 'they take'}"
        timed += " twice as long"
    if not usable:
        return f"{timed}."
    (low, at_low), (high, at_high) = min(usable), max(usable)
    rest = "" if len(usable) == 1 else f" to {per_cent(high - 1)} ({at_high})"
    return f"{timed}: an effect of {per_cent(low - 1)} ({at_low}){rest} is found nine times of ten."


def planned(asked: Question) -> Iterator[str]:
    """What would be done, and whether the series applies; nothing is built.

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
    """The page, ending in a newline."""
    return "\n".join(map(plain, _lines(its))) + "\n"


def to_object(its: Judgement) -> dict[str, Any]:
    """The object of --json, with what the page says in words; docs/commands.md names its fields."""
    words = {"sentence": sentence(its), "not_examined": [*unexamined(its)]}
    return {**its.to_object(), **words}


def _lines(its: Judgement) -> Iterator[str]:
    yield from _head(its)
    if its.wrong is not None:
        for line in its.wrong.lines[1:]:
            yield from _said("", line)
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
        its_last = f"`ream report {its.records[-1]} --rows` has the times"
        yield from _said("records", f"{', '.join(its.records)}; {its_last}")
    if unseen := [*unexamined(its)]:
        yield from _said("not seen", "; ".join(unseen))


def _program(steps: str | None) -> Iterator[str]:
    """A program that does something else with the series than without it, if it is short."""
    lines = (steps or "").splitlines()
    if 0 < len(lines) <= MOST_STEPS:
        yield from _said("", "the program (`ream program FILE --series PATCH --against-base`):")
        for line in lines:
            yield from _said("", f"  {line}")


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
    head = f"{'operation':<{NAME}} {'time, ratio [95 %]':<{RATIO}} {'found':<{SAYS}}"
    head = f"{head}{'counts':>{CHANGE}}{'locked':>{LOCKED}}"
    yield f"{head}  where" if width() - len(head) > LEAST_WHERE else head
    for one in shown:
        yield from _row(one)
    if left:
        numbers = [(OF_OUTCOME[o], sum(one.outcome == o for one in left)) for o in OF_OUTCOME]
        each = ", ".join(f"{number} {what}" for what, number in numbers if number)
        said = f"and {counted(len(left), 'row')} more: {each}; --json has all of them"
        yield from textwrap.wrap(said, width(), break_on_hyphens=False)
    yield from textwrap.wrap(_legend(its), width(), break_on_hyphens=False)
    yield ""


def _legend(its: Judgement) -> str:
    """What the columns are, for who sees them for the first time."""
    pers = dict.fromkeys(one.counted.per for one in its.operations if one.counted is not None)
    times = (
        "Time: with the series over that without it; above 1 is slower. It decides where a row is"
        " slower, equal (not changed by more than that) or faster. Undecided: not told from the"
        " noise of two copies of one kernel, or the time is against the counts."
    )
    words = explained("count", "locked", "regression")
    if not pers:
        return f"{times} {words}"
    counts = (
        "Counts: change of the quantity that is named beside more, mixed (and less of others) or"
        " fewer, and that decides there; else of the instructions executed. Same: no quantity"
        " changes by more than 0.1 %. Locked, and the numbers in where: locked operations and"
        f" instructions more for each {' or '.join(pers)}."
    )
    said = f"{times} {counts}" if any(one.timed for one in its.operations) else counts
    return f"{said} {words}"


def shown(its: Judgement) -> list[Operation]:
    """The rows that the table has."""
    return _shown([*its.ordered()])[0]


def _shown(ordered: Sequence[Operation]) -> tuple[list[Operation], list[Operation]]:
    """The rows that the table has, and those that it leaves out, both in the same order.

    The first LEAST_EACH of every outcome are among them: many rows that are a little worse do not
    hide those that are much better. All that are slower are, up to MOST_ROWS.
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


def _row(one: Operation) -> Iterator[str]:
    name = one.row
    if len(name) > NAME:
        yield name
        name = ""
    time = "" if one.timed is None else interval(_ratio(one))
    line = f"{name:<{NAME}} {time:<{RATIO}} {_says(one):<{SAYS}}"
    counts = ("", "") if one.counted is None else (_telling(one), locked(one))
    line += f"{counts[0]:>{CHANGE}}{counts[1]:>{LOCKED}}"
    yield f"{line}  {_where(one, width() - len(line) - 2)}".rstrip()


def _ratio(one: Operation) -> Ratio:
    assert one.timed is not None
    return Ratio(ratio=one.timed.ratio, low=one.timed.low, high=one.timed.high)


def _says(one: Operation) -> str:
    """The outcome in a column, with the bound of an equal time or the quantity that decided."""
    timed = one.timed
    if timed is not None and one.outcome == "equal" and timed.within is not None:
        return f"equal {per_cent(timed.within - 1)}"
    said = SHORTEST.get(one.outcome, OF_OUTCOME[one.outcome])
    by = one.decided_by
    return said if by not in COSTS else f"{said} {SHORT_COSTS[by]}"


def _telling(one: Operation) -> str:
    """The change of the quantity that decided a row, or else of the instructions."""
    assert one.counted is not None
    by = one.decided_by
    return _share(one.counted.share("instructions" if by not in COSTS else by))


def change(one: Operation) -> str:
    """How many more instructions, as a share of those before."""
    assert one.counted is not None
    return _share(one.counted.share("instructions"))


def _share(share: float) -> str:
    if math.isinf(share):
        return "new"
    if share == 0:
        return "0"
    decimals = min(MOST_DECIMALS, max(1, -math.floor(math.log10(100 * abs(share)))))
    return (
        f"{100 * share:+.{decimals}f} %" if abs(share) >= LEAST_SHARE else f"{100 * share:+.0e} %"
    )


LEAST_TENTHS = 0.05
"""The smallest number that a decimal shows."""
MOST_DECIMALS = 4
LEAST_SHARE = 0.5e-6
"""The smallest share that these decimals show; smaller ones have a power."""


def locked(one: Operation) -> str:
    """How many more locked operations for each page or entry."""
    assert one.counted is not None
    more = one.counted.after.get("locked", 0.0) - one.counted.before.get("locked", 0.0)
    return "0" if more == 0 else f"{more:+.2f}"


def _where(one: Operation, room: int) -> str:
    """The functions that execute more or less, as many as there is room for."""
    text = ""
    for name, numbers in one.functions[:MOST_FUNCTIONS]:
        number = numbers.get("instructions", 0.0)
        longer = f"{text}{', ' if text else ''}{name}()"
        said = f"{number:+.1f}" if abs(number) >= LEAST_TENTHS else f"{number:+.1g}"
        text = next((one for one in (f"{longer} {said}", longer) if len(one) <= room), text)
    return text


# --- Patches ---------------------------------------------------------------------------


def _patches(its: Judgement) -> Iterator[str]:
    """Of each patch, what it changes in the rows that it changes most."""
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
