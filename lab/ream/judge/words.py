# SPDX-License-Identifier: GPL-2.0-only
"""A judgement in a sentence, and the words and numbers for rows that all output formats share."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from ream.counted import counted
from ream.errors import ClaimFails, Inconclusive, VerificationFailed
from ream.judge.judgement import (
    BY_TIME,
    LITTLE,
    TIME,
    WEIGHED,
    Judgement,
    Operation,
    Outcome,
)
from ream.judge.reach import shortened
from ream.plain import plain
from ream.report.counts_table import QUANTITIES
from ream.report.numbers import fit, scale_of
from ream.report.sensitivity import per_cent

Word = Literal[
    "wrong", "regression", "no-regression", "undecided", "not-reached", "nothing-changes"
]
"""A judgement in a word for programs, finer than the exit status; see docs/commands.md."""

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
"""Outcomes in the order of the sentence."""
WITHOUT_SIZE = ("equal", "same", "undecided")
A_LITTLE: Mapping[Outcome, str] = {"slower": "a little slower", "more": "executes a little more"}
"""Words for outcomes if the largest loss is at most LITTLE."""

MOST_USABLE = 2.0
"""Largest smallest-effect ratio at which a row's time is useful."""
MOST_FILES = 3
"""The most files that are named; if there are more, their number is given."""
MOST_DECIMALS = 4
LEAST_SHARE = 0.5e-6
"""The smallest share that MOST_DECIMALS show; smaller ones are written with an exponent."""


def sentence(its: Judgement) -> str:
    """Return the judgement in words: what was found, in how many rows, and what decided them."""
    return " ".join(plain(part) for part in _sentences(its))


def _sentences(its: Judgement) -> Iterator[str]:
    if its.wrong is not None:
        yield f"WRONG: {its.wrong.lines[0]}."
        if its.wrong.first_patch is not None:
            number, subject = its.wrong.first_patch
            yield f"It begins with patch {number} of {len(its.subjects)}, {subject!r}."
        return
    yield from _right(its)
    yield f"{verdict(its)}: {_why(its)}."
    if its.operations and its.exit_code == Inconclusive.exit_code and its.unshown:
        yield _unshown(its)
    if its.operations and (sees := _sees(its)) is not None:
        yield sees


def _right(its: Judgement) -> Iterator[str]:
    """Yield where memory was right, and prefixes that are wrong; nothing if nothing was run."""
    whole = its.whole
    where = []
    if whole is not None and whole.nr_programs and not whole.misses_all:
        where.append("in every program")
    if its.operations:
        where.append("after every sample")
    if where:
        as_without = whole is None or not whole.differs
        other = "" if as_without else ", though not always as without the series"
        yield f"Memory was right {' and '.join(where)}{other}."
    elif whole is not None and whole.misses_all:
        yield "No program executed a line that it changes."
    for number, subject, what in its.wrong_steps:
        yield f"Up to patch {number}, {subject!r}, it is WRONG alone: {what}."


def _why(its: Judgement) -> str:
    """Return what was found in rows, or why nothing was measured."""
    if its.operations:
        return "; ".join(_found(its))
    if its.reach is None:
        return _why_none(its)
    if its.reach.only_moves:
        moved = counted(len(its.reach.moved), "hosted function")
        return f"it moves {moved} to other objects and changes none, so nothing was measured"
    if not its.reach.reached:
        return f"{_why_none(its)}, so nothing was measured"
    return "nothing that it reaches could be run"


def _why_none(its: Judgement) -> str:
    """Return why there is nothing to measure for a series that reaches nothing."""
    if its.changes_nothing:
        return f"the code and data of {_files(its)} are the same with it"
    if its.reach is None:
        is_hosted = its.whole is None or its.whole.functions
        found = "" if is_hosted else "it changes no function that is hosted, and "
        return f"{found}no row was asked for (--quick)"
    if not its.reach.same or (its.whole is not None and its.whole.functions):
        return "no row executes anything that it changes"
    if not its.reach.elsewhere:
        return "every hosted object has the same code and data with it"
    which = shortened(its.reach.elsewhere)
    return f"no hosted object changes, and it changes code that is not hosted, in {which}"


def _files(its: Judgement) -> str:
    """Return the files of a series if they are few, or their number."""
    if not its.files or len(its.files) > MOST_FILES:
        return f"its {len(its.files)} files" if its.files else "its files"
    return " and ".join(filter(None, (", ".join(its.files[:-1]), its.files[-1])))


def verdict(its: Judgement) -> str:
    """Return the judgement in a few words, which weigh losses against gains."""
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


