# SPDX-License-Identifier: GPL-2.0-only
"""Renders the page of one record. The same record produces the same bytes."""

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from ream.errors import BadUsage
from ream.experiment import RUNNING, shown
from ream.measure.sample import Sample
from ream.record.packed import lines_of
from ream.record.record import Record
from ream.report.contract import Result, RowResult, Summary
from ream.report.html import charts, curves, findings, noise, points, tables
from ream.report.html.charts import Chart
from ream.report.html.curves import kernel_before
from ream.report.html.looks import Look, looks_of
from ream.report.html.tables import HtmlTable
from ream.report.limit import is_bound, limit_word, limit_words
from ream.report.not_run import folded
from ream.report.readers import for_readers
from ream.report.short import main_variants
from ream.report.table import (
    beside_words,
    how_to_read,
    whose_published,
)
from ream.report.words import effect_words, verdict_words
from ream.values import Texts, Tuple, Value

HERE = Path(__file__).parent
NOISE = "noise.jsonl"
MOST_OPEN = 3
"""The most rows of a page that is shown with all rows unfolded."""
LONG_LINES = 120
LONG_TEXT = 20_000
"""LONG_LINES of a table, or LONG_TEXT characters of a text, are left out in print."""


class Samples(Value):
    """The samples of one row, as plots and as a table."""

    charts: Tuple[Chart]
    table: HtmlTable
    every: int
    long: bool


class RowPart(Value):
    """The complete section of one row."""

    row: RowResult
    ident: str
    sentence: str
    table: HtmlTable | None
    published: HtmlTable | None
    charts: Tuple[Chart]
    samples: Samples | None
    beside: Texts = ()


class Folded(Value):
    """A part of the receipt."""

    name: str
    text: str
    long: bool


class Noisy(Value):
    """The plot of one kind of noise, and its points as a table."""

    chart: Chart
    table: HtmlTable
    long: bool


def render(record: Record) -> str:
    """The complete page. Raises BadUsage or ReamError if the record's files are damaged."""
    summary = for_readers(Summary.from_object(record.run, source=str(record.path)))
    names = main_variants(summary.rows)
    taken = _taken(record)
    verdicts = list(findings.verdicts(summary, names, taken))
    parts = _rows(summary, taken)
    overview = list(points.overviews(summary.rows, names))
    pictures = list(curves.curves(summary.rows, kernel_before(record.receipt)))
    found, faulty = _moments(record.path / NOISE)
    noisy = [
        Noisy(chart=chart, table=table, long=len(table.lines) > LONG_LINES)
        for chart, table in noise.plots(found)
    ]
    plots = [
        *pictures,
        *overview,
        *(chart for part in parts for chart in part.charts),
        *(chart for part in parts if part.samples for chart in part.samples.charts),
        *(one.chart for one in noisy),
    ]
    return (
        environment(HERE)
        .get_template("page.html.j2")
        .render(
            summary=summary,
            receipt=summary.receipt,
            in_short=list(findings.in_short(summary, names)),
            names=names,
            has_share=any(line.shares for line in verdicts),
            has_floor=RUNNING not in names,
            has_published=any(row.comparisons for row in summary.rows),
            verdicts=verdicts,
            reasons=findings.reasons(verdicts),
            overview=overview,
            pictures=pictures,
            unnamed=curves.unnamed(pictures, summary),
            folded=list(map(str, folded(summary.rows))),
            parts=parts,
            open_rows=len(parts) <= MOST_OPEN,
            others=list(tables.others(summary)),
            noisy=noisy,
            faulty=faulty,
            most=points.MOST_SAMPLES,
            corrected=any(
                its.p_value is not None for row in summary.rows for its in row.variants.values()
            ),
            how=how_to_read(summary),
            limit=limit_words(summary),
            is_bound=is_bound(summary),
            whose=whose_published(summary),
            series=list(_series(record.receipt)),
            tree_key=_at(record.receipt, "kernel", "tree_key"),
            benchmark=_at(record.receipt, "benchmark"),
            parts_of_receipt=list(_folded(record.receipt)),
            **_own_files(),
            data=Markup(_in_script(_plots(plots))),  # noqa: S704 - escaped for where it stands
        )
    )


def environment(*folders: Path) -> jinja2.Environment:
    """What renders the templates of folders. It escapes each text, and shows what is invisible."""
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(folders),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=visible,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


def visible(value: object) -> object:
    """The value with invisible characters of foreign texts replaced.

    The subject of a mail may contain escape codes of a terminal, or change the text's direction.
    """
    if not isinstance(value, str) or isinstance(value, Markup) or value.isprintable():
        return value
    return "".join(char if char.isprintable() or char in "\n\t" else _named(char) for char in value)


def _named(char: str) -> str:
    """A replacement as tables use it: a question mark or, beyond ASCII, the character's number."""
    return "?" if char.isascii() else char.encode("ascii", "backslashreplace").decode("ascii")


