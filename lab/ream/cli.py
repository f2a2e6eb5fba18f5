# SPDX-License-Identifier: GPL-2.0-only
"""The command line: what users type, and the exit codes they get."""

import json
import logging
import secrets
import shlex
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from ream import __version__
from ream.errors import BadUsage, ReamError
from ream.paths import EXPERIMENTS, PUBLISHED, cache_dir, data_dir

if TYPE_CHECKING:
    from ream.experiment import Experiment
    from ream.session.request import GuestOptions, Request

log = logging.getLogger("ream")

EXIT_BUG = 70  # EX_SOFTWARE
EXIT_INTERRUPTED = 130
EXIT_BROKEN_PIPE = 141

SEED_BITS = 32
DEFAULT_EXPERIMENT = "zone-device"

app = typer.Typer(
    name="ream",
    help="Find out whether a faster way to initialise, fork, migrate or compact memory holds on"
    " this machine, with the real kernel code.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=True,
    rich_markup_mode=None,
)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"ream {__version__}")
        raise typer.Exit


@app.callback()
def options(
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Show every command that is run.")
    ] = False,
    _version_option: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Set what holds for every command."""
    logging.basicConfig(
        level=logging.DEBUG if verbose else logging.WARNING, format="ream: %(message)s"
    )


def _experiment_path(name: str) -> Path:
    known = sorted(path.stem for path in EXPERIMENTS.glob("*.toml"))
    if name in known:
        return EXPERIMENTS / f"{name}.toml"
    if (given := Path(name)).suffix == ".toml":
        return given
    raise BadUsage(f"no experiment {name!r}; there is {', '.join(known)}, or give a .toml file")


def _runs_dir(output: Path | None) -> Path:
    return output if output is not None else data_dir() / "runs"


ExperimentArgument = Annotated[
    str, typer.Argument(help="Its name (`ream list`), or a .toml file of your own.")
]
OutputOption = Annotated[
    Path | None,
    typer.Option(
        "--output", "-o", metavar="DIR", help="Where records are kept instead of XDG_DATA_HOME."
    ),
]


SeriesOption = Annotated[
    list[Path] | None,
    typer.Option(
        metavar="FILE|DIR|MBOX", help="Your patches on the base, as one more variant; repeatable."
    ),
]
TreeOption = Annotated[
    Path | None,
    typer.Option(
        metavar="PATH",
        help="Kernel tree to use instead of Debian's: a directory, a tar ball, a git tree.",
    ),
]
AccelOption = Annotated[
    Literal["auto", "kvm", "tcg"],
    typer.Option(help="vm: auto is KVM where a guest really boots under it, else TCG, emulated."),
]
CpusOption = Annotated[
    int | None, typer.Option("--cpus", min=1, metavar="N", help="vm: CPUs of a guest.")
]
MemoryOption = Annotated[
    str | None,
    typer.Option("--memory", "-m", metavar="SIZE", help="vm: memory of a guest, as 106GiB."),
]
NumaOption = Annotated[
    list[str] | None,
    typer.Option("--numa", metavar="SIZE,cpus=A-B", help="vm: a NUMA node; repeatable."),
]
DistanceOption = Annotated[
    list[str] | None,
    typer.Option("--numa-distance", metavar="A,B=N", help="vm: between two nodes; repeatable."),
]
AppendOption = Annotated[
    list[str] | None,
    typer.Option("--append", metavar="WORD", help="vm: one more word for the kernel; repeatable."),
]
QemuOption = Annotated[
    str | None, typer.Option("--qemu-opts", metavar="WORDS", help="vm: more options for QEMU.")
]


@app.command()
def run(
    experiment: ExperimentArgument = DEFAULT_EXPERIMENT,
    *,
    stage: Annotated[
        Literal["native", "vm", "live"] | None,
        typer.Option(
            help="native: the kernel's objects in a plain program, at full speed; vm: whole"
            " kernels in QEMU; live: the kernel this machine runs. Unless given: vm of compact,"
            " native of all others.",
            show_default=False,
        ),
    ] = None,
    rows: Annotated[
        list[str] | None, typer.Option("--row", metavar="NAME", help="Only this row; repeatable.")
    ] = None,
    series: SeriesOption = None,
    per_patch: Annotated[
        bool, typer.Option("--per-patch", help="Also measure every prefix of the series.")
    ] = False,
    tree: TreeOption = None,
    size: Annotated[
        str | None, typer.Option(metavar="SIZE", help="One row of your own: device size, as 16GiB.")
    ] = None,
    order: Annotated[
        int, typer.Option(metavar="N", help="With --size: order of its compound pages.")
    ] = 0,
    memory_type: Annotated[
        str, typer.Option("--type", metavar="TYPE", help="With --size: its MEMORY_DEVICE_ type.")
    ] = "FS_DAX",
    altmap: Annotated[
        bool, typer.Option("--altmap", help="With --size: the map lies on the device (map=dev).")
    ] = False,
    pre_state: Annotated[
        Literal["evicted", "dirty"], typer.Option(help="With --size: what the caches hold.")
    ] = "evicted",
    threads: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Use no more CPUs than this.")
    ] = None,
    rounds: Annotated[
        int | None, typer.Option(metavar="N", help="Rounds of every row in each launch.")
    ] = None,
    launches: Annotated[
        int | None, typer.Option(metavar="N", help="Fresh starts, each with its own layout.")
    ] = None,
    seed: Annotated[
        int | None, typer.Option(min=0, metavar="S", help="Of every random choice; repeats a run.")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object (docs/format.md), no table.")
    ] = False,
    output: OutputOption = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be done, and do nothing.")
    ] = False,
    accel: AccelOption = "auto",
    icount: Annotated[
        bool | None,
        typer.Option(
            "--icount/--no-icount",
            help="vm under TCG: count instructions (the default there), or tell emulated times.",
            show_default=False,
        ),
    ] = None,
    full: Annotated[
        bool,
        typer.Option("--full", help="vm: every boot and every rebind even where they only count."),
    ] = False,
    cpus: CpusOption = None,
    memory: MemoryOption = None,
    numa: NumaOption = None,
    numa_distance: DistanceOption = None,
    append: AppendOption = None,
    qemu_opts: QemuOption = None,
) -> None:
    """Measure an experiment here: before, published and ours side by side, every sample verified.

    Exit status: 0 measured and verified, 2 usage, 3 cannot run here, 5 a sample's memory was wrong,
    6 a tool failed.
    """
    # Imported here: numpy and pydantic take longer than printing the help.
    from ream.experiment import ZoneDevice, load, make_row  # noqa: PLC0415
    from ream.session.request import GuestOptions, Request  # noqa: PLC0415
    from ream.variants import choose_variants  # noqa: PLC0415

    whole = load(_experiment_path(experiment))
    stage = stage or whole.stage
    asked = whole.at(stage)
    if size is not None:
        if not isinstance(asked, ZoneDevice):
            raise BadUsage(f"--size describes a device; choose rows of {asked.name} with --row")
        asked = asked.single(
            make_row(
                {
                    "name": "custom",
                    "stage": stage,
                    "device_bytes": size,
                    "order": order,
                    "type": memory_type,
                    "altmap": altmap,
                    "pre_state": pre_state,
                    "rounds": max(row.rounds for row in asked.rows),
                }
            )
        )
    elif order or altmap or memory_type != "FS_DAX" or pre_state != "evicted":
        raise BadUsage("--order, --type, --altmap and --pre-state describe a row made by --size")
    if rows:
        asked = asked.only(rows)
    asked = asked.resized(launches=launches, rounds=rounds)
    if stage == "live" and (series or per_patch or tree):
        raise BadUsage("--series, --per-patch and --tree: the live stage runs no other kernel")
    variants = choose_variants(asked, user_series=series or (), per_patch=per_patch)
    guest = _guest_options(
        accel=accel,
        icount=icount,
        full=full,
        keep_rounds=stage == "vm" and rounds is not None,
        keep_launches=stage == "vm" and launches is not None,
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
        seed=secrets.randbits(SEED_BITS) if seed is None else seed,
        runs=_runs_dir(output),
        cache=cache_dir(),
        command="",
        guest=guest,
    )
    _run(request, as_json=as_json, dry_run=dry_run)


def _guest_options(
    *,
    accel: Literal["auto", "kvm", "tcg"],
    cpus: int | None,
    memory: str | None,
    numa: Sequence[str] | None,
    distances: Sequence[str] | None,
    append: Sequence[str] | None,
    qemu_opts: str | None,
    icount: bool | None = None,
    full: bool = False,
    keep_rounds: bool = False,
    keep_launches: bool = False,
) -> "GuestOptions":
    from ream.experiment import parse_size  # noqa: PLC0415
    from ream.session.request import GuestOptions  # noqa: PLC0415
    from ream.stage.qemu import parse_distance, parse_node  # noqa: PLC0415

    return GuestOptions(
        accel=accel,
        icount=icount,
        full=full,
        keep_rounds=keep_rounds,
        keep_launches=keep_launches,
        cpus=cpus,
        memory_bytes=None if memory is None else parse_size(memory),
        nodes=tuple(parse_node(text) for text in numa or ()),
        distances=tuple(parse_distance(text) for text in distances or ()),
        append=tuple(append or ()),
        qemu_options=tuple(shlex.split(qemu_opts or "")),
    )


def _run(request: "Request", *, as_json: bool, dry_run: bool) -> None:
    from dataclasses import replace  # noqa: PLC0415

    from ream.progress import Reporter  # noqa: PLC0415
    from ream.report import table  # noqa: PLC0415
    from ream.session.dry_run import plan_text  # noqa: PLC0415
    from ream.session.run import run_session  # noqa: PLC0415

    if dry_run:
        print(plan_text(request))
        return
    reporter = Reporter()
    outcome = run_session(replace(request, command=_repeat(request.seed)), reporter)
    if as_json:
        print(json.dumps(outcome.summary.to_object(), indent=1))
    else:
        sys.stdout.write(table.render(outcome.summary))
    reporter.step(f"record: {outcome.path}")


def _repeat(seed: int, argv: Sequence[str] | None = None) -> str:
    """The command line that repeats this run, seed and all."""
    words = list(sys.argv[1:] if argv is None else argv)
    if not any(word == "--seed" or word.startswith("--seed=") for word in words):
        words += ["--seed", str(seed)]
    return shlex.join(["ream", *words])


@app.command()
def shell(
    variant: Annotated[
        str, typer.Option(metavar="V", help="before, published, ream, or a --series of yours.")
    ] = "ream",
    *,
    experiment: ExperimentArgument = DEFAULT_EXPERIMENT,
    series: SeriesOption = None,
    tree: TreeOption = None,
    accel: AccelOption = "auto",
    cpus: CpusOption = None,
    memory: MemoryOption = None,
    numa: NumaOption = None,
    numa_distance: DistanceOption = None,
    append: AppendOption = None,
    qemu_opts: QemuOption = None,
) -> None:
    """Boot a variant's kernel into a shell on this terminal, with 16 GiB of emulated pmem."""
    from ream.experiment import load  # noqa: PLC0415
    from ream.progress import Reporter  # noqa: PLC0415
    from ream.session.request import Request  # noqa: PLC0415
    from ream.session.shell import run_shell  # noqa: PLC0415
    from ream.variants import choose_variants  # noqa: PLC0415

    asked = load(_experiment_path(experiment)).at("vm")
    variants = choose_variants(asked, user_series=series or ())
    if not (chosen := tuple(one for one in variants if one.name == variant)):
        known = ", ".join(one.name for one in variants)
        raise BadUsage(f"no variant {variant!r}; there is {known}")
    request = Request(
        experiment=asked,
        stage="vm",
        variants=chosen,
        tree=tree,
        threads=None,
        seed=0,
        runs=data_dir() / "runs",
        cache=cache_dir(),
        command="",
        guest=_guest_options(
            accel=accel,
            cpus=cpus,
            memory=memory,
            numa=numa,
            distances=numa_distance,
            append=append,
            qemu_opts=qemu_opts,
        ),
    )
    if run_shell(request, Reporter()):
        raise ReamError("QEMU failed; what it said is above")


