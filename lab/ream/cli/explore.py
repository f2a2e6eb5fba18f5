# SPDX-License-Identifier: GPL-2.0-only
"""`ream explore`: programs that execute more of mm/, and how much all of them execute."""

import random
import secrets
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ream.cli.app import BaseOption, SeedOption, TreeOption, app
from ream.cli.program import ConfigOption, Source, rig_of
from ream.errors import BadUsage, VerificationFailed

if TYPE_CHECKING:
    from ream.program.explore import Explorer
    from ream.progress import Reporter

MINUTE_S = 60.0


@app.command("explore")
def explore(
    *,
    minutes: Annotated[
        float,
        typer.Option(
            metavar="N",
            min=0,
            help="Minutes to look for programs; 0: only run those of the corpus.",
        ),
    ] = 10.0,
    corpus: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Folder of the corpus: its programs are run, and new ones are written there."
            " Without it, the corpus that comes with ream.",
        ),
    ] = None,
    seed: SeedOption = None,
    config: ConfigOption = None,
    base: BaseOption = None,
    tree: TreeOption = None,
) -> None:
    """Look for programs that execute more of mm/, and say how much is executed.

    The corpus is a folder of programs of system calls, each of which executes code that the others
    do not. First its programs run. Then random programs run, and mixtures of two of the corpus,
    until the time is over or Ctrl-C is pressed. A program that executes new code is made as short
    as possible and kept in the corpus. The table has for each object file how many of its
    functions, bytes of functions and blocks were executed. A block is a piece of code without a
    branch. Code that runs only at boot is left out.

    Exit status: 0 nothing is wrong, 5 a program of the corpus finds something wrong.
    """
    from ream.kernel.cache import room  # noqa: PLC0415
    from ream.paths import EXPERIMENTS, cache_dir  # noqa: PLC0415
    from ream.program.coverage import Code  # noqa: PLC0415
    from ream.program.explore import Corpus, Explorer  # noqa: PLC0415
    from ream.program.ran import computer_folder  # noqa: PLC0415
    from ream.progress import Reporter  # noqa: PLC0415

    folder = corpus or next(EXPERIMENTS.glob("*/corpus"), None)
    if folder is None:
        raise BadUsage("there is no corpus yet; name a folder for it with --corpus DIR")
    seed = secrets.randbits(31) if seed is None else seed
    reporter, found = Reporter(), Corpus.load(folder)
    with room(cache_dir(), reporter.step) as work:
        rig = rig_of(Source.of([], base, tree, work, config))
        code = Code(rig.computer, computer_folder())
        explorer, wrong = Explorer(rig, code, found), 0
        with reporter.measuring(len(found.programs)) as advance:
            for name, ran in explorer.replay():
                advance(1, f"program {name}")
                wrong += ran.is_wrong
                for line, text in ran.alarms:
                    print(f"{name}: WRONG after line {line}: {text}")
        if minutes:
            reporter.step(f"exploring with --seed {seed}; Ctrl-C ends it")
            _explore(explorer, random.Random(seed), minutes * MINUTE_S, reporter)  # noqa: S311
            found.write_digests()
    for row in code.rows(found.met):
        print(row.words())
    print(f"{len(found.programs)} programs, {found.bytes} bytes")
    if wrong:
        raise typer.Exit(VerificationFailed.exit_code)


def _explore(explorer: "Explorer", dice: random.Random, for_s: float, reporter: "Reporter") -> None:
    began = time.monotonic()
    with reporter.measuring(for_s) as advance:
        try:
            for text in explorer.explore(dice, began + for_s):
                done = time.monotonic()
                print(text, flush=True)
                advance(done - began, "exploring")
                began = done
        except KeyboardInterrupt:
            print("interrupted; what was kept is there")
