# SPDX-License-Identifier: GPL-2.0-only
"""Earlier runs: `ream history`, `show`, `compare`, `export`, `verify`."""

import json
import os
import shlex
import sys
import textwrap
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from ream.cli import complete
from ream.cli.app import AnswerJsonOption, RunsOption, app, runs_dir
from ream.cli.page import (
    HTML,
    ForceOption,
    PagedShown,
    check_force,
    html_option,
    place_of,
    write_sheet,
)
from ream.counted import counted
from ream.errors import BadUsage
from ream.nearest import hint
from ream.width import print_hanging, width

if TYPE_CHECKING:
    from ream.history.choose import Choice
    from ream.history.entry import HistoryEntry

SLOW_S = 2.0
"""Work that takes longer says how far it is."""
MOST_ALIKE = 5

ExperimentOption = Annotated[
    str | None,
    typer.Option(
        "--experiment",
        "-e",
        metavar="NAME",
        help="Only runs of this experiment.",
        autocompletion=complete.experiments,
    ),
]
StageOption = Annotated[
    Literal["native", "vm", "live"] | None, typer.Option(help="Only runs of this stage.")
]
SinceOption = Annotated[
    str | None,
    typer.Option(metavar="DATE", help="Only later runs: 2026-11-21 (UTC), or 12h, 3d, 2w ago."),
]
MachineOption = Annotated[
    str | None,
    typer.Option(
        metavar="ID|this",
        help="Only runs of the machine with this id (or its beginning), or of this one.",
    ),
]
VariantOption = Annotated[
    str | None, typer.Option(metavar="NAME", help="Only this variant, and runs that have it.")
]
RowOption = Annotated[
    str | None,
    typer.Option(
        "--row",
        metavar="NAME",
        help="Only this row, and runs that have it.",
        autocompletion=complete.rows,
    ),
]
RUNS_HELP = "Run ids, their beginnings or ends, directories, `last`, `last-1`."


class _History(PagedShown):
    too_many = "history takes no RUN; -e, --since and --machine choose runs"


@app.command(cls=_History)
def history(
    *,
    experiment: ExperimentOption = None,
    stage: StageOption = None,
    since: SinceOption = None,
    machine: MachineOption = None,
    variant: VariantOption = None,
    row: RowOption = None,
    limit: Annotated[
        int | None, typer.Option("--limit", "-n", min=1, metavar="N", help="At most this many.")
    ] = None,
    pooled: Annotated[
        bool,
        typer.Option(
            help="Instead of runs, list the ratio of each row and variant for each type of CPU,"
            " pooled over timed native runs of the same kernels. A run is the replicate."
        ),
    ] = False,
    predict: Annotated[
        bool,
        typer.Option(
            "--predict",
            help="Instead of runs, list what runs on the other types of CPU predict for each type,"
            " and whether its own runs lie there.",
        ),
    ] = False,
    as_json: AnswerJsonOption = False,
    html: Annotated[str | None, html_option("history.html")] = None,
    force: ForceOption = False,
    runs_in: RunsOption = None,
) -> None:
    """List earlier runs, newest first, with what each found.

    A variant's number is its time over that of `before`, the geometric mean of the rows; lower is
    faster. The verdicts on published tables and the number of doubts follow. Unfinished runs come
    first, with the command that continues them, and damaged records last.

    Exit status: 0, also if there are none; 2 usage.
    """
    if html is not None and (as_json or pooled or predict):
        raise BadUsage(f"--json, --pooled and --predict have no page; {HTML} lists runs")
    check_force(html, force=force)
    from ream.experiment import recorded  # noqa: PLC0415
    from ream.history import listing  # noqa: PLC0415
    from ream.history.choose import chosen  # noqa: PLC0415
    from ream.history.index import look  # noqa: PLC0415

    path = None if html is None else place_of(html, "history.html", force=force)
    runs = runs_dir(runs_in)
    variant = None if variant is None else recorded(variant)
    if pooled or predict:
        print_it = _print_predicted if predict else _print_pooled
        print_it(runs, experiment, row=row, variant=variant, as_json=as_json)
        return
    choice = choice_of(experiment, stage, since, machine=machine, variant=variant, row=row)
    found = look(runs, note, Progress("read").say)
    entries = chosen(found.entries, choice, limit)
    cut_short = _interrupted(runs, choice)
    if as_json:
        _print(listing.history_object(entries, found.damaged, cut_short, choice=choice, runs=runs))
        return
    if html is not None:
        from ream.history.sheets import of_history  # noqa: PLC0415

        unfinished = [(str(one["run"]), _how_to_resume(one)) for one in reversed(cut_short)]
        write_sheet(path, of_history(entries, found.damaged, unfinished, choice), force=force)
        return
    lines = []
    for one in reversed(cut_short):  # there is something to be done about these
        lines += [str(one["run"]), f"    {_how_to_resume(one)}"]
    lines += [*listing.listing(entries, choice), *listing.damaged_lines(found.damaged)]
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    if not lines:
        there = f"none of the {len(found.entries)} in" if found.entries else "no record in"
        near = hint(row, {name for one in found.entries for name in one.rows}) if row else ""
        note(f"{there} {runs} {f'fits{near}' if found.entries else 'yet; `ream run` makes one'}")


