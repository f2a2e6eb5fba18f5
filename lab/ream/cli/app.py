# SPDX-License-Identifier: GPL-2.0-only
"""The command itself, and the words that several of its commands take."""

import logging
import os
import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import _completion_classes as typer_shells

from ream import __version__
from ream.cli import complete
from ream.cli.helped import NATIVE, OTHER
from ream.errors import BadUsage
from ream.paths import data_dir

if TYPE_CHECKING:
    from ream.kernel.source import Wanted

SEED_BITS = 32

app = typer.Typer(
    name="ream",
    help="Find out whether a faster way to handle memory in bulk holds on"
    " this machine, with the real kernel code.\n\nExit status: 0 all is well, 1 a claim fails,"
    " 2 usage, 3 it cannot be done or written here, 4 undecided, 5 a sample's memory was wrong,"
    " 6 a tool failed or a record is damaged, 70 a bug in ream, 130 interrupted, 141 nobody read"
    " on, 129 ended by SIGHUP, 143 ended by SIGTERM.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    rich_markup_mode=None,
)

if complete.VARIABLE in os.environ:
    # typer does it itself only together with two options that write into the user's own files.
    typer_shells.completion_init()


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


def chosen_seed(seed: int | None) -> int:
    """The user's, or one drawn now; the record has it either way."""
    return secrets.randbits(SEED_BITS) if seed is None else seed


def wanted_tree(base: str | None, tree: Path | None) -> "Wanted":
    """The kernel source that --base or --tree names; raises BadUsage if both do."""
    # Imported here: a shell that waits for completions needs none of it.
    from ream.kernel.base import base_named  # noqa: PLC0415
    from ream.kernel.source import named_source  # noqa: PLC0415

    if base is not None and tree is not None:
        raise BadUsage(f"--base {base} --tree {tree}: each names the kernel source; leave one out")
    if base is not None:
        return base_named(base)
    return None if tree is None else named_source(tree)


def runs_dir(output: Path | None) -> Path:
    return output if output is not None else data_dir() / "runs"


ExperimentArgument = Annotated[
    str | None,
    typer.Argument(
        help="Its name (`ream list`), or a folder or a .toml file of your own.",
        autocompletion=complete.experiments,
    ),
]
OutputOption = Annotated[
    Path | None,
    typer.Option(
        "--output", "-o", metavar="DIR", help="Where records are kept instead of XDG_DATA_HOME."
    ),
]


RowsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--row",
        metavar="NAME",
        help="Only this row, or all that a pattern such as 'why-*' fits; repeatable.",
        autocompletion=complete.rows,
    ),
]
SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="FIELD=VALUE",
        help="Another value for a field of these rows, as a file has it: memory_bytes=16GiB."
        " Repeatable.",
    ),
]
LaunchesOption = Annotated[
    int | None,
    typer.Option(
        metavar="N", help="Fresh starts, each with its own layout; else as the experiment has it."
    ),
]
RoundsOption = Annotated[
    int | None,
    typer.Option(
        metavar="N", help="Rounds of every row in each launch; else as the experiment has it."
    ),
]
SeedOption = Annotated[
    int | None,
    typer.Option(
        min=0, metavar="S", rich_help_panel=OTHER, help="Of every random choice; repeats a run."
    ),
]
ThreadsOption = Annotated[
    int | None,
    typer.Option(min=1, metavar="N", rich_help_panel=NATIVE, help="Use no more CPUs than this."),
]
JsonOption = Annotated[
    bool, typer.Option("--json", help="Print one JSON object (docs/format.md), nothing else.")
]
DryRunOption = Annotated[
    bool,
    typer.Option(
        "--dry-run", help="Say what would be done, try whether patches apply, do nothing."
    ),
]
SeriesOption = Annotated[
    list[Path] | None,
    typer.Option(
        metavar="FILE|DIR|MBOX",
        help="Your patches on the base, as one more variant: a patch, a folder of them, a mailbox"
        " (also .gz or .xz), a git bundle, - for standard input, or a Message-ID, whose thread its"
        " archive has; repeatable.",
    ),
]
SeriesVersionOption = Annotated[
    int | None,
    typer.Option(
        "--version",
        rich_help_panel=OTHER,
        min=1,
        metavar="N",
        help="Which version of --series, where there are several: 3 is that of [PATCH v3 2/5].",
    ),
]
TreeOption = Annotated[
    Path | None,
    typer.Option(
        metavar="PATH",
        help="Kernel tree to use instead of a base: a directory, a tar ball, a git tree, or of one"
        " a commit: DIR@REVISION.",
    ),
]
BaseOption = Annotated[
    str | None,
    typer.Option(
        metavar="VERSION",
        help="Kernel to use instead of 6.12, by its version, as 7.3, or latest: Debian's.",
        autocompletion=complete.bases,
    ),
]
