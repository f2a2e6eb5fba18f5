# SPDX-License-Identifier: GPL-2.0-only
"""`ream judge`: what a series does to memory management."""

import hashlib
import json
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ream.cli.app import (
    AnswerJsonOption,
    BaseOption,
    DryRunOption,
    SeedOption,
    TreeOption,
    UnconfinedOption,
    app,
    chosen_seed,
    given_series,
    runs_dir,
    wanted_tree,
)
from ream.cli.continued import QuietOption
from ream.cli.helped import NATIVE
from ream.cli.measure import command_line
from ream.cli.shared import shared_command
from ream.errors import (
    BadUsage,
    CannotRunHere,
    ClaimFails,
    Inconclusive,
    ReamError,
    VerificationFailed,
    shown,
    to_object,
)
from ream.files import check_place, write_whole
from ream.paths import cache_dir
from ream.plain import plain

if TYPE_CHECKING:
    from ream.judge.judgement import Judgement
    from ream.judge.question import Question
    from ream.kernel.series import Series

ENDS = {
    kind.exit_code: kind for kind in (ClaimFails, CannotRunHere, Inconclusive, VerificationFailed)
}

NO_SERIES = Path()
"""Stands for the series when an upgrade to another kernel source is judged."""

HERE_ALONE = (
    *("letter", "by", "html", "markdown", "junit", "force", "watched", "once", "as_json", "output"),
    *("dry_run", "quiet"),
)
"""Parameters that do not change what is judged."""


