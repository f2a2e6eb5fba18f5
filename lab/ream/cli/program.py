# SPDX-License-Identifier: GPL-2.0-only
"""`ream program`: steps of memory management, on all of mm/ in one process."""

import json
import secrets
import sys
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Annotated, Self

import typer

from ream.cli.app import (
    AnswerJsonOption,
    BaseOption,
    SeriesOption,
    SeriesVersionOption,
    TreeOption,
    app,
    given_series,
)
from ream.counted import counted
from ream.errors import BadUsage, Inconclusive, VerificationFailed
from ream.paths import cache_dir
from ream.progress import Reporter

if TYPE_CHECKING:
    from ream.kernel.series import Patch
    from ream.kernel.source import Tree
    from ream.program.compare import Difference
    from ream.program.ran import Ran, Rig
    from ream.program.step import Program, Step

ConfigOption = Annotated[
    str | None,
    typer.Option(
        "--config",
        metavar="FILE|NAME",
        help="Configure the kernel with more options: those of a file, where of a whole .config"
        " what costs memory management time is taken; running, the same of the kernel that this"
        " machine runs; distro, those of distributions; or debug, the kernel's own assertions.",
    ),
]

RANDOM_STEPS = 300
SHRINK_S = 30.0
COLUMNS, INDENT = 99, "    "
MOST_ALARMS = 5
"""So many are printed."""


@app.command("program")
def run_program(
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="FILE",
            help="The program; FILE:NAME is one of many in a file, - standard input.",
        ),
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
    trace: Annotated[
        bool, typer.Option("--trace", help="Print the functions of mm/ that each step enters.")
    ] = False,
    live: Annotated[
        bool,
        typer.Option("--live", help="Compare with the running kernel, by the same system calls."),
    ] = False,
    guest: Annotated[
        bool, typer.Option("--guest", help="Compare with a guest that boots the same kernel.")
    ] = False,
    config: ConfigOption = None,
    withhold: Annotated[
        bool,
        typer.Option(
            "--withhold", help="Put what is found wrong on the list of alarms that are not shown."
        ),
    ] = False,
    checks: Annotated[
        bool,
        typer.Option(
            "--checks/--no-checks",
            help="Check all of memory after each step. Without checks, no program is made shorter.",
        ),
    ] = True,
    against_base: Annotated[
        bool,
        typer.Option(
            "--against-base",
            help="Also run the program without the series, and name the first step that differs.",
        ),
    ] = False,
    series: SeriesOption = None,
    version: SeriesVersionOption = None,
    base: BaseOption = None,
    tree: TreeOption = None,
    as_json: AnswerJsonOption = False,
) -> None:
    """Run a program of memory management on all of mm/ in one process, checked after each step.

    A program has one step a line, as in "p0 mmap a 512 anon private rw", "p0 write a", "p0 fork p1"
    and "reclaim 300". The kernel boots in a process within milliseconds and takes the steps by its
    own system calls. After each of them every frame, entry, reference and counter is counted again
    and compared, and every page must hold what was written. A program in which something is found
    wrong is made as short as possible and printed. With a series, --against-base names the first
    step after which the base has returned something else, or memory is not as the base has it. Such
    a difference is not wrong by itself.

    With --live or --guest the program is performed by system calls, too, and results, VMAs,
    resident pages and contents are compared after each step. Steps that user space cannot perform
    are left out there. A difference is printed with the rule that explains it.

    Exit status: 0 nothing is wrong, 2 usage, or a line that is no step, 3 it cannot be run there,
    4 nothing is wrong, but the base differs, 5 something is wrong, or different without a rule.
    """
    program = _program(file, random, steps)
    if against_base and not series:
        raise BadUsage("--against-base compares with the kernel without a series: give --series")
    if as_c:
        from ream.program.reproducer import reproducer  # noqa: PLC0415

        print(reproducer(program, sets=True), end="")
        return
    from ream.kernel.cache import room  # noqa: PLC0415
    from ream.program.ran import numbered, shortest  # noqa: PLC0415
    from ream.stage.computer import Checks  # noqa: PLC0415

    program, besides = numbered(program), Besides()
    with room(cache_dir(), Reporter().step) as work:
        source = Source.of(series or [], base, tree, work, config, version=version)
        rig = rig_of(source)
        ran = rig.run(program, Checks.EACH if checks else Checks.NEVER, shows=live or guest)
        if ran.is_wrong and shrink_s and checks:
            program = shortest(rig, program, ran, within_s=shrink_s)
            ran = rig.run(program)
        if ran.is_wrong and (hidden := _hidden(program, ran, source, withhold=withhold)):
            print(hidden)
            raise typer.Exit(VerificationFailed.exit_code)
        if not ran.is_wrong:
            besides.found = _compared(program, ran, source, (live, guest))
        if against_base:
            besides.differs, besides.words = beside_base(program, ran, source)
        if trace:
            besides.entered = _entered(rig, program)
    _print(program, ran, besides, as_json=as_json)
    if ran.is_wrong or any(not one.why for its in besides.found.values() for one in its):
        raise typer.Exit(VerificationFailed.exit_code)
    if besides.differs:
        raise typer.Exit(Inconclusive.exit_code)


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


