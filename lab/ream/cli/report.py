# SPDX-License-Identifier: GPL-2.0-only
"""`ream report`: a record's words again, or a page of it for a browser."""

import json
import sys
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any

import typer

from ream.cli import complete
from ream.cli.app import RunsOption, app, runs_dir
from ream.cli.helped import Shown
from ream.errors import BadUsage

HTML = "--html"
DEFAULT = ""
"""What --html without a file stands for."""
STDOUT = "-"


class _Report(Shown):
    """`--html` may stand alone, with a FILE that ends in .html, or with `-`.

    Any other word behind it is the RUN, so that `ream report --html last` is no file "last".
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        ctx.allow_extra_args = True  # they are refused below, with the cause
        left = super().parse_args(ctx, list(html_joined(args)))
        if ctx.args and not ctx.resilient_parsing:
            word = dict(pairwise(args)).get(HTML, STDOUT)
            if word.startswith("-") or _is_page(word):
                raise BadUsage(f"{ctx.args[0]!r}: one RUN too many; a report is of one record")
            raise BadUsage(f"{HTML} {word}: FILE must end in .html; {HTML}={word} writes any name")
        return left


def html_joined(args: Sequence[str]) -> Iterator[str]:
    words = iter(args)
    for word in words:
        if word == "--":
            yield from (word, *words)
        elif word != HTML:
            yield word
        else:
            following = next(words, None)
            if following is not None and _is_page(following):
                yield f"{HTML}={following}"
            else:
                yield f"{HTML}={DEFAULT}"
                # It may be --html again, or an option with a value of its own.
                yield from html_joined(() if following is None else (following, *words))


def _is_page(word: str) -> bool:
    return word == STDOUT or (
        not word.startswith("-") and Path(word).suffix.lower() in (".html", ".htm")
    )


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
        typer.Option(
            HTML,
            metavar="[FILE]",
            help="Write one page for a browser, with plots and the receipt, that opens without"
            " network. FILE ends in .html (else write --html=FILE); without it <run id>.html here;"
            " `-` is standard output.",
        ),
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
        write_page(found, html, force=force, dry_run=dry_run)
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


def write_page(found: Any, name: str, *, force: bool, dry_run: bool = False) -> None:
    """Asked first whether the file may be written: a page takes a second or two to make."""
    from ream.files import check_place, write_whole  # noqa: PLC0415

    path = Path(name or f"{found.path.resolve().name}.html")
    if name != STDOUT:
        check_place(path, force=force)
    if dry_run:
        print(f"would write {'to standard output' if name == STDOUT else path}")
        return
    from ream.report.html.page import render  # noqa: PLC0415

    # A lone half of a pair, as damaged JSON may have, is no character.
    page = render(found).encode("utf-8", "backslashreplace")
    if name == STDOUT:
        sys.stdout.buffer.write(page)
        return
    write_whole(path, page, force=force)
    print(path)
