# SPDX-License-Identifier: GPL-2.0-only
"""The commands as the parser itself has them: the one source of help, manual and completion."""

import inspect
import re
from dataclasses import dataclass
from typing import Any

import typer

_EXIT = re.compile(r"\s*Exit status:\s*(?P<codes>.+?)\.?\s*$", re.DOTALL)
_CODE = re.compile(r"(?:^|,\s*|;\s*|\s+and\s+)(?=\d+ )")


@dataclass(frozen=True)
class Word:
    """An option or an argument, as a reader types it."""

    shown: str
    """With its metavar, as "-o, --output DIR"."""
    says: str
    names: tuple[str, ...]
    """What may be typed for it; none of an argument."""
    takes_value: bool
    is_argument: bool
    section: str | None = None
    """Under which heading of `--help-all` it stands; None: with the common ones."""


@dataclass(frozen=True)
class Page:
    """One command, or with no name the whole of ream."""

    name: str
    short: str
    usage: str
    """What follows the command's name."""
    paragraphs: tuple[str, ...]
    words: tuple[Word, ...]
    exits: tuple[tuple[str, str], ...]
    """Exit codes, each with what it means."""


def pages(app: typer.Typer) -> tuple[Page, ...]:
    """Return the page of ream itself, then one for each command, in the order of the help."""
    # typer brings its own parser, whose types are not public: hence Any.
    group: Any = typer.main.get_command(app)
    return (_page(group, None), *(_page(one, group) for one in group.commands.values()))


def _page(command: Any, parent: Any) -> Page:
    name = command.name if parent is not None else ""
    above = parent.make_context("ream", [], resilient_parsing=True) if parent is not None else None
    # Wide, so that nothing is cut: the caller that prints it wraps it.
    context = command.make_context(
        name or "ream", [], parent=above, resilient_parsing=True, max_content_width=10_000
    )
    text = inspect.cleandoc(command.help or "")
    paragraphs = [" ".join(part.split()) for part in re.split(r"\n\s*\n", text)]
    found = next((match for part in paragraphs if (match := _EXIT.match(part))), None)
    return Page(
        name=name,
        short=paragraphs[0].rstrip("."),
        usage=" ".join(command.collect_usage_pieces(context)),
        paragraphs=tuple(part for part in paragraphs if not _EXIT.match(part)),
        words=tuple(_word(param, context) for param in command.get_params(context)),
        exits=_exits(found["codes"]) if found else (),
    )


def _word(param: Any, context: Any) -> Word:
    is_argument = param.param_type_name == "argument"
    shown, says = param.get_help_record(context) or (param.name, "")
    return Word(
        shown=" ".join(shown.split()),
        says=" ".join(says.split()),
        names=() if is_argument else (*param.opts, *param.secondary_opts),
        takes_value=not is_argument and not param.is_flag and not param.count,
        is_argument=is_argument,
        section=getattr(param, "rich_help_panel", None),
    )


def _exits(codes: str) -> tuple[tuple[str, str], ...]:
    parts = (part.partition(" ") for part in _CODE.split(codes) if part)
    return tuple((code, says.strip()) for code, _, says in parts)
