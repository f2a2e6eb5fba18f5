# SPDX-License-Identifier: GPL-2.0-only
"""`ream run`: words into a request."""

import json
import shlex
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from ream.cli.app import (
    DryRunOption,
    ExperimentArgument,
    JsonOption,
    LaunchesOption,
    OutputOption,
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
from ream.cli.continued import (
    CellOption,
    ControlOption,
    DiscardOption,
    MaxLaunchesOption,
    MaxMinutesOption,
    QuietOption,
    ResumeOption,
    UntilStableOption,
    VerboseOption,
    control_of,
    go_on,
    instead_of_a_plan,
    show_more,
    stable_of,
)
from ream.cli.guest import (
    AccelOption,
    AppendOption,
    CpusOption,
    DistanceOption,
    MemoryOption,
    NumaOption,
    QemuOption,
    asked_for,
    guest_options,
)
from ream.cli.helped import NATIVE, VM, HelpAllOption, Sectioned
from ream.errors import BadUsage, VerificationFailed
from ream.folders import given_file
from ream.paths import cache_dir

if TYPE_CHECKING:
    from ream.report.contract import Summary
    from ream.session.request import Request


@app.command(cls=Sectioned)
def run(
    context: typer.Context,
    experiment: ExperimentArgument = None,
    *,
    stage: Annotated[
        Literal["native", "vm", "live"] | None,
        typer.Option(
            help="In a plain program, in QEMU, or on this kernel. native: the kernel's objects in"
            " a plain program, at full speed; vm: whole kernels in QEMU; live: the kernel that this"
            " machine runs. Unless given, the one that its file says, else native.",
            show_default=False,
        ),
    ] = None,
    rows: RowsOption = None,
    settings: SetOption = None,
    series: SeriesOption = None,
    series_version: SeriesVersionOption = None,
    per_patch: Annotated[
        bool, typer.Option("--per-patch", help="Also measure every prefix of the series.")
    ] = False,
    control: ControlOption = None,
    verify_minutes: Annotated[
        float,
        typer.Option(
            metavar="MIN",
            min=0,
            rich_help_panel=NATIVE,
            help="Try random mixtures for so many minutes before timing.",
        ),
    ] = 0.0,
    measure_anyway: Annotated[
        bool,
        typer.Option(
            "--measure-anyway",
            rich_help_panel=NATIVE,
            help="Also measure a series that changes nothing that a row executes.",
        ),
    ] = False,
    tree: TreeOption = None,
    threads: ThreadsOption = None,
    rounds: RoundsOption = None,
    launches: LaunchesOption = None,
    seed: SeedOption = None,
    as_json: JsonOption = False,
    output: OutputOption = None,
    dry_run: DryRunOption = False,
    accel: AccelOption = "auto",
    icount: Annotated[
        bool | None,
        typer.Option(
            "--icount/--no-icount",
            rich_help_panel=VM,
            help="Under TCG: count instructions (the default there), or print emulated times.",
            show_default=False,
        ),
    ] = None,
    full: Annotated[
        bool,
        typer.Option(
            "--full",
            rich_help_panel=VM,
            help="Every boot and every rebind even where they only count.",
        ),
    ] = False,
    cpus: CpusOption = None,
    memory: MemoryOption = None,
    numa: NumaOption = None,
    numa_distance: DistanceOption = None,
    append: AppendOption = None,
    qemu_opts: QemuOption = None,
    until_stable: UntilStableOption = None,
    max_launches: MaxLaunchesOption = None,
    max_minutes: MaxMinutesOption = None,
    resume: ResumeOption = None,
    discard: DiscardOption = None,
    cell: CellOption = None,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
    _help_all: HelpAllOption = False,
) -> None:
    """Measure an experiment here: before, published and ours side by side, every sample verified.

    A run that is interrupted or killed keeps what it has measured: --resume goes on with it.

    Exit status: 0 measured and verified, 2 usage, 3 cannot run here, 5 a sample's memory was wrong,
    6 a tool failed.
    """
    show_more(verbose)
    if (other := instead_of_a_plan(context)) is not None:
        go_on(
            other,
            resume=resume,
            discard=discard,
            cell=cell,
            output=output,
            as_json=as_json,
            dry_run=dry_run,
            quiet=quiet,
        )
        return
    # Imported here: numpy and pydantic take longer than printing the help.
    from ream.experiment import given, load  # noqa: PLC0415
    from ream.session.request import GuestOptions, Request  # noqa: PLC0415
    from ream.variants import choose_variants  # noqa: PLC0415

    whole = load(given_file(experiment))
    stage = stage or whole.stage
    asked = whole.at(stage)
    asked = asked.only(rows, whole.rows) if rows else asked.unasked()
    asked = given(asked, settings or ()).resized(launches=launches, rounds=rounds)
    if stage == "native" and (series or control) and launches is None and rounds is None:
        asked = asked.finer(whole.at(stage).unasked())
    if stage == "live" and (series or per_patch or tree):
        raise BadUsage("--series, --per-patch and --tree: the live stage runs no other kernel")
    slowed = control_of(control, stage)
    variants = choose_variants(
        asked,
        user_series=series or (),
        version=series_version,
        repository=tree,
        per_patch=per_patch,
        control=slowed is not None,
    )
    guest = guest_options(
        accel=accel,
        icount=icount,
        full=full,
        keep=asked_for(rounds, launches) if stage == "vm" else (),
        cpus=cpus,
        memory=memory,
        numa=numa,
        distances=numa_distance,
        append=append,
        qemu_opts=qemu_opts,
    )
    if stage != "vm" and guest != GuestOptions():
        raise BadUsage("--accel, --icount, --full, --cpus and what else says vm need --stage vm")
    if stage != "native" and threads is not None:
        raise BadUsage("--threads is for the native stage; --cpus gives a guest its CPUs")
    request = Request(
        experiment=asked,
        stage=stage,
        variants=variants,
        tree=tree,
        threads=threads,
        seed=chosen_seed(seed),
        runs=runs_dir(output),
        cache=cache_dir(),
        command="",
        guest=guest,
        control=slowed,
        measure_anyway=measure_anyway,
        verify_minutes=verify_minutes,
        stable=stable_of(
            until_stable,
            planned=asked.launches,
            max_launches=max_launches,
            max_minutes=max_minutes,
        ),
    )
    run_request(request, as_json=as_json, dry_run=dry_run, quiet=quiet)


def run_request(request: "Request", *, as_json: bool, dry_run: bool, quiet: bool = False) -> None:
    """Do what is asked, and print the table or the object; or say what would be done.

    Raises what `run_session` raises, and VerificationFailed in the end if it went on without a
    series that is wrong.
    """
    from dataclasses import replace  # noqa: PLC0415

    from ream.progress import Reporter  # noqa: PLC0415
    from ream.session.dry_run import plan_text  # noqa: PLC0415
    from ream.session.run import run_session  # noqa: PLC0415

    if dry_run:
        print(plan_text(request))
        return
    reporter = Reporter(quiet=quiet)
    request = replace(request, command=request.command or _repeat(request.seed))
    outcome = run_session(request, reporter)
    print_summary(outcome.summary, as_json=as_json)
    reporter.step(f"record: {outcome.path}")
    if outcome.summary.wrong:
        raise VerificationFailed("\n".join(outcome.summary.wrong_words()))


def print_summary(summary: "Summary", *, as_json: bool) -> None:
    """The table of a run, or its object."""
    from ream.report import table  # noqa: PLC0415

    if as_json:
        print(json.dumps(summary.to_object(), indent=1))
    else:
        sys.stdout.write(table.render(summary))


def _repeat(seed: int, argv: Sequence[str] | None = None) -> str:
    """The command line that repeats this run, seed and all."""
    words = list(sys.argv[1:] if argv is None else argv)
    if not any(word == "--seed" or word.startswith("--seed=") for word in words):
        words += ["--seed", str(seed)]
    return shlex.join(["ream", *words])
