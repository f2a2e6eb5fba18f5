# SPDX-License-Identifier: GPL-2.0-only
"""`ream report`: a record's words again, or a page of it for a browser."""

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from ream.cli import complete
from ream.cli.app import RunsOption, app, runs_dir
from ream.cli.helped import Shown
from ream.cli.page import HTML, Paged, html_option, place_of, write_page
from ream.errors import BadUsage


class _Report(Paged, Shown):
    too_many = "one RUN too many; a report is of one record"


@app.command(cls=_Report)
def report(
    record: Annotated[
        str,
        typer.Argument(
            metavar="RUN",
            help="A run id, its beginning or end, a record's directory, `last`, `last-1`. Ids in"
            " the checkout's docs/records are found, too.",
            autocompletion=complete.runs,
        ),
    ] = "last",
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print the record's object.")] = False,
    rows: Annotated[
        bool,
        typer.Option("--rows", help="Print each row, with its numbers and all that is said of it."),
    ] = False,
    as_letter: Annotated[
        bool, typer.Option("--letter", help="Print it for a cover letter, under 75 columns.")
    ] = False,
    html: Annotated[
        str | None,
        html_option("<run id>.html", ", with plots and the receipt"),
    ] = None,
    svg: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write its curves as one picture, for a document."),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Let --html and --svg replace a file.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say which file --html would write, and stop.")
    ] = False,
    runs_in: RunsOption = None,
) -> None:
    """Print a record's table again, or make an HTML page of it.

    It begins with what was found, in short. Each of more than four rows is printed with --rows.
    The output depends on the record alone: the same version of ream prints the same bytes on any
    machine. A table is as wide as its terminal, from 60 to 100 columns.

    Exit status: 0; 2 if there is no such record, it is damaged, or the file is there; 6 if one of
    its samples is damaged.
    """
    if sum((as_json, as_letter, html is not None, svg is not None)) > 1:
        raise BadUsage(f"--json, --letter, {HTML} and --svg are four reports; ask for one of them")
    if (force or dry_run) and html is None and (dry_run or svg is None):
        raise BadUsage(f"--force and --dry-run are about the file of {HTML}")
    from ream.record.record import Record  # noqa: PLC0415

    found = Record.load(record, runs_dir(runs_in))
    if html is not None:
        write_report(found, html, force=force, dry_run=dry_run)
        return
    if svg is not None:
        _draw(found, svg, force=force)
        return
    from ream.report import letter, table  # noqa: PLC0415
    from ream.report.contract import Summary  # noqa: PLC0415

    summary = Summary.from_object(found.run, source=str(found.path))
    if as_json:
        print(json.dumps(summary.to_object(), indent=1))
        return
    whole = letter.render if as_letter else table.render
    sys.stdout.write((whole if as_letter or rows else table.overview)(summary))


def _draw(found: Any, path: Path, *, force: bool) -> None:
    from ream.files import check_place, write_whole  # noqa: PLC0415
    from ream.report.html.picture import render  # noqa: PLC0415

    check_place(path, force=force)
    write_whole(path, render(found).encode(), force=force)
    print(path)


def write_report(found: Any, name: str, *, force: bool, dry_run: bool = False) -> None:
    """Asked first whether the file may be written: a page takes a second or two to make."""
    path = place_of(name, f"{found.path.resolve().name}.html", force=force)
    if dry_run:
        print(f"would write {path or 'to standard output'}")
        return
    from ream.report.html.page import render  # noqa: PLC0415

    write_page(path, render(found), force=force)
