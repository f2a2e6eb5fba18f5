# SPDX-License-Identifier: GPL-2.0-only
"""The command itself, and the words that several of its commands take."""

import logging
import os
import secrets
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import _completion_classes as typer_shells
from typer.core import TyperCommand
from typer.models import CommandFunctionType

from ream import __version__
from ream.cli import complete
from ream.cli.helped import CONTINUE, NATIVE, OTHER, Shown, Worded
from ream.errors import BadUsage
from ream.paths import data_dir

if TYPE_CHECKING:
    from ream.kernel.series import Series
    from ream.kernel.source import Wanted

SEED_BITS = 32


class _Commands(typer.Typer):
    """Commands that have examples in their help, unless they say how it is written."""

    def command(
        self, name: str | None = None, *, cls: type[TyperCommand] | None = None, **more: Any
    ) -> Callable[[CommandFunctionType], CommandFunctionType]:
        """Add a command, as typer does."""
        return super().command(name, cls=cls or Shown, **more)


app = _Commands(
    name="ream",
    cls=Worded,
    help="Find faults in a patch series for Linux memory management, and measure what it costs, on"
    " this machine, with the real kernel code.\n\n`ream help words` says what ream's words mean."
    "\n\nExit status: 0 all is well, 1 a claim fails,"
    " 2 usage, 3 it cannot be done or written here, 4 undecided, 5 a kernel was found wrong,"
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


def given_series(
    paths: Iterable[Path], base: str | None, tree: Path | None, *, version: int | None = None
) -> "tuple[list[Series], Wanted]":
    """Series, and the kernel source that they are put on: of a git tree the commit they name.

    What is no file may be commits of the git tree that --tree names, or that one is in.
    Raises what `load_series` and `wanted_tree` raise.
    """
    from ream.kernel.series import load_series, may_be_commits  # noqa: PLC0415
    from ream.kernel.source import Commit, at_commit  # noqa: PLC0415

    paths = [*paths]
    if base is None and tree is None and any(map(may_be_commits, paths)):
        tree = Path() if Path(".git").exists() else None
    source = wanted_tree(base, tree)
    range_ = next((one for one in paths if ".." in one.name and may_be_commits(one)), None)
    if range_ is not None and isinstance(source, Path) and not (source / ".git").exists():
        lack = "not a git tree" if source.exists() else "no such directory"
        raise BadUsage(f"--tree {tree}: {lack}, so {range_} names no commits")
    repository = source.repository if isinstance(source, Commit) else tree
    found = [load_series(one, version=version, repository=repository) for one in paths]
    commits = {patch.ground.commit for one in found for patch in one.patches}
    return found, at_commit(source, filter(None, commits))


def runs_dir(output: Path | None) -> Path:
    return output if output is not None else data_dir() / "runs"


ExperimentArgument = Annotated[
    str | None,
    typer.Argument(
        help="An experiment's name (`ream list`), or a folder or .toml file of yours.",
        autocompletion=complete.experiments,
    ),
]
RunsOption = Annotated[
    Path | None,
    typer.Option("--runs", metavar="DIR", help="Where records are (`ream run --output`)."),
]
OutputOption = Annotated[
    Path | None,
    typer.Option(
        "--output", "-o", metavar="DIR", help="Directory for records, instead of XDG_DATA_HOME."
    ),
]


RowsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--row",
        metavar="NAME",
        help="Only this row, or those that match a pattern such as 'why-*'; repeatable.",
        autocompletion=complete.rows,
    ),
]
SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="FIELD=VALUE",
        rich_help_panel=OTHER,
        help="Change a field of these rows, as in memory_bytes=16GiB; repeatable.",
    ),
]
LaunchesOption = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        rich_help_panel=CONTINUE,
        help="Fresh starts, each with its own layout; by default the experiment's number.",
    ),
]
RoundsOption = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        rich_help_panel=CONTINUE,
        help="Rounds of every row in each launch; by default the experiment's number.",
    ),
]
SeedOption = Annotated[
    int | None,
    typer.Option(
        min=0, metavar="S", rich_help_panel=OTHER, help="Seed of all random choices; repeats a run."
    ),
]
ThreadsOption = Annotated[
    int | None,
    typer.Option(min=1, metavar="N", rich_help_panel=NATIVE, help="Use at most this many CPUs."),
]
JsonOption = Annotated[
    bool, typer.Option("--json", help="Print one JSON object (docs/format.md), nothing else.")
]
AnswerJsonOption = Annotated[
    bool, typer.Option("--json", help="Print one JSON object (docs/commands.md), nothing else.")
]
DryRunOption = Annotated[
    bool,
    typer.Option("--dry-run", help="Print the plan, and check that patches apply; do nothing."),
]
SeriesOption = Annotated[
    list[Path] | None,
    typer.Option(
        metavar="FILE|DIR|MBOX",
        help="Your patches on the base, as one more variant: a patch, a folder of them, a mailbox"
        " (also .gz or .xz), a git bundle, - for standard input, commits of --tree such as"
        " HEAD~3.., or a Message-ID, whose thread its archive has; repeatable.",
    ),
]
SeriesVersionOption = Annotated[
    int | None,
    typer.Option(
        "--version",
        rich_help_panel=OTHER,
        min=1,
        metavar="N",
        help="Version of --series to use if there are several: 3 for [PATCH v3 2/5].",
    ),
]
UnconfinedOption = Annotated[
    bool,
    typer.Option(
        "--unconfined",
        rich_help_panel=NATIVE,
        help="Let hosted code and kbuild do whatever your user may do. Otherwise hosted code has no"
        " network, no other process and no file but its own; kbuild has no network, and writes"
        " where it builds.",
    ),
]
TreeOption = Annotated[
    Path | None,
    typer.Option(
        metavar="PATH",
        help="Kernel tree to use instead of a base: a directory, a tarball, a git tree, or a"
        " commit of one (DIR@REVISION).",
    ),
]
BaseOption = Annotated[
    str | None,
    typer.Option(
        metavar="VERSION",
        help="Kernel version to use instead of 6.12, such as 7.3; latest: Debian's newest.",
        autocompletion=complete.bases,
    ),
]