def _print_pooled(
    runs: Path, experiment: str | None, *, row: str | None, variant: str | None, as_json: bool
) -> None:
    from ream.history import pooled  # noqa: PLC0415

    found = {
        place: its
        for place, its in pooled.pooled(pooled.ratios_in(runs, experiment)).items()
        if row in (None, place[1]) and variant in (None, place[2])
    }
    if as_json:
        sys.stdout.write(json.dumps(pooled.to_object(found), indent=2) + "\n")
        return
    sys.stdout.write("".join(f"{line}\n" for line in pooled.lines(found)))
    if found:
        note(pooled.how_to_read(found))
    else:
        note(f"no timed native run in {runs} has such a ratio")


def _print_predicted(
    runs: Path, experiment: str | None, *, row: str | None, variant: str | None, as_json: bool
) -> None:
    from ream.history import pooled, predict  # noqa: PLC0415

    # All rows of an experiment say how much types differ, also those that are not asked for.
    found = [
        one
        for one in predict.predictions(pooled.pooled(pooled.ratios_in(runs, experiment)))
        if row in (None, one.place[1]) and variant in (None, one.place[2])
    ]
    if as_json:
        sys.stdout.write(json.dumps(predict.to_object(found), indent=2) + "\n")
        return
    sys.stdout.write("".join(f"{line}\n" for line in predict.lines(found)))
    if not found:
        note(f"{runs} has timed native runs of too few types of CPU: it takes three")


@app.command()
def show(
    record: Annotated[
        str,
        typer.Argument(
            metavar="RUN|FILE",
            help="A run id, its beginning or end, a record's directory, `last`, `last-1`, or a file"
            " with what `ream judge --json` printed.",
            autocompletion=complete.runs,
        ),
    ] = "last",
    *,
    as_json: AnswerJsonOption = False,
    runs_in: RunsOption = None,
) -> None:
    """Show one run: its table, where its files are, and which earlier runs are like it.

    Of a file with what `ream judge --json` printed, show the judgement.

    Exit status: 0, or 2 if there is no such record or file or it is damaged.
    """
    if os.path.isfile(record):  # noqa: PTH113 # a name that is too long is no file
        _show_judgement(Path(record), as_json=as_json)
        return
    from ream.history import entry, listing  # noqa: PLC0415
    from ream.history.choose import Choice  # noqa: PLC0415
    from ream.history.index import look  # noqa: PLC0415
    from ream.record.record import Record  # noqa: PLC0415
    from ream.record.sums import SUMS, has_sums  # noqa: PLC0415
    from ream.report import table  # noqa: PLC0415
    from ream.report.contract import Summary  # noqa: PLC0415

    runs = runs_dir(runs_in)
    found = Record.load(record, runs)
    summary = Summary.from_object(found.run, source=str(found.path))
    own = entry.read(found.path)
    like: list[HistoryEntry] = []
    if own is not None and own.entry is not None:
        like = listing.alike(look(runs, note, Progress("read").say).entries, own.entry)
    files = listing.files_of(found.path)
    if as_json:
        _print(
            {
                "schema": 1,
                "run": summary.run,
                "path": str(found.path),
                "files": files,
                "alike": [listing.entry_object(one, Choice(), runs) for one in like],
                "summary": summary.to_object(),
            }
        )
        return
    sys.stdout.write(table.overview(summary))
    print(f"\nfiles in {found.path}")
    print(textwrap.fill(", ".join(files), width(), initial_indent="    ", subsequent_indent="    "))
    if own is not None and own.entry is not None and own.entry.fault is not None:
        note(f"{found.path}: {own.entry.fault}")
    if not has_sums(found.path):
        note(f"{found.path}: no {SUMS}, as of an older ream: whether it has changed is not known")
    if like:
        print(f"\nlike it: {len(like)} of the same experiment, stage and machine")
        for line in listing.listing(like[:MOST_ALIKE], Choice()):
            print_hanging(f"    {line}", 8)
        words = ["ream", "compare", found.path.name, like[0].run]
        if runs_in is not None:
            words += ["--runs", str(runs_in)]
        print(f"    `{shlex.join(words)}` sets them side by side")  # in one line, to be pasted


