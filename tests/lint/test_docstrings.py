# SPDX-License-Identifier: GPL-2.0-only
"""A docstring can be read alone, and a comment does not speak of code as of a person."""

import ast
import io
import re
import tokenize
from collections.abc import Iterator

from checkout import files, named, none_of

CONTINUES = re.compile(r"(Of|Its|As) ")
"""A text that begins so continues the name that it describes."""

PERSON = re.compile(r"\b(whoever|somebody)\b", re.IGNORECASE)

_C_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)


def docstrings(text: str) -> Iterator[tuple[int, str]]:
    """The line and the text of each string that stands alone."""
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Expr(value=ast.Constant(value=str(its))):
                yield node.lineno, its


def comments(text: str, suffix: str) -> Iterator[tuple[int, str]]:
    """The line and the text of each comment and docstring of a source."""
    if suffix != ".py":
        for found in _C_COMMENT.finditer(text):
            yield text.count("\n", 0, found.start()) + 1, found[0]
        return
    yield from docstrings(text)
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def test_a_docstring_does_not_continue_the_name_that_it_describes() -> None:
    none_of(
        f"{named(path)}:{line}: {its.splitlines()[0]}"
        for path in files()
        if path.suffix == ".py"
        for line, its in docstrings(path.read_text(encoding="utf-8"))
        if CONTINUES.match(its)
    )


def test_a_comment_speaks_of_code_and_processes_as_of_things() -> None:
    none_of(
        f"{named(path)}:{line}: {found[0]}"
        for path in files()
        if path.suffix in (".py", ".c", ".h")
        for line, its in comments(path.read_text(encoding="utf-8"), path.suffix)
        if (found := PERSON.search(its))
    )


def test_both_are_found() -> None:
    text = 'NR = 1\n"""Of a thing."""\n# Whoever reads it.\n'
    assert [*docstrings(text)] == [(2, "Of a thing.")]
    assert [line for line, its in comments(text, ".py") if PERSON.search(its)] == [3]
    assert [*comments("int a;\n/* Somebody. */", ".c")] == [(2, "/* Somebody. */")]