def _own_files() -> Mapping[str, Markup]:
    """The style sheet and the scripts, which are files of ours and not texts of a record."""
    files = {"style": "style.css", "script": "page.js", "sorting": "sort.js"}
    texts = {name: (HERE / file).read_text(encoding="utf-8") for name, file in files.items()}
    texts["library"] = charts.library()
    return {name: Markup(text) for name, text in texts.items()}  # noqa: S704


def _plots(plots: Sequence[Chart]) -> Mapping[str, Any]:
    """The data of the page's script: kinds of plots, and for each plot its kind and its points."""
    used = {chart.kind for chart in plots}
    return {
        "kinds": {name: spec for name, spec in charts.kinds().items() if name in used},
        "plots": {
            chart.id: {
                "kind": chart.kind,
                "data": _data(chart),
                "scales": {
                    name: [visible(one) for one in its] for name, its in chart.scales.items()
                },
            }
            for chart in plots
        },
    }


def _data(chart: Chart) -> Mapping[str, Any]:
    return {
        name: [{key: visible(value) for key, value in point.items()} for point in its]
        for name, its in chart.data.items()
    }


def _in_script(value: Mapping[str, Any]) -> str:
    """JSON that can neither end its <script> element nor open a comment in it."""
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    for char in "<>&":
        text = text.replace(char, f"\\u{ord(char):04x}")
    return text


# --- Rows --------------------------------------------------------------------------------


def _taken(record: Record) -> Mapping[str, Sequence[Sample]]:
    """Samples of variants by row, in order."""
    by_row: dict[str, list[Sample]] = defaultdict(list)
    for sample in record.samples():
        if sample.role == "variant":
            by_row[sample.row].append(replace(sample, subject=shown(sample.subject)))
    return by_row


def _rows(summary: Summary, taken: Mapping[str, Sequence[Sample]]) -> list[RowPart]:
    names, look = main_variants(summary.rows), looks_of(summary.rows)
    return [
        RowPart(
            row=row,
            ident=f"row-{number}",
            sentence=_sentence(row, names),
            beside=tuple(beside_words(row)),
            table=tables.of_row(row, limit_word(summary)) if row.variants else None,
            published=tables.published(row),
            charts=tuple(points.of_row(row, f"row-{number}", look, limit_word(summary)))
            if row.variants
            else (),
            samples=_samples(row, taken.get(row.row, ()), f"row-{number}", look),
        )
        for number, row in enumerate(summary.rows, start=1)
    ]


def _samples(
    row: RowResult, taken: Sequence[Sample], ident: str, look: Mapping[str, Look]
) -> Samples | None:
    plots, table, every = points.drift(row, taken, ident, look)
    if table is None:
        return None
    long = len(table.lines) > LONG_LINES
    return Samples(charts=tuple(plots), table=table, every=every, long=long)


def _sentence(row: RowResult, names: Sequence[str]) -> str:
    """The sentence that a folded row shows."""
    if not row.variants:
        return f"not run: {row.skipped or 'no reason recorded'}"
    said = [_one(name, result) for name in names if (result := row.variants.get(name)) is not None]
    if names == [RUNNING]:
        said = [findings.cell_of(row, RUNNING).words]
    if row.comparisons:
        said.append(f"published: {verdict_words(row, findings.ROOM).upper()}")
    return "; ".join(said)


def _one(name: str, result: Result) -> str:
    return f"{name} {effect_words(result) or tables.ratio_words(result)}"


# --- Noise, receipt ----------------------------------------------------------------------


def _moments(path: Path) -> tuple[list[Mapping[str, Any]], int]:
    try:
        return noise.moments(line.decode(errors="replace") for line in lines_of(path))
    except FileNotFoundError:  # records had none before
        return [], 0
    except OSError as cause:
        raise BadUsage(f"{path}: {cause.strerror}") from cause


def _at(value: object, *names: str) -> str | None:
    """A text inside a receipt; None if an older or damaged receipt lacks it."""
    for name in names:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value if isinstance(value, str) else None


def _series(receipt: Mapping[str, Any]) -> Iterator[tuple[str, str, Texts]]:
    """For each series, its variant, its name with its id, and the subjects of its patches."""
    kernel = receipt.get("kernel")
    variants = kernel.get("variants") if isinstance(kernel, Mapping) else None
    if not isinstance(variants, Mapping):
        return
    for variant, entries in variants.items():
        for entry in entries if isinstance(entries, list) else ():
            patches = entry.get("patches") if isinstance(entry, Mapping) else None
            subjects = tuple(
                _at(patch, "subject") or "?"
                for patch in (patches if isinstance(patches, list) else ())
            )
            words = f"{_at(entry, 'name') or '?'}, id {_at(entry, 'id') or '?'}"
            yield shown(str(variant)), words, subjects


def _folded(receipt: Mapping[str, Any]) -> Iterator[Folded]:
    for name, value in receipt.items():
        if value not in (None, {}, []):
            text = json.dumps(value, indent=1, ensure_ascii=False)
            yield Folded(name=name, text=text, long=len(text) > LONG_TEXT)
