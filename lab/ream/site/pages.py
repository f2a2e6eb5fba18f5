# SPDX-License-Identifier: GPL-2.0-only
"""Renders a site. The same records give the same bytes."""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from ream.errors import BadUsage
from ream.experiment import named
from ream.record.record import Record
from ream.report.html import page, picture
from ream.site.gathered import Gathered, Run, factor, means, version

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
        drawn = _picture(its, records)
        if drawn:
            yield f"{name}.svg", drawn[1]
        yield (
            f"{name}.html",
            _rendered(
                "experiment", site, name=name, question=question, rows=rows, runs=its,
                cpus=sorted({cpu for one in rows for cpu in one.by_cpu}),
                earlier=any(its.earlier for one in rows for its in one.by_cpu.values()),
                picture=f"{name}.svg" if drawn else None, pictured=drawn and drawn[0],
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
    yield "published.html", _rendered("published", site)
    yield "runs.html", _rendered("runs", site, runs=runs)
    yield "index.html", _rendered("index", site, experiments=overview)


def _picture(runs: list[Run], records: dict[str, Record]) -> tuple[str, str] | None:
    """A timed run of the experiment's own kernels that has curves, and their picture.

    Of such runs those with most rows come first: a run of few rows shows little.
    """
    for one in sorted(runs, key=lambda one: -len(records[one.name].run.get("rows") or ())):
        if not one.counted and one.own_kernels:
            with suppress(BadUsage):  # no rows of it form a curve
                return one.name, picture.render(records[one.name])
    return None


def _rendered(template: str, site: Gathered, **values: Any) -> str:
    return _environment().get_template(f"{template}.html.j2").render(site=site, **values)


@cache
def _environment() -> jinja2.Environment:
    environment = page.environment(HERE)
    style = (page.HERE / "style.css").read_text(encoding="utf-8")
    style += (HERE / "site.css").read_text(encoding="utf-8")
    script = (page.HERE / "sort.js").read_text(encoding="utf-8")
    environment.globals.update(
        factor=factor,
        style=Markup(style),  # noqa: S704 - files of ours, not texts of a record
        script=Markup(script),  # noqa: S704
    )
    return environment