@dataclass
class Besides:
    """What was asked for besides whether something is wrong.

    found: by kernel, what it does in another way. differs: where the kernel without the series
    does first, and in what; words: the same to be read. entered: each step, and the functions of
    mm/ that it enters.
    """

    found: "dict[str, list[Difference]]" = field(default_factory=dict)
    differs: tuple[int, str] | None = None
    words: str = ""
    entered: "list[tuple[Step, tuple[str, ...]]]" = field(default_factory=list)


@dataclass(frozen=True)
class Source:
    """The kernel that is hosted, and that a guest boots."""

    tree: "Tree"
    patches: "list[Patch]"
    work: Path

    @classmethod
    def of(
        cls,
        series: list[Path],
        base: str | None,
        tree: Path | None,
        work: Path,
        config: str | None = None,
        *,
        version: int | None = None,
    ) -> Self:
        from ream.kernel.build import GCC  # noqa: PLC0415
        from ream.kernel.setup import wanted_setup  # noqa: PLC0415
        from ream.kernel.source import fetch_tree  # noqa: PLC0415

        given, wanted = given_series(series, base, tree, version=version)
        patches = [patch for one in given for patch in one.patches]
        step = Reporter().step
        setup = wanted_setup(config, GCC, "native", step=step)
        return cls(fetch_tree(wanted, cache=cache_dir(), step=step).built(setup), patches, work)

    def without_series(self) -> Self:
        """The base alone, in a directory of its own."""
        return replace(self, patches=[], work=self.work / "base")


def rig_of(source: Source) -> "Rig":
    """A computer of a kernel, linked in a directory of its own."""
    from ream.program.ran import Rig  # noqa: PLC0415

    step = Reporter().step
    return Rig.of(source.tree, source.patches, cache=cache_dir(), work=source.work, step=step)


def beside_base(
    program: "Program", ran: "Ran", source: Source
) -> tuple[tuple[int, str] | None, str]:
    """Where the kernel without the series differs first, and in what; and the same in words."""
    from ream.program.entries import decoded  # noqa: PLC0415
    from ream.program.ran import difference, difference_words, place  # noqa: PLC0415

    base = rig_of(source.without_series()).run(program)
    if base.is_wrong and not ran.is_wrong:
        line, text = base.alarms[0]
        words = f"{place(line, program)}, something is wrong without it: {decoded(text)}"
        return (line, "wrong"), f"it differs with the series: {words}"
    if differs := difference(base, ran):
        words = difference_words(differs, base, ran, program)
        return differs, f"it differs with the series: {words}"
    return None, "" if ran.is_wrong else "the base does the same in each step"