def in_a_word(its: Judgement) -> Word:
    """Return the judgement in one word for programs; an exit status has one or more words."""
    if its.exit_code == VerificationFailed.exit_code:
        return "wrong"
    if its.exit_code == ClaimFails.exit_code:
        return "regression"
    if its.exit_code == 0:
        return "nothing-changes" if its.changes_nothing else "no-regression"
    return "undecided" if _is_reached(its) else "not-reached"


def _is_reached(its: Judgement) -> bool:
    """Whether a row executes changed code or, if no rows were to run, a program may have."""
    if its.reach is not None:
        return bool(its.operations or its.reach.reached)
    return its.whole is not None and bool(its.whole.functions) and not its.whole.misses_all


def _loss(its: Judgement) -> str:
    what = "small regression" if its.loss <= LITTLE else "regression"
    nr_slower, nr_faster = len(its.having("slower")), len(its.having("faster"))
    if nr_faster > nr_slower > 0:
        return f"Faster in most rows that time decides, but a {what}"
    return f"A {what}" if nr_slower else f"A {what} in what is executed"


def _why_or_where(its: Judgement) -> str:
    """Return why a judgement is undecided, or in how many rows; empty for other reasons."""
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
        # Rows decided by times are separate, as the largest count may be in one of them.
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
    """Return words for rows of one outcome decided by one quantity or time, and the largest one."""
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
    """Return the size of the change that decided a row."""
    if by is None or by == TIME or one.counted is None:
        return one.size
    return abs(one.counted.share(by))


def _within(rows: Sequence[Operation]) -> str:
    """Return the bounds within which rows are equal or the same; empty if nothing differs."""
    bounds = [bound for one in rows if (bound := margin(one))]
    if not bounds:
        return ""
    low, high = per_cent(min(bounds)), per_cent(max(bounds))
    return f" within {high}" if low == high else f" within {low} to {high}"


def margin(one: Operation) -> float | None:
    """Return the bound, a share, within which a row is equal or the same; None for others."""
    if one.outcome == "equal" and one.timed is not None and one.timed.within is not None:
        return one.timed.within - 1
    return one.counted.margin if one.outcome == "same" and one.counted is not None else None


def decided(one: Operation) -> str:
    """Return what decided a row, and by how much; empty if it is undecided."""
    by = one.decided_by
    if by in QUANTITIES and one.counted is not None:
        return f"{signed(one.counted.share(by))} {QUANTITIES[by]}"
    bound = "" if by == TIME else _within([one])
    return "" if by is None else f"{by}{bound}"


def _size(one: Operation) -> str:
    if one.timed is not None and one.outcome in ("slower", "faster"):
        factor = max(one.timed.ratio, 1 / one.timed.ratio)
        return f"{fit(factor, 6, 3)}x"
    if one.counted is None:
        return "?"
    by = one.decided_by or WEIGHED[0]
    said = [locked(one) if by == "locked" else signed(one.counted.share(by))]
    said += [] if by == "instructions" else [f"{change(one)} instructions"]
    said += [] if by == "locked" else [f"{locked(one)} locked"]
    if one.outcome == "mixed":
        name, share = one.counted.most(-1)
        said += [f"{signed(share)} {QUANTITIES[name]}"] if name not in WEIGHED else []
    return ", ".join(said)


def _unshown(its: Judgement) -> str:
    """Return why the judgement is undecided although no row is."""
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
        is_untimed = not any(one.timed for one in its.operations)
        return "Nothing was timed; more --minutes time rows." if is_untimed else None
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


def before(one: Operation) -> str:
    """Return the time of a row without the series; empty if it was not timed."""
    if one.timed is None or one.timed.before_ns is None:
        return ""
    scale, unit = scale_of([one.timed.before_ns], "ns")
    return f"{fit(one.timed.before_ns / scale, 5)} {unit}"


def change(one: Operation) -> str:
    """Return the change of instructions, as a share of those before."""
    assert one.counted is not None
    return signed(one.counted.share("instructions"))


def signed(share: float) -> str:
    """Return a share in per cent, with its sign."""
    if math.isinf(share):
        return "new"
    if share == 0:
        return "0"
    decimals = min(MOST_DECIMALS, max(1, -math.floor(math.log10(100 * abs(share)))))
    return (
        f"{100 * share:+.{decimals}f} %" if abs(share) >= LEAST_SHARE else f"{100 * share:+.0e} %"
    )


def locked(one: Operation) -> str:
    """Return the change of locked operations for each page or entry."""
    assert one.counted is not None
    more = one.counted.after.get("locked", 0.0) - one.counted.before.get("locked", 0.0)
    return "0" if more == 0 else f"{more:+.2f}"
