# SPDX-License-Identifier: GPL-2.0-only
"""`ream plan` and `ream merge`: a run over more machines, and what its records say together."""

import json
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from ream.cli import complete
from ream.cli.app import (
    AnswerJsonOption,
    BaseOption,
    LaunchesOption,
    RoundsOption,
    RowsOption,
    SeedOption,
    SeriesOption,
    SeriesVersionOption,
    SetOption,
    ThreadsOption,
    TreeOption,
    app,
    chosen_seed,
    runs_dir,
)
from ream.cli.guest import AccelOption, CpusOption, MemoryOption, asked_for, guest_options
from ream.cli.helped import HOSTS, HelpAllOption, Sectioned
from ream.counted import counted
from ream.errors import BadUsage
from ream.folders import given_file
from ream.paths import cache_dir

if TYPE_CHECKING:
    from ream.fleet.cell import TreeWanted
    from ream.fleet.emit import Assignment


@app.command(cls=Sectioned)
def plan(
    experiments: Annotated[
        list[str],
        typer.Argument(
            metavar="EXPERIMENT",
            help="Names (`ream list`), or .toml files of your own.",
            autocompletion=complete.experiments,
        ),
    ],
    *,
    emit: Annotated[
        Literal["jsonl", "parallel", "sbatch"],
        typer.Option(
            help="jsonl: cells, one a line; parallel: a script for GNU parallel over ssh;"
            " sbatch: a job array for Slurm."
        ),
    ] = "jsonl",
    directory: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="DIR",
            help="A new directory for the plan; jsonl without it goes to standard output.",
        ),
    ] = None,
    stage: Annotated[
        Literal["native", "vm", "live"] | None,
        typer.Option(help="As for `ream run`.", show_default=False),
    ] = None,
    rows: RowsOption = None,
    settings: SetOption = None,
    launches: LaunchesOption = None,
    rounds: RoundsOption = None,
    seed: SeedOption = None,
    repeat: Annotated[
        int,
        typer.Option(
            min=1, max=1000, metavar="N", help="Cells of each row, with seeds of their own."
        ),
    ] = 1,
    series: SeriesOption = None,
    series_version: SeriesVersionOption = None,
    base: BaseOption = None,
    tree: TreeOption = None,
    threads: ThreadsOption = None,
    accel: AccelOption = "auto",
    cpus: CpusOption = None,
    memory: MemoryOption = None,
    hosts: Annotated[
        str | None,
        typer.Option(
            metavar="A,B|FILE",
            rich_help_panel=HOSTS,
            help="parallel: [user@]host[:port] of each machine.",
        ),
    ] = None,
    each_host: Annotated[
        bool,
        typer.Option(
            "--each-host",
            rich_help_panel=HOSTS,
            help="Every host does every cell; else each cell goes to one of them.",
        ),
    ] = False,
    ream: Annotated[
        str,
        typer.Option(
            metavar="PATH",
            rich_help_panel=HOSTS,
            help="The command on a host; ~/ is the home there.",
        ),
    ] = "ream",
    timeout: Annotated[
        int | None,
        typer.Option(min=1, metavar="SECONDS", rich_help_panel=HOSTS, help="Of one cell; 6 hours."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be planned, and write nothing.")
    ] = False,
    _help_all: HelpAllOption = False,
) -> None:
    """Divide a run into cells, each a row with all of its variants, that any machine can run.

    A cell says all there is to do in one line of JSON; `ream run --cell FILE` does it, and refuses
    where the checkout would measure something else than was planned. What is emitted says how to
    run it, how to rerun only what is missing, and how to merge the records.

    Exit status: 0 planned, 2 usage.
    """
    from ream.experiment import load  # noqa: PLC0415
    from ream.fleet.emit import TIMEOUT_S, Assignment, parse_hosts  # noqa: PLC0415
    from ream.fleet.plan import Wish, plan_cells  # noqa: PLC0415

    names = () if hosts is None else parse_hosts(hosts)
    if each_host and not names:
        raise BadUsage("--each-host needs --hosts: which machines are to do every cell")
    if names and emit in ("jsonl", "sbatch") and not each_host:
        raise BadUsage(f"--hosts: {emit} leaves it to others where a cell runs; leave it out")
    if directory is None and emit != "jsonl" and not dry_run:
        raise BadUsage(f"--emit {emit} writes several files: name a new directory with -o DIR")
    cells = plan_cells(
        Wish(
            experiments=tuple(load(given_file(name)) for name in experiments),
            stage=stage,
            rows=tuple(rows or ()),
            settings=tuple(settings or ()),
            launches=launches,
            rounds=rounds,
            seed=chosen_seed(seed),
            repeat=repeat,
            machines=len(names) if each_host else 1,
            tree=_tree(base, tree),
            series=tuple(series or ()),
            series_version=series_version,
            threads=threads,
            guest=guest_options(
                accel=accel,
                cpus=cpus,
                memory=memory,
                keep=asked_for(rounds, launches),
            ),
        )
    )
    layout = Assignment(
        cells=cells, hosts=names, each=each_host, ream=ream, timeout_s=timeout or TIMEOUT_S
    )
    _put(emit, layout, directory, dry_run=dry_run)


