# SPDX-License-Identifier: GPL-2.0-only
"""`ream program`: steps of memory management, on all of mm/ in one process."""

import json
import secrets
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ream.cli.app import BaseOption, JsonOption, SeriesOption, TreeOption, app, wanted_tree
from ream.errors import BadUsage, VerificationFailed

if TYPE_CHECKING:
    from ream.program.ran import Ran, Rig
    from ream.program.step import Program

RANDOM_STEPS = 300
SHRINK_S = 30.0


@app.command("program")
def run_program(
    file: Annotated[
        Path | None, typer.Argument(metavar="FILE", help="The program; - for standard input.")
    ] = None,
    *,
    random: Annotated[
        int | None,
        typer.Option(
            "--random", metavar="SEED", help="Run a random program instead; the seed repeats it."
        ),
    ] = None,
    steps: Annotated[
        int, typer.Option(metavar="N", min=1, help="Steps of a random program.")
    ] = RANDOM_STEPS,
    as_c: Annotated[
        bool, typer.Option("--c", help="Print a C program that does the same by system calls.")
    ] = False,
    shrink_s: Annotated[
        float,
        typer.Option(
            "--shrink", metavar="S", min=0, help="Seconds to look for a shorter wrong program."
        ),
    ] = SHRINK_S,
    checks: Annotated[
        bool, typer.Option("--checks/--no-checks", help="Check all of memory after each step.")
    ] = True,
    series: SeriesOption = None,
    base: BaseOption = None,
    tree: TreeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Run a program of memory management on all of mm/ in one process, checked after each step.

    A program has one step a line, as in "p0 mmap a 512 anon private rw", "p0 write a", "p0 fork p1"
    and "reclaim 300". The kernel boots in a process within milliseconds and takes the steps by its
    own system calls. After each of them every frame, entry, reference and counter is counted again
    and compared, and every page must hold what was written. A program in which something is found
    wrong is made as short as possible and printed.

    Exit status: 0 nothing is wrong, 2 usage, or a line that is no step, 5 something is wrong.
    """
    program = _program(file, random, steps)
    if as_c:
        from ream.program.reproducer import reproducer  # noqa: PLC0415

        print(reproducer(program), end="")
        return
    from ream.program.ran import shortest  # noqa: PLC0415
    from ream.stage.computer import Checks  # noqa: PLC0415

    with tempfile.TemporaryDirectory() as work:
        rig = _rig(Path(work), series or [], base, tree)
        ran = rig.run(program, Checks.EACH if checks else Checks.NEVER)
        if ran.is_wrong and shrink_s:
            program = shortest(rig, program, ran, within_s=shrink_s)
            ran = rig.run(program)
    _print(program, ran, as_json=as_json)
    if ran.is_wrong:
        raise typer.Exit(VerificationFailed.exit_code)


def _program(file: Path | None, random: int | None, steps: int) -> "Program":
    from ream.program.generate import generate  # noqa: PLC0415
    from ream.program.text import load_program, parse  # noqa: PLC0415

    if (file is None) == (random is None):
        raise BadUsage(
            "give a FILE, or --random SEED for a random program, such as"
            f" --random {secrets.randbits(16)}"
        )
    if random is not None:
        return parse(str(generate(random, steps)), f"--random {random}")
    assert file is not None
    if str(file) == "-":
        return parse(sys.stdin.buffer.read(), "standard input")
    return load_program(file)


def _rig(work: Path, series: list[Path], base: str | None, tree: Path | None) -> "Rig":
    from ream.kernel.series import load_series  # noqa: PLC0415
    from ream.kernel.source import fetch_tree  # noqa: PLC0415
    from ream.paths import cache_dir  # noqa: PLC0415
    from ream.program.ran import Rig, computer_folder  # noqa: PLC0415
    from ream.progress import Reporter  # noqa: PLC0415
    from ream.stage.computer import build_computer  # noqa: PLC0415
    from ream.stage.confine import build_confinement, say_unconfined  # noqa: PLC0415

    step, cache, folder = Reporter().step, cache_dir(), computer_folder()
    patches = [patch for path in series for patch in load_series(path).patches]
    source = fetch_tree(wanted_tree(base, tree), cache=cache, step=step)
    confinement = build_confinement(work, [work])
    say_unconfined(confinement, step)
    computer = build_computer(
        source, patches, folder, cache=cache, work=work, step=step, confinement=confinement
    )
    return Rig(computer, folder)


def _print(program: "Program", ran: "Ran", *, as_json: bool) -> None:
    if as_json:
        alarms = [{"line": line, "text": text} for line, text in ran.alarms]
        its = {"schema": 1, "program": str(program), "alarms": alarms, "digest": ran.digest}
        print(json.dumps({**its, "returned": {f"{at}": it for at, it in ran.returned.items()}}))
        return
    if not ran.is_wrong:
        print(f"{len(program)} steps, nothing is wrong; state {ran.digest}")
        return
    print(program, end="")
    for line, text in ran.alarms:
        print(f"WRONG after line {line}: {text}")