def _show_judgement(file: Path, *, as_json: bool) -> None:
    from ream.judge import page  # noqa: PLC0415
    from ream.judge.written import judgement_in  # noqa: PLC0415

    its = judgement_in(file)
    if as_json:
        _print(page.to_object(its))
    else:
        sys.stdout.write(page.render(its))


@app.command(cls=PagedShown)
def compare(
    records: Annotated[
        list[str],
        typer.Argument(
            metavar="RUN", help=f"Two or more. {RUNS_HELP}", autocompletion=complete.runs
        ),
    ],
    *,
    rows: Annotated[
        bool, typer.Option("--rows", help="Print each row, with the interval of each run.")
    ] = False,
    unlike: Annotated[
        bool, typer.Option("--unlike", help="Compare the runs even if they are not alike.")
    ] = False,
    as_json: AnswerJsonOption = False,
    html: Annotated[str | None, html_option("compare.html")] = None,
    force: ForceOption = False,
    runs_in: RunsOption = None,
) -> None:
    """Compare runs side by side, and pool their ratios, but never their times.

    The command refuses runs that differ in experiment, stage, unit or row parameters. A different
    machine, tree, series, compiler, configuration or benchmark (the part of ream that becomes part
    of what is run) is reported and allowed, but ratios of different code are not pooled. Every row
    and variant of two runs is tested: the output marks those that differ by more than their
    launches explain, and says how many lines were not tested, and why.

    Exit status: 0; 2 if runs are not alike, have no ratio, or cannot be read; 6 if samples of one
    are damaged.
    """
    if as_json and html is not None:
        raise BadUsage(f"--json and {HTML} are two answers; ask for one of them")
    check_force(html, force=force)
    from ream.history import comparison  # noqa: PLC0415
    from ream.history.compare import compare as side_by_side  # noqa: PLC0415
    from ream.record.record import Record  # noqa: PLC0415

    path = None if html is None else place_of(html, "compare.html", force=force)
    runs = runs_dir(runs_in)
    found = side_by_side([Record.load(one, runs) for one in records], unlike=unlike)
    if html is not None:
        from ream.history.sheets import of_compared  # noqa: PLC0415

        write_sheet(path, of_compared(found), force=force)
    elif as_json:
        _print(comparison.to_object(found))
    else:
        sys.stdout.write((comparison.text if rows else comparison.overview)(found))


@app.command()
def verify(
    *,
    runs_in: RunsOption = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Check the records; write no index.")
    ] = False,
) -> None:
    """Build the history's index again, and check every record down to its samples.

    The index only makes lists fast. Every file is checked against its checksum, and every number of
    run.json is computed again from the samples. A difference is reported with both values, and the
    record is left unchanged. Medians, numbers of samples and ratios follow from samples alone. Of
    the other fields, those that another version of ream computed may differ for that reason, so
    they are named apart and are no damage.

    Exit status: 0 all are whole, 6 some are damaged, 2 the index cannot be written.
    """
    from ream.history.entry import stamps  # noqa: PLC0415
    from ream.history.index import index_path, rebuild  # noqa: PLC0415

    runs = runs_dir(runs_in)
    progress = Progress("checked")
    if not dry_run:
        rebuild(runs, Progress("indexed").say)
    names = [stamp.name for stamp in stamps(runs)]
    found = Counter[str]()
    for number, name in enumerate(names, start=1):
        found.update(_checked(runs / name))
        progress.say(number, len(names))
    where = "no index was written" if dry_run else f"index: {index_path(runs)}"
    whole = len(names) - found[DAMAGED]
    note(f"{whole} of {counted(len(names), 'record')} in {runs} are whole; {where}")
    if not names:
        note("--runs DIR names another folder of records, as docs/records in a checkout")
    for what, number in sorted(found.items()):
        if what != DAMAGED:
            note(f"{number} {what}")
    if found[DAMAGED]:
        raise typer.Exit(6)


