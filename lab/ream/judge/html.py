# SPDX-License-Identifier: GPL-2.0-only
"""A judgement as a page for a browser, and the list of many: one file each, without a network."""

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
"""By exit status."""
COLOURS = {0: "good", 1: "bad", 5: "bad"}
"""The class in the style sheet by exit status; what says nothing of the series is UNCLEAR."""
UNCLEAR = "unclear"


@dataclass(frozen=True)
class Listed:
    """One judgement in a list of many."""

    when: str
    """UTC, as 2026-11-25 08:10."""
    series: str
    exit_code: int
    sentence: str
    link: str | None
    """Its page, beside the list; None if there is none."""

    @property
    def ends(self) -> str:
        """The exit status in words."""
        return ENDS.get(self.exit_code, "not judged")

    @property
    def colour(self) -> str:
        """The class of the words in the style sheet."""
        return COLOURS.get(self.exit_code, UNCLEAR)


def render(its: Judgement) -> str:
    """The page of one judgement."""
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
    """The page of all judgements, in the order given; home: the page that it belongs to."""
    return _template("judgements.html.j2").render(
        judgements=judgements, home=home, style=_own(STYLE), script=_own(SCRIPT)
    )


def title_of(its: Judgement) -> str:
    """The subject of its first patch, and how many others there are; of an upgrade its name."""
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
