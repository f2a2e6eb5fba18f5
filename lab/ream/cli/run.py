# SPDX-License-Identifier: GPL-2.0-only
"""`ream run`: words into a request."""

from dataclasses import replace
from functools import partial
from typing import Annotated, Literal

import typer

from ream.cli import complete
from ream.cli.app import (
    BaseOption,
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
    UnconfinedOption,
    app,
    chosen_seed,
    runs_dir,
    wanted_tree,
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
from ream.cli.count import AnnotateOption, CountOption, count_of
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
from ream.cli.helped import NATIVE, OTHER, VM, HelpAllOption, Sectioned
from ream.cli.measure import run_request
from ream.errors import BadUsage
from ream.folders import given_file
from ream.paths import cache_dir
from ream.progress import Reporter


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
    variant: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[NAME=]TREE[+SERIES...]",
            help="Compare these instead, the first being `before`: TREE is a base's version, a"
            " kernel source, or before, technique or ours; SERIES is one of ours or a file."
            " Repeatable.",
            autocompletion=complete.bases,
        ),
    ] = None,
    only: Annotated[
        str | None,
        typer.Option(
            metavar="NAME,...",
            rich_help_panel=OTHER,
            help="Only these variants, and those that they are compared with.",
        ),
    ] = None,
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
            help="Verify random mixtures for this many minutes before timing.",
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
    unconfined: UnconfinedOption = False,
    beside_live: Annotated[
        bool,
        typer.Option(
            "--beside-live",
            rich_help_panel=NATIVE,
            help="Have the running kernel perform each row's program, too, in turn with the hosted"
            " kernels: how well do their times predict its own? For rows that are programs.",
        ),
    ] = False,
    base: BaseOption = None,
    tree: TreeOption = None,
    config: Annotated[
        str | None,
        typer.Option(
            metavar="FILE|NAME",
            rich_help_panel=OTHER,
            help="Configure the kernel with more options: those of a file, natively of a whole"
            " .config what costs memory management time; running, the same of the kernel that this"
            " machine runs; or distro, those of distributions.",
        ),
    ] = None,
    compiler: Annotated[
        str,
        typer.Option(
            "--cc",
            metavar="NAME|PATH",
            rich_help_panel=OTHER,
            help="What kernels are compiled with: clang, gcc-11.",
        ),
    ] = "gcc",
    arch: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            rich_help_panel=OTHER,
            help="The architecture of the kernels: x86_64 or arm64. Those that are not this"
            " machine's run under an emulator, and are counted.",
        ),
    ] = None,
    cpu: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            rich_help_panel=OTHER,
            help="The CPU that is emulated where kernels are counted; of arm64 neoverse-n1 (unless"
            " given), max or cortex-a72.",
        ),
    ] = None,
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
            help="Do every boot and every rebind even where instructions are counted.",
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
    count: CountOption = None,
    annotate: AnnotateOption = None,
    resume: ResumeOption = None,
    discard: DiscardOption = None,
    cell: CellOption = None,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
    _help_all: HelpAllOption = False,
) -> None:
    """Measure an experiment here: kernels without and with a change, side by side, all verified.

    An interrupted or killed run keeps its measurements; --resume continues it.

    Exit status: 0 measured and verified, or the given series changes nothing, 2 usage, or a patch
    that does not apply or compile, 3 cannot run here, 4 no row executes what the given series
    changes, 5 a sample's memory was wrong, 6 a tool failed.
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
    from ream.kernel.arch import arch_of, native_arch  # noqa: PLC0415
    from ream.kernel.setup import wanted_setup  # noqa: PLC0415
    from ream.kernel.source import Commit, at_commit  # noqa: PLC0415
    from ream.session.counting import SEED, once  # noqa: PLC0415
    from ream.session.request import GuestOptions, Request  # noqa: PLC0415
    from ream.variants import asked_variants, wanted_variants  # noqa: PLC0415

    whole = load(given_file(experiment))
    its = arch_of(arch or native_arch())
    count = not its.is_here if count is None else count
    stage = stage or ("native" if count else whole.stage)
    setup = wanted_setup(config, compiler, stage, its.name, step=Reporter(quiet=quiet).step)
    if cpu is not None and its.is_here and not count:
        raise BadUsage("--cpu is for what is emulated: give --count, too")
    emulated = its.cpu_model(cpu) if cpu else None
    counting = count_of(count, annotate, stage=stage, full=full)
    _only_where_hosted_is_timed(beside_live, timed=stage == "native" and counting is None)
    at = whole.at(stage, its.name)
    asked = given(at.chosen(rows or (), whole.rows, beside_live=beside_live), settings or ())
    asked = (
        once(asked, stage, launches=launches, rounds=rounds)
        if counting
        else asked.resized(launches=launches, rounds=rounds)
    )
    finer = stage == "native" and counting is None and (series or control)
    if finer and launches is None and rounds is None:
        asked = asked.finer(at.unasked())
    if stage == "live" and (series or per_patch or base or tree or config or compiler != "gcc"):
        raise BadUsage(
            "--series, --per-patch, --base, --tree, --config and --cc: the live stage runs no other"
            " kernel"
        )
    slowed = control_of(control, stage, counted=counting is not None)
    source = wanted_tree(base, tree)
    if variant:
        if series or per_patch or only or stage != "native":
            raise BadUsage(
                "--variant says all that is compared, natively: leave out --series, --per-patch,"
                " --only and other stages"
            )
        source, variants = asked_variants(
            asked, variant, tree=source, version=series_version, control=slowed is not None
        )
        choose = None
    else:
        choose = partial(
            wanted_variants,
            only=only,
            user_series=series or (),
            version=series_version,
            repository=source.repository if isinstance(source, Commit) else tree,
            per_patch=per_patch,
            control=slowed is not None,
        )
        variants = choose(asked)
        patches = [patch for one in variants if one.given for patch in one.patches]
        source = at_commit(source, {one.ground.commit for one in patches if one.ground.commit})
    in_guests = counting is not None and stage == "vm"
    guest = guest_options(
        accel="tcg" if in_guests and accel == "auto" else accel,
        icount=True if in_guests else icount,
        full=full and (in_guests or counting is None),
        keep=asked_for(rounds, launches) if stage == "vm" else (),
        cpus=cpus,
        memory=memory,
        numa=numa,
        distances=numa_distance,
        append=append,
        qemu_opts=qemu_opts,
    )
    guest = replace(guest, arch=its.name, cpu=emulated) if stage == "vm" else guest
    if stage != "vm" and guest != GuestOptions():
        raise BadUsage("--accel, --icount, --full, --cpus and what else says vm need --stage vm")
    if stage != "native" and threads is not None:
        raise BadUsage("--threads is for the native stage; --cpus gives a guest its CPUs")
    request = Request(
        experiment=asked,
        stage=stage,
        variants=variants,
        tree=source,
        asked=bool(variant),
        choose=choose,
        threads=threads,
        seed=chosen_seed(SEED if counting and seed is None else seed),
        runs=runs_dir(output),
        cache=cache_dir(),
        command="",
        guest=guest,
        setup=setup,
        control=slowed,
        count=counting,
        measure_anyway=measure_anyway,
        verify_minutes=verify_minutes,
        confined=not unconfined,
        beside_live=beside_live,
        cpu=cpu,
        stable=stable_of(
            until_stable,
            planned=asked.launches,
            max_launches=max_launches,
            max_minutes=max_minutes,
        ),
    )
    run_request(request, as_json=as_json, dry_run=dry_run, quiet=quiet)


def _only_where_hosted_is_timed(beside_live: bool, *, timed: bool) -> None:
    if beside_live and not timed:
        raise BadUsage("--beside-live times the native stage's rows: leave out --stage and --count")
