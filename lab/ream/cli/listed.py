# SPDX-License-Identifier: GPL-2.0-only
"""`ream list`: a line for each experiment, or the rows and published tables of one."""

import json
import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from itertools import takewhile
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from ream.cli import complete
from ream.cli.app import JsonOption, RowsOption, app
from ream.counted import counted
from ream.folders import given_file, names
from ream.report.shared import together
from ream.width import NARROW_INDENT, ROOMY, print_hanging, width

if TYPE_CHECKING:
    from ream.experiment import Experiment
    from ream.experiment.shape import RowBase
    from ream.published import Table

_NUMBER = re.compile(r"\d")
_NUMBERS = re.compile(r"\d+")
EACH = "each"
"""Stands in the title of several rows for the word in which their names differ."""

NAME_COLUMNS, ROW_COLUMNS = 16, 24
MOST_VARYING = 2
"""Parts of titles that may differ among rows in one line."""


@app.command("list")
def list_experiments(
    experiment: Annotated[
        str | None,
        typer.Argument(
            help="Show the rows and published tables of this one: its name, or a folder or .toml"
            " file of your own.",
            autocompletion=complete.experiments,
        ),
    ] = None,
    *,
    row: RowsOption = None,
    stage: Annotated[
        Literal["native", "vm", "live"] | None, typer.Option(help="Only rows of this stage.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """List the experiments, a line each, or the rows and published tables of one.

    Rows that differ in one number or word stand in one line, as in fork-{4k,64k,2m}.

    Exit status: 0; 2 if there is no such experiment or row, or its file has a fault.
    """
    from ream.experiment import load  # noqa: PLC0415
    from ream.published import load_tables  # noqa: PLC0415

    listed = [load(given_file(name)) for name in ([experiment] if experiment else names())]
    if row:
        listed = [one.only(row) for one in listed]
    if stage:
        listed = [own for one in listed if (own := _of_stage(one, stage)).rows]
    tables: dict[str, list[Table]] = {one.name: [] for one in listed}
    for table in load_tables():
        tables.get(table.experiment, []).append(table)
    if as_json:
        found = [_object(one, tables[one.name]) for one in listed]
        print(json.dumps({"schema": 1, "experiments": found}))
    elif experiment or row or stage:
        for one in listed:
            _print_rows(one, tables[one.name])
    else:
        for one in listed:
            print_hanging(
                f"{one.name:{NAME_COLUMNS}} {one.short or one.question}", NAME_COLUMNS + 1
            )
        print()
        print_hanging("`ream list NAME` shows the rows of one, and the published tables.", 0)


def _of_stage(experiment: "Experiment", stage: str) -> "Experiment":
    """The experiment with its rows of one stage."""
    rows = tuple(row for row in experiment.rows if row.stage == stage)
    return experiment.model_copy(update={"rows": rows})


def _object(experiment: "Experiment", tables: Sequence["Table"]) -> dict[str, Any]:
    rows = [
        {"name": row.name, "stage": row.stage, "title": row.title(), "on_request": row.on_request}
        for row in experiment.rows
    ]
    its = {"name": experiment.name, "question": experiment.question, "rows": rows}
    its |= {"variants": experiment.variant_names()}
    published = [{"id": one.id, "author": one.author, "title": one.title} for one in tables]
    return {**its, "tables": published}


def _print_rows(experiment: "Experiment", tables: Sequence["Table"]) -> None:
    from ream.experiment import shown  # noqa: PLC0415

    print_hanging(f"{experiment.name}: {experiment.question}", 2)
    print_hanging(f"variants: {', '.join(map(shown, experiment.variant_names()))}", 2)
    for stage in dict.fromkeys(row.stage for row in experiment.rows):
        rows = [row for row in experiment.rows if row.stage == stage]
        print(f"\n{stage}: {counted(len(rows), 'row')}")
        for grid in grids(rows):
            asked = "; only with --row" if grid[0].on_request else ""
            _print_entry(name_of(grid), title_of(grid) + asked)
    if tables:
        print("\npublished tables")
    for table in tables:
        _print_entry(table.id, f"{table.author}: {table.title}")


def grids(rows: Iterable["RowBase"]) -> Iterator[list["RowBase"]]:
    """Group rows that differ in one number of their names, and in few parts of their titles."""
    grid: list[RowBase] = []
    for row in rows:
        if grid and not _is_grid([*grid, row]):
            yield grid
            grid = []
        grid.append(row)
    if grid:
        yield grid


def _is_grid(rows: Sequence["RowBase"]) -> bool:
    if len({(row.on_request, row.stage) for row in rows}) > 1:
        return False
    columns = _columns([row.name.split("-") for row in rows])
    titles = _columns([row.title().split(", ") for row in rows])
    varying = _varying(columns)
    if len(varying) != 1:
        return False
    names = columns[varying[0]]
    if all(map(_NUMBER.search, names)):
        return len(_varying(titles)) <= MOST_VARYING
    return len({_form(row.title(), name) for row, name in zip(rows, names, strict=True)}) == 1


def _form(title: str, name: str) -> str | None:
    """A title without its numbers and this name; what no other has, if it lacks the name."""
    words = title.split()
    return _NUMBERS.sub("#", title.replace(name, EACH)) if f"{name}," in words else name


def _is_of_words(rows: Sequence["RowBase"]) -> bool:
    """Whether what differs in the names of several rows is a word, which the titles have, too."""
    columns = _columns([row.name.split("-") for row in rows])
    return any(not all(map(_NUMBER.search, columns[place])) for place in _varying(columns))


def _columns(parts: Sequence[Sequence[str]]) -> list[tuple[str, ...]]:
    """The parts by place, or all of them as one place if not all have as many."""
    if len({len(one) for one in parts}) > 1:
        return [tuple("-".join(one) for one in parts), tuple(str(len(one)) for one in parts)]
    return list(zip(*parts, strict=True))


def _varying(columns: Iterable[Sequence[str]]) -> list[int]:
    return [place for place, its in enumerate(columns) if len(set(its)) > 1]


def name_of(grid: Sequence["RowBase"]) -> str:
    """The name of a row, or those of several with the part that differs in braces."""
    columns = _columns([row.name.split("-") for row in grid])
    return "-".join(its[0] if len(set(its)) == 1 else f"{{{','.join(its)}}}" for its in columns)


def title_of(grid: Sequence["RowBase"]) -> str:
    """The title of a row, or those of several from the first to the last."""
    if _is_of_words(grid):
        names = _columns([row.name.split("-") for row in grid])
        (its,) = (names[place] for place in _varying(names))
        said = (row.title().replace(name, EACH) for row, name in zip(grid, its, strict=True))
        return together([*said])
    parts = _columns([row.title().split(", ") for row in grid])
    return ", ".join(its[0] if len(set(its)) == 1 else _from_to(its[0], its[-1]) for its in parts)


def _from_to(first: str, last: str) -> str:
    """From "folios of 4 KiB" and "folios of 2 MiB" make "folios of 4 KiB to 2 MiB"."""
    one, other = first.split(), last.split()
    begin = _nr_same(one, other)
    end = _nr_same(one[begin:][::-1], other[begin:][::-1])
    middles = (" ".join(its[begin : len(its) - end]) for its in (one, other))
    return " ".join([*one[:begin], " to ".join(middles), *one[len(one) - end :]])


def _nr_same(one: Sequence[str], other: Sequence[str]) -> int:
    """How many words they begin with are the same."""
    both = zip(one, other, strict=False)
    return sum(1 for _ in takewhile(lambda words: words[0] == words[1], both))


def _print_entry(name: str, says: str) -> None:
    """A name, and what it is: behind it, or below where the name is long."""
    if len(name) <= ROW_COLUMNS and width() >= ROOMY:
        print_hanging(f"  {name:{ROW_COLUMNS}} {says}", ROW_COLUMNS + 3)
        return
    for line in textwrap.wrap(
        name.replace(",", ", "), width() - 4, initial_indent="  ", subsequent_indent="    "
    ):
        print(line.replace(", ", ",").rstrip())
    print_hanging(f"{' ' * NARROW_INDENT}{says}", NARROW_INDENT)
