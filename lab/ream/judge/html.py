# SPDX-License-Identifier: GPL-2.0-only
"""A judgement as a page for a browser, and the list of many: one file each, without a network."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import jinja2

from ream.judge import page
from ream.judge.explain import ABOUT, for_others, names
from ream.judge.judgement import Judgement
from ream.judge.pictures import pictures
from ream.report.html.page import HERE as REPORT
from ream.report.html.page import environment

HERE = Path(__file__).parent
STYLE = "style.css"
ENDS = {
    0: "no regression found",
    1: "regression",
    2: "not judged",
    3: "cannot run here",
    4: "undecided",
    5: "wrong",
    6: "a tool failed",
}
"""By exit status."""


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


def render(its: Judgement) -> str:
    """The page of one judgement."""
    its = for_others(its)
    return _template("judgement.html.j2").render(
        its=its,
        ends=ENDS[its.exit_code],
        sentence=page.sentence(its),
        operations=[*its.ordered()],
        pictures=pictures(its),
        says=page.OF_OUTCOME,
        change=page.change,
        decided=page.decided,
        locked=page.locked,
        style=_style(),
        about=ABOUT,
        names=[*names(its, ())],
    )


def render_list(judgements: Sequence[Listed]) -> str:
    """The page of all judgements, in the order given."""
    return _template("judgements.html.j2").render(judgements=judgements, style=_style())


@cache
def _style() -> str:
    return (REPORT / STYLE).read_text(encoding="utf-8")


@cache
def _template(name: str) -> jinja2.Template:
    return environment(HERE).get_template(name)
