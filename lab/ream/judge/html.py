# SPDX-License-Identifier: GPL-2.0-only
"""Renders a judgement, or a list of judgements, as an HTML file that needs no network."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import jinja2

from ream.counted import counted
from ream.judge import words
from ream.judge.explain import ABOUT, for_others, names
from ream.judge.judgement import Judgement
from ream.judge.pictures import pictures
from ream.judge.side_by_side import side_by_side
from ream.judge.unexamined import unexecuted
from ream.report.html.page import HERE as REPORT
from ream.report.html.page import environment

HERE = Path(__file__).parent
STYLE, SCRIPT = "style.css", "sort.js"
ENDS = {
    0: "nothing wrong, no regression",
    1: "regression",
    2: "not judged",
    3: "cannot run here",
    4: "undecided",
    5: "wrong",
    6: "a tool failed",
}
"""Words for each exit status."""
COLOURS = {0: "good", 1: "bad", 5: "bad"}
"""Class in the style sheet by exit status; UNCLEAR for a status without a verdict."""
UNCLEAR = "unclear"


@dataclass(frozen=True)
class Listed:
    """One judgement in a list of many."""

    when: str
    """Time in UTC, formatted as 2026-11-25 08:10."""
    series: str
    exit_code: int
    sentence: str
    link: str | None
    """The link to the series' page, relative to the list; None if there is no page."""

    @property
    def ends(self) -> str:
        """The exit status in words."""
        return ENDS.get(self.exit_code, "not judged")

    @property
    def colour(self) -> str:
        """The class of the words in the style sheet."""
        return COLOURS.get(self.exit_code, UNCLEAR)


def render(its: Judgement) -> str:
    """Return the page of one judgement."""
    its = for_others(its)
    return _template("judgement.html.j2").render(
        its=its,
        title=title_of(its),
        ends=ENDS[its.exit_code],
        colour=COLOURS.get(its.exit_code, UNCLEAR),
        sentence=words.sentence(its),
        operations=[*its.ordered()],
        pictures=pictures(its),
        says=words.OF_OUTCOME,
        change=words.change,
        before=words.before,
        decided=words.decided,
        locked=words.locked,
        side_by_side=side_by_side,
        style=_own(STYLE),
        script=_own(SCRIPT),
        about=ABOUT,
        names=[*names(its, ())],
        unexecuted=[*unexecuted(its.whole)],
    )


def render_list(judgements: Sequence[Listed], *, home: str | None = None) -> str:
    """Return the page that lists judgements in the given order; home: the page that links to it."""
    return _template("judgements.html.j2").render(
        judgements=judgements, home=home, style=_own(STYLE), script=_own(SCRIPT)
    )


def title_of(its: Judgement) -> str:
    """Return the first patch's subject and the number of others; for an upgrade, its name."""
    if not its.subjects:
        return its.series
    others = len(its.subjects) - 1
    more = f" and {counted(others, 'other patch', 'other patches')}" if others else ""
    return f"{its.subjects[0]}{more}"


@cache
def _own(name: str) -> str:
    return (REPORT / name).read_text(encoding="utf-8")


@cache
def _template(name: str) -> jinja2.Template:
    return environment(HERE).get_template(name)