@app.command()
def judge(
    context: typer.Context,
    series: Annotated[
        Path | None,
        typer.Argument(
            metavar="SERIES",
            help="A patch, a folder of them, a mailbox (also .gz or .xz), a git bundle, - for"
            " standard input, a Message-ID, or commits of --tree: HEAD~3.., A..B, a branch, or one"
            " commit.",
        ),
    ] = None,
    *,
    minutes: Annotated[
        float,
        typer.Option(
            metavar="M",
            min=0,
            max=24 * 60,
            help="Minutes for the judgement once all is compiled. At least three tenths of them are"
            " for timing rows. 0: time nothing.",
        ),
    ] = 2.5,
    verify_minutes: Annotated[
        float,
        typer.Option(
            metavar="MIN",
            min=0,
            max=24 * 60,
            rich_help_panel=NATIVE,
            help="Minutes to look for memory that is wrong, with random programs and mixtures of"
            " programs. Half of them are for all of mm/, and a fifth of --minutes follows before"
            " rows are timed.",
        ),
    ] = 1.0,
    quick: Annotated[
        bool,
        typer.Option(
            "--quick",
            help="Only run programs on all of mm/, which takes a minute or two. No row is verified,"
            " counted or timed, so the exit status is 4 if nothing is wrong.",
        ),
    ] = False,
    guests: Annotated[
        bool,
        typer.Option(
            "--vm",
            help="Also boot debug kernels without and with the series, and run the kernel's own"
            " tests of what it changes in both. Where guests are emulated, this takes an hour the"
            " first time.",
        ),
    ] = False,
    per_patch: Annotated[
        bool,
        typer.Option(
            "--per-patch",
            help="Also count what the first patch alone changes, the first two, and so on.",
        ),
    ] = False,
    base: BaseOption = None,
    tree: TreeOption = None,
    config: Annotated[
        str | None,
        typer.Option(
            metavar="FILE|NAME",
            help="Configure both kernels with more options: those of a file, where of a whole"
            " .config what costs memory management time is taken, as far as it can be hosted;"
            " running, the same of the kernel that this machine runs; distro, some of those of"
            " distributions; or debug, the kernel's own assertions.",
        ),
    ] = None,
    base_ref: Annotated[
        str | None,
        typer.Option(
            metavar="REV", help="With --tree: the commit of that tree to which the series applies."
        ),
    ] = None,
    from_: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="KERNEL",
            help="Judge an upgrade instead, from this version or kernel source.",
        ),
    ] = None,
    to: Annotated[
        str | None,
        typer.Option(
            "--to",
            metavar="KERNEL",
            help="With --from: the version or source that is upgraded to.",
        ),
    ] = None,
    version: Annotated[
        int | None,
        typer.Option(
            "--version", min=1, metavar="N", help="Version to judge if there are several: 3 for v3."
        ),
    ] = None,
    strict: Annotated[
        bool,
        typer.Option(
            "--strict",
            help="End with 1 for any loss, also one of at most 1 % beside a larger gain.",
        ),
    ] = False,
    letter: Annotated[
        Path | None,
        typer.Option(
            "--letter", metavar="FILE", help="Also write the answer as a mail, to send to the list."
        ),
    ] = None,
    by: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="With --letter: name and address for its Tested-by line."
        ),
    ] = None,
    html: Annotated[
        Path | None,
        typer.Option("--html", metavar="FILE", help="Also write a page for a browser."),
    ] = None,
    markdown: Annotated[
        Path | None,
        typer.Option(
            "--markdown",
            metavar="FILE",
            help="Also write the answer as Markdown, for the summary of a CI job.",
        ),
    ] = None,
    junit: Annotated[
        Path | None, typer.Option("--junit", metavar="FILE", help="Also write JUnit XML.")
    ] = None,
    watched: Annotated[
        bool,
        typer.Option(
            "--watch",
            help="SERIES is a folder in which mailboxes arrive, or - for their paths, a line each:"
            " judge each of them; --html is the folder of their pages.",
        ),
    ] = False,
    once: Annotated[
        bool,
        typer.Option("--once", help="With --watch: judge the mailboxes that are there, and end."),
    ] = False,
    force: Annotated[
        bool,
        typer.Option(
            "--force", help="Let --letter, --html, --markdown and --junit replace a file."
        ),
    ] = False,
    unconfined: UnconfinedOption = False,
    seed: SeedOption = None,
    as_json: AnswerJsonOption = False,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="DIR",
            help="Directory for records, and for programs that show a fault (DIGITS.program),"
            " instead of XDG_DATA_HOME/ream/runs.",
        ),
    ] = None,
    dry_run: DryRunOption = False,
    quiet: QuietOption = False,
) -> None:
    """Judge a series: what it reaches, whether it is right, and what it costs or saves.

    `ream judge --tree ~/linux HEAD~3..` judges the last three commits of a git tree, and
    `ream judge v5.mbx` a series as b4 or a mail program saves it.

    First all of mm/ is compiled into a program, without and with the series, and programs of system
    calls run that execute the changed lines. If the series does something wrong in one of them,
    that one is printed, as short as possible, and the judgement ends. Then the kernel's objects are
    compiled without and with the series and compared function by function. A row is one operation
    at one size, such as fork-64k. Rows that execute changed functions are verified, their
    instructions are counted, and they are timed beside the kernel without the series, those that
    change most first. The answer is one sentence, and a line for each row, regressions first. The
    series is built and run as your user: what runs is confined to its own files and threads, and
    kbuild has no network and writes only where it builds.

    Exit status: 0 no regression, and each row would have shown one: by its counts, or since a copy
    slowed by 5 % was found slower; 1 a row is slower or, where its time does not decide, executes
    over 0.1 % more, unless the largest loss is at most 1 % beside a larger gain; 2 usage, or a
    patch that does not apply or compile; 3 cannot run here; 4 undecided, or nothing is reached; 5
    memory was wrong; 6 a tool failed.
    """
    from ream.judge import page  # noqa: PLC0415
    from ream.judge.session import judge as judged  # noqa: PLC0415
    from ream.kernel.setup import OURS, wanted_setup  # noqa: PLC0415
    from ream.progress import Reporter  # noqa: PLC0415

    others = (tree, base, base_ref, version, letter, watched, per_patch, quick)
    with _errors_as_objects(as_json=as_json):
        _check_subject(series, from_, to, others=others)

    def question_of(path: Path) -> "Question":
        if from_ and to:
            asked = _upgrade(from_, to, seed=seed)
        else:
            asked = _question(
                path, tree, base=base, base_ref=base_ref, version=version, config=config, seed=seed
            )
        asked = asked.timed(minutes, per_patch=per_patch, runs=runs_dir(output))
        asked = replace(asked, confined=not unconfined, guests=guests, strict=strict)
        setup = wanted_setup(config, OURS.cc, "native", step=Reporter(quiet=quiet).step)
        asked = replace(asked, quick=quick, setup=setup)
        asked = replace(asked, reproduce=_reproduce(context, path, asked))
        return replace(asked, verify_minutes=verify_minutes)

    given = series or NO_SERIES
    if watched or once:
        alone = (letter, by, markdown, junit, as_json, dry_run)
        if not watched or any(alone) or html is None:
            raise BadUsage("--watch writes pages alone, into the folder that --html names")
        _watch(given, html, question_of, once=once, quiet=quiet)
        return
    with _errors_as_objects(as_json=as_json):
        asked = replace(question_of(given), listings=html is not None)
        places = (html, markdown, junit)
        also = _also(given, asked, letter=letter, by=by, places=places, force=force)
        if dry_run:
            print("\n".join(page.planned(asked)))
            return
        for file in also:  # an earlier judgement must not pass for this one
            if file.is_file() and not file.is_symlink():
                file.unlink()
        with _what_is_kept(), _reason_written(asked.series.name, markdown, junit, force=force):
            answer = judged(asked, Reporter(quiet=quiet))
    _tell(answer, also, as_json=as_json, force=force)