def _hidden(program: "Program", ran: "Ran", source: Source, *, withhold: bool) -> str | None:
    """What to say of an alarm that is not to be shown; None for one that a series alone raises."""
    from ream.program.withheld import Withheld  # noqa: PLC0415

    if withhold:
        Withheld.load().add(ran, program)
    hidden = Withheld.load().put_away(ran, program)
    if hidden and source.patches:
        of_base = rig_of(source.without_series()).run(program)
        return hidden if of_base.kind == ran.kind else None
    return hidden


def _entered(rig: "Rig", program: "Program") -> "list[tuple[Step, tuple[str, ...]]]":
    """Each step, and the functions that it enters."""
    from ream.program.coverage import Code  # noqa: PLC0415
    from ream.program.ran import computer_folder  # noqa: PLC0415
    from ream.program.trace import traced  # noqa: PLC0415

    return list(traced(rig, Code(rig.computer, computer_folder()), program))


def _compared(
    program: "Program", ran: "Ran", source: Source, asked: tuple[bool, bool]
) -> "dict[str, list[Difference]]":
    """What the running kernel and a guest do in another way, as far as they are asked for."""
    from ream.kernel.image import build_image  # noqa: PLC0415
    from ream.program import elsewhere  # noqa: PLC0415
    from ream.program.compare import differences  # noqa: PLC0415

    found, (live, guest) = {}, asked
    if live:
        said = elsewhere.run_live(program, source.work)
        kernel = elsewhere.running_kernel()
        found["the running kernel"] = differences(program, ran.said, said, kernel)
    if guest:
        cache, log = cache_dir(), source.work / "console.log"
        image = build_image(
            *(source.tree, source.patches),
            cache=cache, fragments=elsewhere.FRAGMENTS, modules=(), reporter=Reporter(),
        )  # fmt: skip
        (said,) = elsewhere.run_in_guest([program], image, cache=cache, work=source.work, log=log)
        kernel = elsewhere.guest_kernel([program], source.tree.version)
        found["a guest"] = differences(program, ran.said, said, kernel)
    return found


def _print(program: "Program", ran: "Ran", besides: Besides, *, as_json: bool) -> None:
    if as_json:
        alarms = [{"line": line, "text": text} for line, text in ran.alarms]
        its: dict[str, object] = {"schema": 1, "program": str(program), "alarms": alarms}
        returned = {f"{at}": it for at, it in ran.returned.items()}
        different = {where: [asdict(one) for one in them] for where, them in besides.found.items()}
        its |= {"digest": ran.digest, "returned": returned, "differences": different}
        if besides.entered:
            its["trace"] = [
                {"line": step.line, "functions": them} for step, them in besides.entered
            ]
        if besides.differs:
            its["differs"] = dict(zip(("line", "part"), besides.differs, strict=True))
        print(json.dumps(its))
        return
    from ream.program.entries import decoded  # noqa: PLC0415
    from ream.program.ran import place  # noqa: PLC0415

    for step, functions in besides.entered:
        print(step)
        print(fill(" ".join(functions), COLUMNS, initial_indent=INDENT, subsequent_indent=INDENT))
    if not ran.is_wrong:
        print(f"{len(program)} steps, nothing is wrong; digest of memory at the end {ran.digest}")
        for where, them in besides.found.items():
            print(f"{where}: {counted(len(them), 'difference')}")
            print("".join(f"  {one}\n" for one in them), end="")
    else:
        print(program, end="")
    if besides.words:
        print(besides.words)
    wrong = [f"WRONG {place(line, program)}: {decoded(text)}\n" for line, text in ran.alarms]
    wrong = list(dict.fromkeys(wrong))
    print("".join(wrong[:MOST_ALARMS]), end="")
    if len(wrong) > MOST_ALARMS:
        print(f"and {counted(len(wrong) - MOST_ALARMS, 'further alarm')}")
