# SPDX-License-Identifier: GPL-2.0-only
"""Adds launches beyond the plan until intervals are as narrow as requested."""

import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Protocol

from ream.counted import counted
from ream.experiment import BEFORE
from ream.measure.stable import STEP, Stable, Wide, too_wide
from ream.progress import Reporter
from ream.record.machine import Conditions
from ream.report.contract import Result, Summary
from ream.session.request import Measured, Request

NONE = (
    "no row has a ratio to narrow: its counts of instructions repeat, and of the running kernel"
    " alone there is none"
)

NOT_STABLE, WIDER = "not stable", " %: "

MOST_NAMED = 6
"""The most rows in a line; the table has all of them."""


class Repeatable(Protocol):
    """A run that can be measured with more launches; finished launches are not repeated."""

    @property
    def request(self) -> Request: ...
    @property
    def reporter(self) -> Reporter: ...
    def measure(self, launches: int, work: Path) -> Measured: ...
    def so_far(self, measured: Measured) -> Summary: ...


def until_stable(run: Repeatable, work: Path) -> tuple[Measured, str | None]:
    """Measure the planned launches and, if requested, more until intervals are narrow enough.

    Returns all that was measured and how it ended; None if only planned launches were made.
    """
    planned, stable = run.request.experiment.launches, run.request.stable
    began = time.monotonic()
    measured = run.measure(planned, work)
    if stable is None:
        return measured, None
    launches, most = planned, max(planned, stable.most_launches(planned))
    while True:
        timed = [*_timed(run.so_far(measured), measured)]
        wide = [*too_wide(timed, stable.within_pct)]
        minutes = (time.monotonic() - began) / 60
        ended = how_it_ends(wide, stable, launches, most=most, minutes=minutes) if timed else NONE
        if ended is not None:
            run.reporter.step(ended)
            return measured, ended
        launches = min(launches + STEP, most)
        run.reporter.step(
            f"wider than {stable.within_pct:g} %: {named(wide)};"
            f" {counted(launches, 'launch', 'launches')}"
        )
        again = work / f"launches-{launches}"
        again.mkdir()
        measured = run.measure(launches, again)


def how_it_ends(
    wide: Sequence[Wide], stable: Stable, launches: int, *, most: int, minutes: float
) -> str | None:
    """Return why no more launches are made; None if more are."""
    its = counted(launches, "launch", "launches")
    if not wide:
        return f"stable: every interval is within {stable.within_pct:g} % after {its}"
    if launches >= most:
        why = f"{its} {'is' if launches == 1 else 'are'} the most"
    elif stable.max_minutes is not None and minutes >= stable.max_minutes:
        why = f"{stable.max_minutes:.3g} minutes are over, after {its}"
    else:
        return None
    return f"{NOT_STABLE}: {why}; wider than {stable.within_pct:g}{WIDER}{named(wide)}"


def unstable(text: str) -> Iterator[tuple[str, str]]:
    """Yield rows and their widths from a text that begins as how_it_ends() writes it."""
    if text.startswith(NOT_STABLE):
        rows = text.partition(WIDER)[2].partition("; ")[0]
        yield from re.findall(r"(\S+) \([^()]*: ([^()]*)\)", rows)
        yield from ((one, "") for one in re.findall(r"\d+ more$", rows))


def named(wide: Sequence[Wide]) -> str:
    """Return the widest intervals in words, one for each row."""
    words = [str(one) for one in wide[:MOST_NAMED]]
    return ", ".join([*words, *([f"{len(wide) - MOST_NAMED} more"] * (len(wide) > MOST_NAMED))])


def worst(passes: Sequence[Conditions]) -> Conditions:
    """Merge the conditions of several passes: first and last load, and the worst of the others."""
    return Conditions(
        load_before=passes[0].load_before,
        load_after=passes[-1].load_after,
        steal_pct=_known(max, (one.steal_pct for one in passes)),
        idle_pct=_known(min, (one.idle_pct for one in passes)),
        others_pct=_known(max, (one.others_pct for one in passes)),
    )


def _known(
    choose: Callable[[Sequence[float]], float], values: Iterable[float | None]
) -> float | None:
    known = [value for value in values if value is not None]
    return choose(known) if known else None


def _timed(summary: Summary, measured: Measured) -> Iterator[tuple[str, str, Result]]:
    """Yield the tested ratios to `before`: of times, and of counts that do not repeat."""
    for row in summary.rows:
        tested = any(its.p_value is not None for its in row.variants.values())
        if row.skipped is None and (tested or measured.unit_of(row.row) == "ns"):
            for name, result in row.variants.items():
                if name != BEFORE and result.ratio is not None:
                    yield row.row, name, result
