# SPDX-License-Identifier: GPL-2.0-only
"""A manual page in man(7), from the same words as `--help`."""

from collections.abc import Iterator, Sequence

from ream import __released__, __version__
from ream.examples import examples
from ream.manual.tree import Page, Word

ENVIRONMENT = (
    ("XDG_CACHE_HOME", "Kernel trees and builds are in ream/ below it; ~/.cache if it is not set."),
    ("PAGER", "What shows long results on a terminal: less if it is not set; cat for none."),
    ("XDG_DATA_HOME", "Records are in ream/runs/ below it; ~/.local/share if it is not set."),
    ("NO_COLOR", "If set, nothing is coloured."),
    ("REAM_NO_INSTALL", "If 1, no Debian package is installed, as with --no-install."),
)


def file_name(page: Page) -> str:
    return f"{title(page)}.1"


def title(page: Page) -> str:
    return f"ream-{page.name}" if page.name else "ream"


def render(page: Page, every: Sequence[Page]) -> str:
    """The page's source; every: all pages, which it names where it refers to them."""
    return "\n".join(_lines(page, every)) + "\n"


def _lines(page: Page, every: Sequence[Page]) -> Iterator[str]:
    yield '.\\" SPDX-License-Identifier: GPL-2.0-only'
    yield f'.TH {title(page).upper()} 1 {__released__} "ream {__version__}"'
    yield ".SH NAME"
    yield f"{literal(title(page))} \\- {literal(page.short[:1].lower() + page.short[1:])}"
    yield ".SH SYNOPSIS"
    yield f".B {literal(title(page).replace('-', ' ', 1))}"
    yield literal(page.usage)
    yield ".SH DESCRIPTION"
    for number, paragraph in enumerate(page.paragraphs):
        if number:
            yield ".PP"
        yield literal(paragraph)
    commands = [other for other in every if other.name] if not page.name else []
    if commands:
        yield ".SH COMMANDS"
        for other in commands:
            yield ".TP"
            yield f".BR {literal(title(other))} (1)"
            yield f"{literal(other.short)}."
    yield from _words("ARGUMENTS", [word for word in page.words if word.is_argument])
    yield from _options([word for word in page.words if not word.is_argument])
    if page.exits:
        yield from _terms("EXIT STATUS", page.exits)
    if not page.name:
        yield from _terms("ENVIRONMENT", ENVIRONMENT)
    yield ".SH EXAMPLES"
    yield from _list([(line, says) for line, says in examples()[page.name or "ream"].items()])
    yield ".SH SEE ALSO"
    others = [other for other in every if other != page]
    if page.name:
        others = [other for other in others if not other.name]
    for number, other in enumerate(others):
        yield f".BR {literal(title(other))} (1){',' if number + 1 < len(others) else ''}"


def _options(words: Sequence[Word]) -> Iterator[str]:
    yield from _words("OPTIONS", [word for word in words if word.section is None])
    for section in dict.fromkeys(word.section for word in words if word.section):
        yield f".SS {literal(section)}"
        yield from _list([(word.shown, word.says) for word in words if word.section == section])


def _words(heading: str, words: Sequence[Word]) -> Iterator[str]:
    if words:
        yield from _terms(heading, [(word.shown, word.says) for word in words])


def _terms(heading: str, terms: Sequence[tuple[str, str]]) -> Iterator[str]:
    yield f".SH {heading}"
    yield from _list(terms)


def _list(terms: Sequence[tuple[str, str]]) -> Iterator[str]:
    for term, says in terms:
        yield ".TP"
        yield f".B {literal(term)}"
        yield literal(says or "(nothing more to say)")


def literal(text: str) -> str:
    """Text that roff prints as it stands: hyphens that can be copied, no line that is a request."""
    text = text.replace("\\", "\\e").replace("-", "\\-").replace('"', "\\(dq")
    return f"\\&{text}" if text[:1] in {".", "'"} else text
