# SPDX-License-Identifier: GPL-2.0-only
"""Renders a site. The same records give the same bytes."""

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from ream.errors import BadUsage
from ream.experiment import named
from ream.record.record import Record
from ream.report.html import page, picture
from ream.report.html.sheet import Sheet
from ream.site.gathered import Gathered, Run, factor, means, version
from ream.site.judgements import pages_of

HERE = Path(__file__).parent
RUNS = "runs"
"""The folder with the pages of single runs."""


OF_EACH = 10
"""Rows of a run whose parts of its page take as long to make as all else on it, or as a picture."""


def work(site: Gathered, *, of_runs: bool) -> Mapping[str, int]:
    """Map the names of slow pages to their work, measured in rows of a page of a run."""
    rows = {one.path.name: len(its.rows) for one, its in site.records}
    runs = {f"{RUNS}/{one.name}.html": OF_EACH + rows[one.name] for one in site.newest if of_runs}
    judged = sum(len(one.table.rows) for one in site.published)
    own = {f"{name}.html": OF_EACH for name in site.experiments}
    return {**runs, **own, "published.html": judged}


def pages(site: Gathered, *, of_runs: bool) -> Iterator[tuple[str, str]]:
    """Each file of the site, relative to its folder, with its content.

    of_runs: the newest run of each kind has a page. Raises BadUsage if a record is damaged.
    """
    with_page = {one.name for one in site.newest} if of_runs else set()
    records = {one.path.name: one for one, _ in site.records}
    for name in sorted(with_page):
        yield f"{RUNS}/{name}.html", page.render(records[name])
    runs = [
        replace(one, page=f"{RUNS}/{one.name}.html") if one.name in with_page else one
        for one in site.listed
    ]
    overview = []
    for name in site.experiments:
        its = [one for one in runs if one.experiment == name]
        question = named(name).question
        rows = [*site.rows(name)]
        drawn = _pictured(its, records)
        if drawn:
            yield f"{name}.svg", picture.render(records[drawn.name])
        yield (
            f"{name}.html",
            _rendered(
                "experiment", site, name=name, question=question, rows=rows, runs=its,
                cpus=sorted({cpu for one in rows for cpu in one.by_cpu}),
                earlier=any(its.earlier for one in rows for its in one.by_cpu.values()),
                pictured=drawn, plots=_plots(records[drawn.name]) if drawn else (),
                unnamed=picture.unnamed_of(records[drawn.name]) if drawn else (),
            ),
        )  # fmt: skip
        nr_rows, by_cpu = means(rows)
        overview.append(
            {"name": name, "question": question, "nr_runs": len(its), "nr_rows": nr_rows,
             "means": by_cpu}
        )  # fmt: skip
    kernels = sorted({name for one in site.upgrades for name in one.by_kernel}, key=version)
    if kernels:
        yield "upgrades.html", _rendered("upgrades", site, kernels=kernels)
    if site.judged:
        yield from pages_of(site.judged)
    yield "published.html", _rendered("published", site)
    yield "runs.html", _rendered("runs", site, runs=runs)
    yield "index.html", _rendered("index", site, experiments=overview)


def _pictured(runs: list[Run], records: dict[str, Record]) -> Run | None:
    """A timed run of the experiment's own kernels that has curves.

    Of such runs those with most rows come first: a run of few rows shows little.
    """
    for one in sorted(runs, key=lambda one: -len(records[one.name].run.get("rows") or ())):
        if not one.counted and one.own_kernels:
            with suppress(BadUsage):  # no rows of it form a curve
                picture.curves_of(records[one.name])
                return one
    return None


@dataclass(frozen=True)
class Plot:
    """A curve inside of a page: its title, the same in words, and the SVG."""

    title: str
    alt: str
    svg: Markup


def _plots(record: Record) -> list[Plot]:
    its = picture.curves_of(record)
    return [Plot(one.title, one.alt, Markup(picture.inline(one))) for one in its]  # noqa: S704


TREND_WIDTH, TREND_HEIGHT = 72, 24
TREND_MOST = 1.5
"""The ratio that is drawn at the edge of a trend; what is beyond is there, too."""


def trend(ratios: Sequence[float]) -> Markup:
    """A line through ratios in order on a log scale, above a line at 1; slower is up.

    Raises ValueError without a second ratio.
    """
    if len(ratios) < 2:  # noqa: PLR2004 - a line has two ends
        raise ValueError("a trend has two ratios or more")
    middle, step = TREND_HEIGHT / 2, (TREND_WIDTH - 4) / (len(ratios) - 1)
    parts = (max(-1.0, min(1.0, math.log(one, TREND_MOST))) for one in ratios)
    places = [
        (2 + number * step, middle - part * (middle - 3)) for number, part in enumerate(parts)
    ]
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    x, y = places[-1]
    return Markup(
        '<svg class="trend" width="{0}" height="{1}" viewBox="0 0 {0} {1}" role="img"'
        ' aria-label="{2}"><path class="one" d="M0 {3}H{0}"/><polyline points="{4}"/>'
        '<circle cx="{5:.1f}" cy="{6:.1f}" r="2.5"/></svg>'
    ).format(
        TREND_WIDTH, TREND_HEIGHT, ", ".join(f"{one:.2f}" for one in ratios), middle, line, x, y
    )


def sheet_page(sheet: Sheet, *, command: str) -> str:
    """The page of a command; command: the line that made it."""
    template = _environment().get_template("sheet.html.j2")
    return template.render(sheet=sheet, command=command)


def _rendered(template: str, site: Gathered, **values: Any) -> str:
    return _environment().get_template(f"{template}.html.j2").render(site=site, **values)


@cache
def _environment() -> jinja2.Environment:
    environment = page.environment(HERE, page.HERE)
    style = (page.HERE / "style.css").read_text(encoding="utf-8")
    style += (HERE / "site.css").read_text(encoding="utf-8")
    script = (page.HERE / "sort.js").read_text(encoding="utf-8")
    environment.globals.update(
        factor=factor,
        trend=trend,
        style=Markup(style),  # noqa: S704 - files of ours, not texts of a record
        script=Markup(script),  # noqa: S704
    )
    return environment
