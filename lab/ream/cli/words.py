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
ALL = "words"


def glossary() -> Mapping[str, Mapping[str, str]]:
    """What each word means, by heading and word."""
    return tomllib.loads(GLOSSARY.read_text(encoding="utf-8"))


def _subjects(incomplete: str) -> list[str]:
    group: Any = typer.main.get_command(app)
    meanings = (word for part in glossary().values() for word in part)
    known = dict.fromkeys((ALL, *group.commands, *meanings))
    return [one for one in known if one.startswith(incomplete)]


@app.command(name="help")
def help_(
    context: typer.Context,
    subject: Annotated[
        str | None,
        typer.Argument(help="A command, words, or one word of it.", autocompletion=_subjects),
    ] = None,
) -> None:
    """Show the help of a command, or what ream's words mean.

    `ream help words` prints the glossary, and `ream help floor` one word of it.

    Exit status: 0 shown, 2 there is no such command or word.
    """
    group: Any = context.find_root().command
    if subject is None:
        print(context.find_root().get_help())
    elif subject == ALL:
        print("\n".join(_lines(glossary())))
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