def _put(
    form: Literal["jsonl", "parallel", "sbatch"],
    layout: "Assignment",
    directory: Path | None,
    *,
    dry_run: bool,
) -> None:
    from ream.fleet.emit import CELLS, emit, title, write  # noqa: PLC0415
    from ream.progress import Reporter  # noqa: PLC0415

    files = emit(form, layout)
    if dry_run:
        for cell in layout.cells:
            launches = counted(cell.launches, "launch", "launches")
            print(f"cell        {cell.id}: {title(cell)}; {launches}")
        for name in files if directory else ():
            print(f"file        {directory}/{name}")
        return
    reporter = Reporter()
    if directory is None:
        sys.stdout.write(files[CELLS])
        reporter.step("a line is a cell: `ream run --cell FILE` does one, `ream merge` the rest")
        return
    write(files, directory)
    count = counted(len(layout.cells), "cell")
    reporter.step(f"plan {layout.id}, {count}: {directory}")
    reporter.step(_how(form, directory))


def _how(form: str, directory: Path) -> str:
    where = shlex.quote(str(directory))
    return {
        "jsonl": f"{where}/cells.jsonl has a cell in each line, for `ream run --cell`",
        "parallel": f"sh {where}/run.sh carries it out; its first lines say more",
        "sbatch": f"(cd {where} && sbatch run.sbatch) carries it out; its first lines say more",
    }[form]


def _tree(base: str | None, path: Path | None) -> "TreeWanted":
    """What is known of the kernel source without fetching it."""
    from ream.fleet.cell import TreeWanted  # noqa: PLC0415
    from ream.kernel.base import base_named  # noqa: PLC0415
    from ream.kernel.source import LATEST, cached_tree  # noqa: PLC0415

    if base is not None and path is not None:
        raise BadUsage(f"--base {base} --tree {path}: each names the kernel source; leave one out")
    if path is not None:
        # A path is that of the hosts: it need not be here.
        return TreeWanted(path=str(path if path == LATEST else path.absolute()))
    found = cached_tree(cache_dir(), None if base is None else base_named(base))
    if found is None:
        return TreeWanted(base=base)
    return TreeWanted(base=base, key=found.key, version=found.version)


@app.command()
def merge(
    directories: Annotated[
        list[Path],
        typer.Argument(
            metavar="DIR|RESULT",
            help="Where records are, at any depth; or results of kits, of which records are made.",
        ),
    ],
    *,
    plan_file: Annotated[
        Path | None,
        typer.Option(
            "--plan", metavar="FILE", help="The plan's cells.jsonl: names cells without a record."
        ),
    ] = None,
    runs: Annotated[
        Path | None,
        typer.Option(
            "--runs", metavar="DIR", help="Where records of results go, instead of XDG_DATA_HOME."
        ),
    ] = None,
    as_json: AnswerJsonOption = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write into FILE instead.")
    ] = None,
) -> None:
    """Combine the records of several machines, by row and variant.

    Machines are the replicates: the ratio over machines is the mean of the machines' ratios, with
    an interval over machines. Records that differ in benchmark, tree or series are refused, and the
    difference is named. Damaged records are named and left out. Of a result that `ream kit`'s
    programs wrote, ordinary records are made first, once, which `ream report` and all others read.

    Exit status: 0 merged, 2 usage, a damaged result, or records that are not alike, 5 a sample's
    memory was wrong in a result, 6 another program than the kit's ran.
    """
    from ream.files import write_whole  # noqa: PLC0415
    from ream.fleet.cell import read_cells  # noqa: PLC0415
    from ream.fleet.emit import again  # noqa: PLC0415
    from ream.fleet.merge import merge_records, read_records  # noqa: PLC0415
    from ream.fleet.render import render  # noqa: PLC0415

    cells = () if plan_file is None else read_cells(plan_file)
    merged = merge_records(read_records(_with_records(directories, runs)), cells)
    command = ""
    if plan_file is not None and merged.missing:
        missing = [one.cell for one in merged.missing]
        command = again(plan_file.parent, missing, [cell.id for cell in cells])
    if as_json:
        text = json.dumps(merged.to_object(again=command or None), indent=1) + "\n"
    else:
        text = render(merged, again=command)
    if output is None:
        sys.stdout.write(text)
        return
    write_whole(output, text.encode(), force=True)  # made anew as records come in


def _with_records(places: list[Path], runs: Path | None) -> list[Path]:
    """The places with results replaced by the records that are made of them."""
    from ream.kit.contents import SUFFIX  # noqa: PLC0415

    named = [path for path in places if path.suffix == SUFFIX and not path.is_dir()]
    results = [path for path in places if path in named or path.is_file()]
    found = [path for path in places if path not in results]
    if runs is not None and not results:
        raise BadUsage("--runs is where records of results go; there is no result to read")
    if results:
        from ream.kit.merged import records_of  # noqa: PLC0415
        from ream.progress import Reporter  # noqa: PLC0415

        reporter = Reporter()
        for path in results:
            found += records_of(path, runs_dir(runs), cache=cache_dir(), reporter=reporter)
    return found
