# SPDX-License-Identifier: GPL-2.0-only
"""The option `--html`: a page for a browser, in a file or on standard output."""

import re
import shlex
import sys
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from ream.cli.helped import OTHER, Sectioned, Shown
from ream.errors import BadUsage

if TYPE_CHECKING:
    from ream.report.html.sheet import Sheet

HTML = "--html"
DEFAULT = ""
"""What --html without a file stands for."""
STDOUT = "-"
_OTHER_FILE = re.compile(r"\.(?!toml$)[a-z]+", re.IGNORECASE)
"""The end of a file's name that is neither a page nor a table."""


class Paged(TyperCommand):
    """`--html` may stand alone, with a FILE that ends in .html, or with `-`.

    Any other word behind it is the RUN, so that `ream report --html last` is no file "last".
    """

    too_many = "one word too many"
    """What is said of a word that the command has no use for."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Give --html its FILE, or an empty one."""
        ctx.allow_extra_args = True  # they are refused below, with the cause
        word = dict(pairwise(args)).get(HTML, STDOUT)
        if not ctx.resilient_parsing and _is_other_file(word):
            raise _no_page(word)
        left = super().parse_args(ctx, list(html_joined(args)))
        if ctx.args and not ctx.resilient_parsing:
            if word.startswith("-") or _is_page(word):
                raise BadUsage(f"{ctx.args[0]!r}: {self.too_many}")
            raise _no_page(word)
        return left


class PagedShown(Paged, Shown):
    """A command with --html whose help ends with examples."""


class PagedSectioned(Paged, Sectioned):
    """A command with --html whose help is one screen."""


def html_option(default: str, more: str = "") -> Any:
    """The option; default: the name of its file, more: what the page has."""
    return typer.Option(
        HTML,
        metavar="[FILE]",
        help=f"Write one page for a browser{more}. It opens without network. FILE ends in .html"
        f" (else write {HTML}=FILE); without it {default} here; `-` is standard output.",
    )


ForceOption = Annotated[
    bool, typer.Option("--force", rich_help_panel=OTHER, help="Let --html replace a file.")
]


def check_force(html: str | None, *, force: bool) -> None:
    """Raise BadUsage for --force without the page that it is about."""
    if force and html is None:
        raise BadUsage(f"--force is about the file of {HTML}")


def _no_page(word: str) -> BadUsage:
    return BadUsage(f"{HTML} {word}: FILE must end in .html; {HTML}={word} writes any name")


def html_joined(args: Sequence[str]) -> Iterator[str]:
    """The words of a command line with --html and its FILE as one."""
    words = iter(args)
    for word in words:
        if word == "--":
            yield from (word, *words)
        elif word != HTML:
            yield word
        else:
            following = next(words, None)
            if following is not None and _is_page(following):
                yield f"{HTML}={following}"
            else:
                yield f"{HTML}={DEFAULT}"
                # It may be --html again, or an option with a value of its own.
                yield from html_joined(() if following is None else (following, *words))


def _is_page(word: str) -> bool:
    return word == STDOUT or (
        not word.startswith("-") and Path(word).suffix.lower() in (".html", ".htm")
    )


def _is_other_file(word: str) -> bool:
    named = _OTHER_FILE.fullmatch(Path(word).suffix) is not None
    return named and not word.startswith("-") and not _is_page(word) and not Path(word).exists()


def place_of(name: str, default: str, *, force: bool) -> Path | None:
    """Where a page goes; None is standard output. Asked before the work that makes the page.

    Raises BadUsage if it may not be written there.
    """
    from ream.files import check_place  # noqa: PLC0415

    if name == STDOUT:
        return None
    path = Path(name or default)
    check_place(path, force=force)
    return path


def write_page(path: Path | None, text: str, *, force: bool) -> None:
    """Write a page and print its name, or print the page."""
    from ream.files import write_whole  # noqa: PLC0415

    # A lone half of a pair, as damaged JSON may have, is no character.
    page = text.encode("utf-8", "backslashreplace")
    if path is None:
        sys.stdout.buffer.write(page)
        return
    write_whole(path, page, force=force)
    print(path)


def write_sheet(path: Path | None, sheet: "Sheet", *, force: bool) -> None:
    """Write the page of this command."""
    from ream.site.pages import sheet_page  # noqa: PLC0415

    command = shlex.join(["ream", *sys.argv[1:]])
    write_page(path, sheet_page(sheet, command=command), force=force)