@app.command("list")
def list_experiments() -> None:
    """List the experiments, their rows and variants, and the published tables."""
    from ream.experiment import load  # noqa: PLC0415
    from ream.published import load_tables  # noqa: PLC0415

    for path in sorted(EXPERIMENTS.glob("*.toml")):
        _print_experiment(load(path))
    print("\npublished tables")
    for table in load_tables(PUBLISHED):
        print(f"  {table.id:28} {table.author}: {table.title}")


def _print_experiment(experiment: "Experiment") -> None:
    print(f"{experiment.name}: {experiment.question}")
    print(f"  variants  {', '.join(experiment.variant_names())}")
    for row in experiment.rows:
        where = "" if row.stage == "native" else f"{row.stage}: "
        print(f"  {where + row.name:22} {row.title()}")


@app.command()
def doctor() -> None:
    """Say what can run on this machine, what cannot, and why; exit 3 if no stage can."""
    from ream.doctor import examine  # noqa: PLC0415

    findings = examine()
    for finding in findings:
        print(f"{finding.state:5} {finding.subject:22} {finding.text}")
    if any(finding.state == "NO" for finding in findings):
        raise typer.Exit(3)


@app.command()
def restore() -> None:
    """Put back the settings of this machine that a killed run of the live stage left changed."""
    from ream.session.restore import restore_settings  # noqa: PLC0415

    raise typer.Exit(restore_settings(lambda text: print(f"ream: {text}", file=sys.stderr)))


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

    found = Record.load(record, _runs_dir(output))
    summary = Summary.from_object(found.run, source=str(found.path))
    if as_json:
        print(json.dumps(summary.to_object(), indent=1))
    else:
        sys.stdout.write((letter if as_letter else table).render(summary))


