# SPDX-License-Identifier: GPL-2.0-only
"""`ream man` and `ream completion`: what other tools install for themselves."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Annotated, Literal

import typer

from ream.cli.app import app
from ream.cli.complete import VARIABLE
from ream.command import Command, run
from ream.errors import BadUsage

MAN_S = 60.0
"""Formatting a page takes a fraction of a second."""


def _commands(incomplete: str) -> list[str]:
    from ream.manual.tree import pages  # noqa: PLC0415

    return [page.name for page in pages(app) if page.name.startswith(incomplete) and page.name]


@app.command()
def man(
    command: Annotated[
        str | None,
        typer.Argument(
            metavar="COMMAND", help="Of this command; else of ream.", autocompletion=_commands
        ),
    ] = None,
    *,
    write: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Write every page into DIR, for MANPATH, instead of showing one."
        ),
    ] = None,
) -> None:
    """Show a man page, or write all of them, with the text of --help.

    Exit status: 0 shown or written, 2 there is no such command.
    """
    from ream.manual import roff  # noqa: PLC0415
    from ream.manual.tree import pages  # noqa: PLC0415

    every = pages(app)
    if write is not None:
        if command is not None:
            raise BadUsage("--write writes the pages of all commands: leave the command out")
        for page in every:
            _put(write / "man1" / roff.file_name(page), roff.render(page, every))
        print(f"ream: {len(every)} pages in {write}/man1", file=sys.stderr)
        return
    by_name = {page.name: page for page in every}
    if (command or "") not in by_name:
        raise BadUsage(f"no command {command!r}; there is {', '.join(filter(None, by_name))}")
    _show(roff.render(by_name[command or ""], every))


def _put(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as cause:
        raise BadUsage(f"{path}: cannot write a manual page there: {cause.strerror}") from cause


def _show(source: str) -> None:
    """Show a page with man(1), on a terminal or into a pipe; print the source if man is missing."""
    viewer = shutil.which("man")
    if viewer is None:
        sys.stdout.write(source)
        return
    with tempfile.NamedTemporaryFile("w", suffix=".1") as page:
        page.write(source)
        page.flush()
        if sys.stdout.isatty():
            subprocess.run((viewer, "-l", page.name), check=False)
            return
        # We write man's output ourselves, so that a closed pipe or a full disk is handled as usual.
        shown = run(Command((viewer, "-l", page.name), Path.cwd(), MAN_S))
    sys.stdout.write(shown)


@app.command()
def completion(
    shell: Annotated[
        Literal["bash", "zsh", "fish"] | None,
        typer.Argument(help="Of this shell; else of the one in $SHELL.", show_default=False),
    ] = None,
) -> None:
    """Print the script for shell completion of commands, options, rows, tables and runs.

    For bash: eval "$(ream completion bash)" in ~/.bashrc, with ream on PATH. For zsh the same in
    ~/.zshrc, after compinit. For fish: ream completion fish > ~/.config/fish/completions/ream.fish

    Exit status: 0 printed, 2 unknown shell.
    """
    from typer._completion_shared import get_completion_script  # noqa: PLC0415

    name = shell or Path(os.environ.get("SHELL", "")).name
    if name not in {"bash", "zsh", "fish"}:
        raise BadUsage(f"$SHELL is {name or 'not set'}; say bash, zsh or fish")
    print(get_completion_script(prog_name="ream", complete_var=VARIABLE, shell=name))