def _reproduce(context: typer.Context, path: Path, asked: "Question") -> str:
    """The command with which others repeat a judgement: of a mail by its id."""
    from ream.judge.letter import answered  # noqa: PLC0415
    from ream.kernel.base import default_base  # noqa: PLC0415
    from ream.kernel.series import mails_of, may_be_commits  # noqa: PLC0415

    subject: str | None = None
    if path != NO_SERIES:
        try:
            subject = str(answered(asked.series, mails_of(path)).message_id).strip("<>")
        except BadUsage:
            subject = str(path) if may_be_commits(path) else path.name
    meant = ("--base", default_base().name) if asked.tree is None else ()
    return shared_command(context, subject, asked.seed, without=HERE_ALONE, meant=meant)


def _check_subject(
    series: Path | None, from_: str | None, to: str | None, *, others: tuple[object, ...]
) -> None:
    """Raise BadUsage unless there is either a series or two kernels."""
    if bool(from_) != bool(to):
        given, missing = (f"--from {from_}", "--to") if from_ else (f"--to {to}", "--from")
        raise BadUsage(f"{given}: the other kernel is missing; name it with {missing} KERNEL")
    if from_ and (series or any(others)):
        what = f"the series {series}" if series else "what is of a series"
        raise BadUsage(f"--from {from_} --to {to}: an upgrade is judged alone; leave out {what}")
    if series is None and not to:
        raise BadUsage(
            "a series is missing: a patch, a folder, a mailbox, a Message-ID, commits, or -"
        )


@contextmanager
def _errors_as_objects(*, as_json: bool) -> Iterator[None]:
    """Print one JSON object also where there is no answer: the kind of the error, and its text."""
    try:
        yield
    except ReamError as cause:
        if as_json:
            from ream.record.record import SCHEMA  # noqa: PLC0415

            its = {"schema": SCHEMA, "exit": cause.exit_code, "error": to_object(cause)}
            print(json.dumps(its))
        raise


@contextmanager
def _reason_written(
    series: str, markdown: Path | None, junit: Path | None, *, force: bool
) -> Iterator[None]:
    """Where there is no judgement, as of a patch that does not apply, write the reason instead."""
    try:
        yield
    except ReamError as cause:
        from ream.judge import junit as junit_module  # noqa: PLC0415
        from ream.judge import markdown as markdown_module  # noqa: PLC0415

        for file, module in ((markdown, markdown_module), (junit, junit_module)):
            if file is not None:
                text = module.unjudged(series, cause)
                write_whole(file, text.encode("utf-8", "backslashreplace"), force=force)
        raise


@contextmanager
def _what_is_kept() -> Iterator[None]:
    """Say of an interruption what it leaves."""
    try:
        yield
    except BaseException as cause:
        if not isinstance(cause, Exception) and not getattr(cause, "__notes__", ()):
            cause.add_note("no judgement; what was compiled is kept, and need not be again")
        raise


def _tell(
    its: "Judgement",
    also: "dict[Path, Callable[[Judgement], str]]",
    *,
    as_json: bool,
    force: bool,
) -> None:
    """Write what is asked for, and print; raises the error whose exit status the judgement has."""
    from ream.judge import page, words  # noqa: PLC0415

    for file, made in also.items():
        write_whole(file, made(its).encode("utf-8", "backslashreplace"), force=force)
    if as_json:
        print(json.dumps(page.to_object(its), indent=1))
    else:
        sys.stdout.write(page.render(its))
    if its.exit_code:
        raise shown(ENDS[its.exit_code](plain(f"{its.series}: {words.verdict(its)}")))