class _Ended(BaseException):
    """Somebody wants us gone: unwinds like Ctrl-C, so that nothing of ours stays."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.signal = signal.Signals(number)


def _unwind(number: int, _frame: object) -> None:
    raise _Ended(number)


def main() -> None:
    """Usage errors are typer's (2), failures we foresaw carry their code, a bug is 70.

    A bare traceback would leave Python with 1, which our users read as "a claim fails".
    """
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _unwind)
    try:
        app(prog_name="ream")
    except _Ended as end:
        print(f"ream: ended by {end.signal.name}; nothing was recorded", file=sys.stderr)
        sys.exit(128 + end.signal)
    except SystemExit as stop:
        sys.exit(_exit_code(stop))
    except ReamError as error:
        log.debug("cause", exc_info=error)
        print(f"ream: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
    except Exception:
        log.exception("a bug in ream, not in your patch; please report it with this trace")
        sys.exit(EXIT_BUG)


def _exit_code(stop: SystemExit) -> str | int | None:
    """Our code for typer's, which ends with 1 on a broken pipe: that is not our 1."""
    cause: BaseException | None = stop
    while cause is not None:
        if isinstance(cause, KeyboardInterrupt):
            print("ream: interrupted; nothing was recorded", file=sys.stderr)
            return EXIT_INTERRUPTED
        if isinstance(cause, BrokenPipeError):
            return EXIT_BROKEN_PIPE
        cause = cause.__context__
    return stop.code
