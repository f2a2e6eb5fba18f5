# SPDX-License-Identifier: GPL-2.0-only
"""Runs programs on all of mm/ within a judgement: few at first, many after rows are counted.

The first search finds obvious faults within a minute, and then ends the judgement. The further
search looks for other faults within the time that a judgement takes anyway.
"""

from dataclasses import replace

from ream.errors import BadUsage, CannotRunHere, ReamError, in_a_line
from ream.judge.judgement import Examined
from ream.judge.question import Question
from ream.judge.urgency import S_PER_MINUTE
from ream.judge.whole import NAME, Pairs, examine
from ream.kernel.confine import building
from ream.kernel.source import Tree
from ream.progress import Reporter

FIRST_SHARE, LEAST_FIRST_S = 0.5, 10.0
"""Share of --verify-minutes for the first search, and its least duration in seconds."""
FURTHER_SHARE = 0.2
"""Share of --minutes for the further search."""
FURTHER_SEEDS = 1 << 20
"""Offset of the further programs' seed from the judgement's."""


def search_first(asked: Question, tree: Tree, pairs: Pairs, reporter: Reporter) -> Examined | None:
    """Run programs on a computer of all of mm/; None if this kernel cannot be hosted as a whole.

    Raises DoesNotApply and DoesNotCompile for a patch.
    """
    within_s = max(asked.verify_minutes * S_PER_MINUTE * FIRST_SHARE, LEAST_FIRST_S)
    try:
        found = _examined(asked, tree, pairs, reporter, within_s)
    except BadUsage:
        raise
    except ReamError as cause:
        if asked.quick:
            raise CannotRunHere(f"--quick: {NAME} is not hosted: {in_a_line(cause)}") from cause
        reporter.step(f"{NAME}: not hosted: {in_a_line(cause)}")
        return None
    if not (found.wrong or found.same or asked.quick):  # otherwise the page follows and contains it
        reporter.step(f"{NAME}: {found.words()}")
    return found


def search_further(
    asked: Question, tree: Tree, pairs: Pairs, first: Examined, reporter: Reporter
) -> Examined:
    """Return `first` with the results of further programs, if there is time for them."""
    within_s = asked.minutes * S_PER_MINUTE * FURTHER_SHARE
    if not within_s or not first.functions:
        return first
    reporter.step(f"{NAME}: running further programs for {within_s:.0f} s")
    asked = replace(asked, seed=asked.seed + FURTHER_SEEDS)
    return first.with_further(_examined(asked, tree, pairs, reporter, within_s, is_further=True))


def _examined(
    asked: Question,
    tree: Tree,
    pairs: Pairs,
    reporter: Reporter,
    within_s: float,
    *,
    is_further: bool = False,
) -> Examined:
    with building(confined=asked.confined):
        return examine(
            asked.series,
            tree,
            pairs,
            within_s=within_s,
            seed=asked.seed,
            cache=asked.cache,
            reporter=reporter,
            is_further=is_further,
        )
