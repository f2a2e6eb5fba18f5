# SPDX-License-Identifier: GPL-2.0-only
"""`ream export`: earlier runs in the formats of others."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from ream.cli import complete
from ream.cli.app import RunsOption, app, runs_dir
from ream.cli.history import (
    RUNS_HELP,
    ExperimentOption,
    MachineOption,
    Progress,
    RowOption,
    SinceOption,
    StageOption,
    VariantOption,
    choice_of,
    note,
)
from ream.errors import BadUsage

if TYPE_CHECKING:
    from ream.history.choose import Choice
    from ream.history.export import Format
    from ream.record.record import Record


@app.command()
def export(
    records: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="RUN", help=RUNS_HELP, show_default=False, autocompletion=complete.runs
        ),
    ] = None,
    *,
    form: Annotated[
        Literal["csv", "jsonl"],
        typer.Option("--format", "-f", help="CSV with a header, or a JSON object a line."),
    ],
    with_samples: Annotated[
        bool, typer.Option("--samples", help="Every sample, not every row and variant.")
    ] = False,
    file: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Write it here, whole or not at all."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace FILE if it is there.")] = False,
    experiment: ExperimentOption = None,
    stage: StageOption = None,
    since: SinceOption = None,
    machine: MachineOption = None,
    variant: VariantOption = None,
    row: RowOption = None,
    runs_in: RunsOption = None,
) -> None:
    """Write earlier runs in a format that others read: the runs named, or all that fit.

    There is a line for each run, row and variant, with units in the names of the columns; with
    --samples one for each sample. Without FILE it goes to standard output.

    Exit status: 0; 2 usage, or a run that is not there or cannot be read; 6 if samples are damaged.
    """
    from ream.experiment import recorded  # noqa: PLC0415
    from ream.files import check_place, write_whole  # noqa: PLC0415

    variant = None if variant is None else recorded(variant)
    choice = choice_of(experiment, stage, since, machine=machine, variant=variant, row=row)
    filters = (experiment, stage, since, machine)
    if records and any(one is not None for one in filters):
        raise BadUsage("name runs, or say which with --experiment and its like; not both")
    if file is not None:
        check_place(file, force=force)
    content = _exported(
        _wanted(records, choice, runs_dir(runs_in)),
        form,
        choice,
        with_samples=with_samples,
    )
    if file is None:
        sys.stdout.flush()
        sys.stdout.buffer.write(content)
    else:
        write_whole(file, content, force=force)


@app.command()
def pack(
    records: Annotated[
        list[str],
        typer.Argument(
            metavar="RUN", help=RUNS_HELP, show_default=False, autocompletion=complete.runs
        ),
    ],
    *,
    to: Annotated[
        Path,
        typer.Option("--to", metavar="DIR", help="Where the archives are; made if missing."),
    ],
    runs_in: RunsOption = None,
) -> None:
    """Copy records into archives, to keep them in a repository beside the text that quotes them.

    The directory gets one archive for each experiment and type of CPU, to which later records are
    added. It takes about a twentieth of the room. Every command reads a record in an archive by
    its id, or by the path that it would have as a directory beside the archive.

    Exit status: 0; 2 if a record is not there, or a copy is there already or cannot be written.
    """
    from ream.record.pack import pack as packed  # noqa: PLC0415
    from ream.record.record import Record  # noqa: PLC0415

    runs = runs_dir(runs_in)
    for record in [Record.load(one, runs) for one in records]:
        print(packed(record, to))


def _wanted(records: list[str] | None, choice: "Choice", runs: Path) -> "list[Record]":
    """The records named, in that order; else all that fit, the oldest first."""
    from ream.history.choose import chosen  # noqa: PLC0415
    from ream.history.index import look  # noqa: PLC0415
    from ream.record.record import Record  # noqa: PLC0415

    if records:
        found = [Record.load(one, runs) for one in records]
        return list({one.path.resolve(): one for one in found}.values())
    listed = look(runs, note, Progress("read").say)
    entries = chosen(listed.entries, choice)
    cut = [one.run for one in entries if one.fault is not None]
    if damaged := [*(one.name for one in listed.damaged), *cut]:
        note(f"not exported, damaged: {', '.join(damaged)}; `ream verify` says how")
    whole = [one for one in entries if one.fault is None]
    if not whole:
        raise BadUsage(f"no run in {runs} fits; `ream history` lists what there is")
    return [Record.load(one.run, runs) for one in reversed(whole)]


def _exported(
    records: "list[Record]",
    form: "Format",
    choice: "Choice",
    *,
    with_samples: bool,
) -> bytes:
    from ream.history import export as formats  # noqa: PLC0415
    from ream.history import flat  # noqa: PLC0415

    columns, read = (flat.SAMPLES, flat.samples) if with_samples else (flat.RESULTS, flat.results)
    of = "subject" if with_samples else "variant"
    lines = (
        line
        for record in records
        for line in read(record)
        if choice.row in (None, line["row"]) and choice.variant in (None, line[of])
    )
    write = {"csv": formats.to_csv, "jsonl": formats.to_jsonl}
    return write[form](lines, columns)