DAMAGED = "damaged"
OLD = "without checksums, of an older ream: a change of their files cannot be seen"
EDITED = "its numbers do not follow from its samples"
UNSEEN = ", although its checksums are right"
CHANGED = "one of the two was changed after the run"
OTHER = "with other numbers than this version computes: another made them, which may be why"


def _checked(path: Path) -> Iterator[str]:
    """Print what is wrong with a record, and what another version computed; yields each kind."""
    from ream.errors import ReamError  # noqa: PLC0415
    from ream.history.entry import faults, is_there  # noqa: PLC0415
    from ream.history.recompute import Recomputed, recompute  # noqa: PLC0415
    from ream.record.record import Record  # noqa: PLC0415
    from ream.record.sums import has_sums  # noqa: PLC0415

    its, again = faults(path), Recomputed()
    if not its:
        try:
            again = recompute(Record.load(str(path.absolute()), path.parent))
        except ReamError as cause:
            if not is_there(path):
                return
            its = (str(cause).splitlines()[0],)
    for fault in (*its, *again.faults):
        print(f"{path.name}: {fault}")
    if again.faults:
        print(f"{path.name}: {EDITED}{UNSEEN if has_sums(path) else ''}: {CHANGED}")
    if its or again.faults:
        yield DAMAGED
    elif not has_sums(path):
        yield OLD
    if again.other_version is not None:
        note(f"{path.name}: made by another version of ream: {again.other_version}")
        yield OTHER


class Progress:
    """Says how far a long work is and when it will end, and nothing of a short one."""

    def __init__(self, done_to_it: str) -> None:
        self._began = self._said = time.monotonic()
        self._done_to_it = done_to_it

    def say(self, number: int, of: int) -> None:
        if time.monotonic() - self._said >= SLOW_S:
            self._said = time.monotonic()
            left_s = (self._said - self._began) / number * (of - number)
            note(
                f"{self._done_to_it} {number} of {counted(of, 'record')}, about {left_s:.0f} s left"
            )


def choice_of(
    experiment: str | None,
    stage: str | None,
    since: str | None,
    *,
    machine: str | None,
    variant: str | None,
    row: str | None,
) -> "Choice":
    from ream.history.choose import Choice, parse_machine, parse_since  # noqa: PLC0415

    return Choice(
        experiment=experiment,
        stage=stage,
        since=None if since is None else parse_since(since),
        machine=None if machine is None else parse_machine(machine),
        variant=variant,
        row=row,
    )


def _interrupted(runs: Path, choice: "Choice") -> "list[dict[str, Any]]":
    """Return the unfinished runs; their samples of a row are not summarised yet."""
    from ream.record.partial import interrupted  # noqa: PLC0415

    if choice.machine is not None or choice.variant is not None or choice.row is not None:
        return []
    return [
        {**asdict(one), "path": str(one.path), "resume": one.resume, "discard": one.discard}
        for one in interrupted(runs)
        if choice.experiment in (None, one.experiment) and choice.stage in (None, one.stage)
    ]


def _how_to_resume(one: "dict[str, Any]") -> str:
    samples = counted(one["nr_samples"], "sample")
    if one["running"]:
        return f"still running, {samples} so far"
    return (
        f"INTERRUPTED after {samples}: `{one['resume']}` goes on with it,"
        f" `{one['discard']}` removes it"
    )


def note(text: str) -> None:
    print(f"ream: {text}", file=sys.stderr)


def _print(value: object) -> None:
    print(json.dumps(value, indent=1))
