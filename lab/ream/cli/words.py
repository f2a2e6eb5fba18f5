# SPDX-License-Identifier: GPL-2.0-only
"""`ream help`: a command's help under the name that git gives it, and the glossary."""

import textwrap
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from ream.cli.app import app
from ream.errors import BadUsage
from ream.nearest import hint
from ream.width import width

GLOSSARY = Path(__file__).parents[1] / "glossary.toml"
ALL, STEPS = "words", "steps"

STEPS_HEAD = (
    "A line of a program is a step. Words in capitals are names and numbers that you choose, those"
    " in brackets may be left out, and | stands between words of which one is written. pN is a"
    " process: p0 is there from the beginning, and `p0 fork p1` makes another. AREA is what mmap"
    " named: a, a[3] or a[3:9] for some of its pages. What describes the computer (memory, cpus,"
    " file, swap) comes first."
)


def glossary() -> Mapping[str, Mapping[str, str]]:
    """What each word means, by heading and word."""
    return tomllib.loads(GLOSSARY.read_text(encoding="utf-8"))


def _subjects(incomplete: str) -> list[str]:
    group: Any = typer.main.get_command(app)
    meanings = (word for part in glossary().values() for word in part)
    known = dict.fromkeys((ALL, STEPS, *group.commands, *meanings))
    return [one for one in known if one.startswith(incomplete)]


@app.command(name="help")
def help_(
    context: typer.Context,
    subject: Annotated[
        str | None,
        typer.Argument(
            help="A command, words, one word of it, or steps.", autocompletion=_subjects
        ),
    ] = None,
) -> None:
    """Show the help of a command, or what ream's words mean.

    `ream help words` prints the glossary, `ream help floor` one word of it, and `ream help steps`
    the steps of programs.

    Exit status: 0 shown, 2 there is no such command or word.
    """
    group: Any = context.find_root().command
    if subject is None:
        print(context.find_root().get_help())
    elif subject == ALL:
        print("\n".join(_lines(glossary())))
    elif subject == STEPS:
        print("\n".join(_steps()))
    elif subject in group.commands:
        command = group.commands[subject]
        with command.make_context(
            subject, [], parent=context.find_root(), resilient_parsing=True
        ) as its:
            print(command.get_help(its))
    else:
        meanings = {word: says for part in glossary().values() for word, says in part.items()}
        if subject not in meanings:
            raise BadUsage(
                f"no command or word {subject!r}{hint(subject, _subjects(''))}; ream help {ALL}"
                " prints the words"
            )
        print("\n".join(_entry(subject, meanings[subject], len(subject))))


def _steps() -> Iterator[str]:
    from ream.program.grammar import FILE_KINDS_HELP, FORMS  # noqa: PLC0415
    from ream.program.kinds import Word, Words  # noqa: PLC0415
    from ream.program.knobs import CALLS, CALLS_ON_PAGES  # noqa: PLC0415

    yield from textwrap.wrap(STEPS_HEAD, width(), break_on_hyphens=False)
    yield ""
    for form in FORMS.values():
        yield from _wrapped(f"  {form.usage()}")
    yield ""
    for form in FORMS.values():
        for kind in form.operands.values():
            if isinstance(kind, Word | Words) and "|" not in kind.what:
                what, names = kind.what.removesuffix(",..."), ", ".join(kind.numbers)
                yield from _wrapped(f"  {what} of {form.verb}: {names}")
    yield from _wrapped(f"  FUNCTION of call: {', '.join(sorted({*CALLS, *CALLS_ON_PAGES}))}")
    yield ""
    yield from textwrap.wrap(FILE_KINDS_HELP, width(), break_on_hyphens=False)


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(
        text, width(), subsequent_indent=" " * 6, break_on_hyphens=False, break_long_words=False
    )


def _lines(parts: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
    widest = max(len(word) for part in parts.values() for word in part)
    for number, (heading, part) in enumerate(parts.items()):
        yield from ("",) if number else ()
        yield f"{heading}:"
        for word, says in part.items():
            yield from _entry(word, says, widest)


def _entry(word: str, says: str, widest: int) -> list[str]:
    first = f"  {word:<{widest}}  "
    return textwrap.wrap(
        f"{first}{says}", width(), subsequent_indent=" " * len(first), break_on_hyphens=False
    )
