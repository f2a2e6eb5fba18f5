# SPDX-License-Identifier: GPL-2.0-only
"""`ream report`: a record's words again."""

import json
import sys
from typing import Annotated

import typer

from ream.cli.app import OutputOption, app, runs_dir


@app.command()
def report(
    record: Annotated[
        str, typer.Argument(metavar="RUN", help="A run id, a record's directory, or `last`.")
    ] = "last",
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print the record's object.")] = False,
    as_letter: Annotated[
        bool, typer.Option("--letter", help="Print it for a cover letter, under 75 columns.")
    ] = False,
    output: OutputOption = None,
) -> None:
    """Print a record's table again, from the record alone."""
    from ream.record.record import Record  # noqa: PLC0415
    from ream.report import letter, table  # noqa: PLC0415
    from ream.report.contract import Summary  # noqa: PLC0415

    found = Record.load(record, runs_dir(output))
    summary = Summary.from_object(found.run, source=str(found.path))
    if as_json:
        print(json.dumps(summary.to_object(), indent=1))
    else:
        sys.stdout.write((letter if as_letter else table).render(summary))