def _upgrade(from_: str, to: str, *, seed: int | None) -> "Question":
    """What is asked of two kernels, each a version or a kernel source."""
    from ream.folders import base_names  # noqa: PLC0415
    from ream.judge.question import Question  # noqa: PLC0415
    from ream.kernel.base import LATEST_BASE  # noqa: PLC0415
    from ream.kernel.series import Series  # noqa: PLC0415

    known = {*base_names(), LATEST_BASE}
    old, new = (
        wanted_tree(one, None) if one in known else wanted_tree(None, Path(one))
        for one in (from_, to)
    )
    drawn = chosen_seed(seed)
    return Question(
        series=Series(f"{from_} to {to}", ()),
        tree=old,
        to=new,
        runs=runs_dir(None),
        cache=cache_dir(),
        seed=drawn,
        command=command_line(drawn),
    )


def _watch(
    source: Path,
    pages: Path,
    question_of: "Callable[[Path], Question]",
    *,
    once: bool,
    quiet: bool,
) -> None:
    from ream.judge.session import judge as judged  # noqa: PLC0415
    from ream.judge.watch import arriving, watch  # noqa: PLC0415
    from ream.progress import Reporter  # noqa: PLC0415

    reporter = Reporter(quiet=quiet)
    if str(source) == "-":
        mailboxes: Iterable[Path] = (Path(line.rstrip("\n")) for line in sys.stdin if line.strip())
    elif source.is_dir():
        mailboxes = arriving(source, once=once)
    else:
        raise BadUsage(f"--watch {source}: no folder; give one, or - for standard input")
    watch(mailboxes, pages, lambda path: judged(question_of(path), reporter), reporter.step)


def _also(
    path: Path,
    asked: "Question",
    *,
    letter: Path | None,
    by: str | None,
    places: tuple[Path | None, Path | None, Path | None],
    force: bool,
) -> "dict[Path, Callable[[Judgement], str]]":
    """What else is written of the judgement, by its file; raises BadUsage if that cannot be.

    places: where the page, the Markdown and the JUnit XML go.
    """
    from ream.judge import html, junit, markdown  # noqa: PLC0415
    from ream.judge import letter as letter_module  # noqa: PLC0415
    from ream.kernel.series import mails_of  # noqa: PLC0415

    if by is not None and letter is None:
        raise BadUsage(f"--by {by}: it is a line of --letter; give that, too")
    for file in filter(None, (letter, *places)):
        check_place(file, force=force)
    found: dict[Path, Callable[[Judgement], str]] = {}
    if letter is not None:
        inside = mails_of(path)
        letter_module.answered(asked.series, inside)
        said = None if by is None else letter_module.check_by(by)
        found[letter] = lambda its: letter_module.render(its, asked.series, inside, said)
    for place, module in zip(places, (html, markdown, junit), strict=True):
        if place is not None:
            found[place] = module.render
    return found


def seed_of(series: "Series") -> int:
    """The seed of a series for which none is given: the same each time that it is judged."""
    bodies = b"".join(hashlib.sha256(one.body).digest() for one in series.patches)
    return int.from_bytes(hashlib.sha256(bodies).digest()[:4]) >> 1


def _question(
    path: Path,
    tree: Path | None,
    *,
    base: str | None,
    base_ref: str | None,
    version: int | None,
    config: str | None,
    seed: int | None,
) -> "Question":
    """What is asked, with a series that is read and the kernel source that it is for."""
    from ream.judge.question import Question  # noqa: PLC0415
    from ream.kernel.series import mails_of  # noqa: PLC0415

    if base_ref is not None:
        if tree is None:
            raise BadUsage(f"--base-ref {base_ref}: a commit of what? --tree DIR names it")
        tree = Path(f"{tree}@{base_ref}")
    (its,), source = given_series([path], base, tree, version=version)
    same = {"--base": base, "--tree": tree, "--version": version, "--config": config}
    given = {"--series": path, **{name: one for name, one in same.items() if one is not None}}
    drawn = seed_of(its) if seed is None else seed
    return Question(
        series=its,
        tree=source,
        ids=frozenset(mail.message_id for mail in mails_of(path) if mail.message_id),
        runs=runs_dir(None),
        cache=cache_dir(),
        seed=drawn,
        command=command_line(drawn),
        program_words=tuple(str(word) for pair in given.items() for word in pair),
    )
