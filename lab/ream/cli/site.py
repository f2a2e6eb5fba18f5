# SPDX-License-Identifier: GPL-2.0-only
"""`ream site`: all records as pages for a browser."""

from pathlib import Path
from typing import Annotated

import typer

from ream.cli.app import RunsOption, app, runs_dir
from ream.cli.history import Progress
from ream.errors import BadUsage


@app.command()
def site(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="The folder for the pages; it is made.")
    ],
    *,
    runs: RunsOption = None,
    judgements: Annotated[
        Path | None,
        typer.Option(
            "--judgements",
            metavar="DIR",
            help="Also show the judgements of a folder: files of `ream judge --json`, each with its"
            " --html beside it if there is one, or the folder of `ream judge --watch`.",
        ),
    ] = None,
    of_runs: Annotated[
        bool,
        typer.Option(
            "--run-pages/--no-run-pages",
            help="Give the newest run of each kind a page of its own: one to three MB, and a"
            " second or two.",
        ),
    ] = True,
    force: Annotated[
        bool,
        typer.Option("--force", help="Write into a folder that has files, in place of its pages."),
    ] = False,
) -> None:
    """Write pages for a browser: experiments, upgrades, published tables, runs, judgements.

    DIR/index.html is the first page. The pages need no network and no server.

    Exit status: 0; 2 if there are no records or judgements, one is damaged, or DIR has files.
    """
    from ream.files import write_whole  # noqa: PLC0415
    from ream.progress import Reporter  # noqa: PLC0415
    from ream.site.gathered import Gathered  # noqa: PLC0415
    from ream.site.pages import pages, work  # noqa: PLC0415

    if not force and folder.is_dir() and any(folder.iterdir()):
        raise BadUsage(f"{folder}: has files; --force writes among them")
    gathered = Gathered.of(runs_dir(runs), Progress("read").say, judgements)
    if not gathered.records:
        raise BadUsage(f"{runs_dir(runs)}: no records; `ream run` makes one")
    left = work(gathered, of_runs=of_runs)
    with Reporter().measuring(sum(left.values())) as advance:
        for name, text in pages(gathered, of_runs=of_runs):
            path = folder / name
            for one in (path.parent, path):
                if one != folder and one.is_symlink():
                    raise BadUsage(f"{one}: is a link, and pages are written into {folder} alone")
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
            except OSError as cause:
                raise BadUsage(f"{path.parent}: cannot be made: {cause.strerror}") from cause
            write_whole(path, text.encode("utf-8", "backslashreplace"), force=True)
            advance(left.get(name, 0), name)
    print(folder / "index.html")
