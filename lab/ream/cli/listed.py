# SPDX-License-Identifier: GPL-2.0-only
"""`ream list`: a line for each experiment, or the rows and published tables of one."""

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from ream.cli import complete
from ream.cli.app import JsonOption, RowsOption, app
from ream.cli.row_tables import COLUMN, RowTable, tables, title_of
from ream.counted import counted
from ream.folders import given_file, names
from ream.width import NARROW_INDENT, ROOMY, print_hanging, width

if TYPE_CHECKING:
    from ream.experiment import Experiment
    from ream.published import Table

NAME_COLUMNS, ROW_COLUMNS = 16, 24


@app.command("list")
def list_experiments(
    experiment: Annotated[
        str | None,
        typer.Argument(
            metavar="[EXPERIMENT]",
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

    Rows that differ in one number or word are one line of a table, with an x in the column of each:
    the line fork-# has the rows fork-4k, fork-64k and so on.

    Exit status: 0; 2 if there is no such experiment or row, or its file has a fault.
    """
    from ream.experiment import load  # noqa: PLC0415
    from ream.published import load_tables  # noqa: PLC0415

    listed = [load(given_file(name)) for name in ([experiment] if experiment else names())]
    if row:
        listed = [one.only(row) for one in listed]
    if stage:
        listed = [own for one in listed if (own := _of_stage(one, stage)).rows]
    published: dict[str, list[Table]] = {one.name: [] for one in listed}
    for table in load_tables():
        published.get(table.experiment, []).append(table)
    if as_json:
        found = [_object(one, published[one.name]) for one in listed]
        print(json.dumps({"schema": 1, "experiments": found}))
    elif experiment or row or stage:
        for one in listed:
            _print_rows(one, published[one.name])
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


def _print_rows(experiment: "Experiment", published: Sequence["Table"]) -> None:
    from ream.experiment import shown  # noqa: PLC0415

    print_hanging(f"{experiment.name}: {experiment.question}", 2)
    print_hanging(f"variants: {', '.join(map(shown, experiment.variant_names()))}", 2)
    for stage in dict.fromkeys(row.stage for row in experiment.rows):
        rows = [row for row in experiment.rows if row.stage == stage]
        print(f"\n{stage}: {counted(len(rows), 'row')}")
        for one in tables(rows):
            if isinstance(one, RowTable):
                _print_table(one)
            else:
                _print_entry(one.name, title_of([one]))
    if published:
        print("\npublished tables")
    for table in published:
        _print_entry(table.id, f"{table.author}: {table.title}")


def _print_table(table: RowTable) -> None:
    """A table of rows, each line of which goes on with what its rows are, or below itself."""
    first = table.lines[0].rows[0]
    named = {line.name(table.unit): line for line in table.lines}
    room = max(map(len, named)) + 2
    widths = [len(head) + 1 for head in table.heads]
    fits = room + 2 + sum(widths) <= width()
    how = f"{COLUMN} is a column's head, so one row is" if fits else "one row is"
    print_hanging(f"  {how} {first.name}: {first.title()}", NARROW_INDENT)
    if fits:
        print(f"  {'':{room}}{_cells(table.heads, widths)}")
    for name, line in named.items():
        if fits:
            print(f"  {name:{room}}{_cells(table.cells(line), widths)}".rstrip())
        else:
            values = ", ".join(value.removesuffix(table.unit) for value in line.values)
            print_hanging(f"  {name}, where {COLUMN} is {values}", NARROW_INDENT)
        print_hanging(f"{' ' * NARROW_INDENT}{line.title}", NARROW_INDENT)


def _cells(texts: Sequence[str], widths: Sequence[int]) -> str:
    return "".join(f"{text:>{wide}}" for text, wide in zip(texts, widths, strict=True))


def _print_entry(name: str, says: str) -> None:
    """A name, and what it is: behind it, or below where the name is long."""
    if len(name) <= ROW_COLUMNS and width() >= ROOMY:
        print_hanging(f"  {name:{ROW_COLUMNS}} {says}", ROW_COLUMNS + 3)
        return
    print(f"  {name}")
    print_hanging(f"{' ' * NARROW_INDENT}{says}", NARROW_INDENT)
