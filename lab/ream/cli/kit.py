# SPDX-License-Identifier: GPL-2.0-only
"""`ream kit`: programs that measure published rows on a machine without ream."""

import shlex
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ream.cli import complete
from ream.cli.app import (
    BaseOption,
    RoundsOption,
    RowsOption,
    SeedOption,
    SeriesOption,
    SeriesVersionOption,
    SetOption,
    TreeOption,
    app,
    chosen_seed,
    wanted_tree,
)
from ream.cli.continued import QuietOption
from ream.cli.helped import HelpAllOption, Sectioned
from ream.errors import BadUsage, CannotRunHere
from ream.folders import given_file, names
from ream.paths import EXPERIMENTS, cache_dir

if TYPE_CHECKING:
    from ream.experiment import Experiment

LAUNCHES = 3
MEMORY = "4GiB"


@app.command(cls=Sectioned)
def kit(
    file: Annotated[
        Path,
        typer.Argument(metavar="FILE.tar.gz", help="The archive to write.", show_default=False),
    ],
    *,
    experiments: Annotated[
        list[str] | None,
        typer.Option(
            "--experiment",
            metavar="NAME",
            help="Only this experiment; repeatable. Otherwise all with rows of published tables.",
            autocompletion=complete.experiments,
        ),
    ] = None,
    rows: RowsOption = None,
    settings: SetOption = None,
    minutes: Annotated[
        int,
        typer.Option(
            min=1, max=24 * 60, metavar="N", help="How long it may measure on the other machine."
        ),
    ] = 10,
    memory: Annotated[
        str,
        typer.Option(
            metavar="SIZE",
            help="Memory that the other machine has available; rows are made smaller to fit.",
        ),
    ] = MEMORY,
    launches: Annotated[
        int,
        typer.Option(
            min=1, max=100, metavar="N", help="Programs of each kind, each with its own layout."
        ),
    ] = LAUNCHES,
    rounds: RoundsOption = None,
    series: SeriesOption = None,
    series_version: SeriesVersionOption = None,
    base: BaseOption = None,
    tree: TreeOption = None,
    arch: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="The architecture of the other machine: x86_64 or arm64; by default this one's.",
        ),
    ] = None,
    seed: SeedOption = None,
    force: Annotated[bool, typer.Option("--force", help="Replace FILE if it exists.")] = False,
    quiet: QuietOption = False,
    _help_all: HelpAllOption = False,
) -> None:
    """Make a kit: an archive that measures the rows of published tables on another machine.

    Its owner unpacks it and runs `sh run.sh`, which needs no root, network, compiler or Python, and
    writes one result file. `ream merge FILE.result` makes ordinary records of that. Kernels are
    built and checked here, and every sample is verified there. One round of each program is tried
    here, and so many rounds are planned as the minutes allow.

    Exit status: 0 written, 2 usage, 3 it cannot be built here, 5 a kernel's memory was wrong,
    6 a tool failed.
    """
    from ream.kernel.arch import arch_of, native_arch  # noqa: PLC0415
    from ream.kernel.setup import wanted_setup  # noqa: PLC0415
    from ream.kit.make import check_tools, make_kit  # noqa: PLC0415
    from ream.progress import Reporter  # noqa: PLC0415
    from ream.session.request import Request  # noqa: PLC0415
    from ream.size import parse_size  # noqa: PLC0415
    from ream.variants import wanted_variants  # noqa: PLC0415

    if (rows or settings) and not experiments:
        raise BadUsage("--row and --set are of an experiment: name it with --experiment")
    its = arch_of(arch or native_arch())
    check_tools(its)
    choose = partial(
        wanted_variants,
        only=None,
        user_series=series or (),
        version=series_version,
        repository=tree,
    )
    number = chosen_seed(seed)
    requests = [
        Request(
            experiment=one,
            stage="native",
            variants=choose(one),
            choose=choose,
            tree=wanted_tree(base, tree),
            threads=None,
            seed=number,
            runs=Path(),
            cache=cache_dir(),
            command=shlex.join(["ream", *sys.argv[1:]]),
            setup=wanted_setup(None, "gcc", "native", its.name),
        )
        for one in _asked(
            experiments,
            rows=rows,
            settings=settings,
            launches=launches,
            rounds=rounds,
            arch=its.name,
        )
    ]
    reporter = Reporter(quiet=quiet)
    nr_bytes = make_kit(
        requests,
        file,
        minutes=minutes,
        memory_bytes=parse_size(memory),
        cache=cache_dir(),
        force=force,
        reporter=reporter,
    )
    reporter.step(f"{file}: {nr_bytes / (1 << 20):.1f} MiB; on the other machine: `sh run.sh`")


def _asked(
    asked: list[str] | None,
    *,
    rows: list[str] | None,
    settings: list[str] | None,
    launches: int,
    rounds: int | None,
    arch: str,
) -> "list[Experiment]":
    """The experiments with the rows that are wanted of them.

    Raises BadUsage for what there is not, CannotRunHere if nothing is hosted of an architecture.
    """
    from ream.experiment import given, load  # noqa: PLC0415
    from ream.stage.hosted import programs_of  # noqa: PLC0415

    found = []
    for name in asked or names():
        whole = load(given_file(name))
        if whole.folder.parent != EXPERIMENTS:
            raise BadUsage(f"--experiment {name}: kits are of this checkout's own experiments")
        native = [row for row in whole.rows if row.stage == "native"]
        hosted = programs_of(whole) if native else ()
        programs = [one for one in hosted if arch in one.arches]
        if not programs:
            if asked and not hosted:
                raise BadUsage(f"--experiment {name}: it has no programs that a kit could hold")
            if asked:
                raise CannotRunHere(f"--arch {arch}: no kernels of it are hosted by {name}")
            continue
        its = whole.at("native", arch)
        if rows:
            its = its.only(rows, whole.rows)
        else:
            its = its.unasked()
            published = [row.name for row in its.rows if row.published]
            if not published and not asked:
                continue
            its = its.only(published, whole.rows) if published else its
        here = [row.name for row in its.rows if any(one.runs(row) for one in programs)]
        if here:
            its = given(its.only(here, whole.rows), settings or ())
            found.append(its.resized(launches=launches, rounds=rounds))
    if not found:
        raise BadUsage("no row is left: name an --experiment, or other rows")
    return found
