# SPDX-License-Identifier: GPL-2.0-only
"""What several commands print names no option that one of them lacks.

A text may begin with an option, which repeats what was given. Of another command's option a hint
names the command, as in `ream run --count`.
"""

import ast
import re
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

import pytest
import typer

from ream import cli
from ream.cli.app import app
from ream.paths import CHECKOUT

LAB = CHECKOUT / "lab"
SESSION = LAB / "ream/judge/session.py"
"""What it imports, `ream judge` prints, and so do other commands that measure."""

OPTION = re.compile(r"(?<![\w-])--[a-z][\w-]*")
QUOTED = re.compile(r"`ream [^`]*`")


def options() -> Mapping[str, frozenset[str]]:
    """The options of each command."""
    for module in iter_modules(cli.__path__):
        import_module(f"ream.cli.{module.name}")
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    return {
        name: frozenset(word for one in its.params for word in (*one.opts, *one.secondary_opts))
        for name, its in commands.items()
    }


def modules() -> frozenset[Path]:
    """What a judgement imports, and what that does; commands are left out."""
    found, todo = set[Path](), [SESSION]
    while todo:
        path = todo.pop()
        if path in found or not path.is_file() or path.is_relative_to(LAB / "ream/cli"):
            continue
        found.add(path)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("ream"):
                place = LAB / str(node.module).replace(".", "/")
                todo += [place.with_suffix(".py"), place / "__init__.py"]
                todo += [place / f"{one.name}.py" for one in node.names]
    return frozenset(found)


def texts(source: str) -> Iterator[tuple[int, str]]:
    """Each text of several words with its line, what it formats left out; no docstring."""
    tree = ast.parse(source)
    joined = [node for node in ast.walk(tree) if isinstance(node, ast.JoinedStr)]
    parts = {id(one) for node in joined for one in node.values}
    parts |= {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        pieces = node.values if isinstance(node, ast.JoinedStr) else [node]
        text = "".join(
            str(one.value) if isinstance(one, ast.Constant) else "{}"
            for one in pieces
            if isinstance(one, ast.Constant | ast.FormattedValue)
        )
        if id(node) not in parts and " " in text:
            yield getattr(node, "lineno", 0), text


def hinted(text: str) -> list[str]:
    """The options that a text names though nobody has given them."""
    bare = QUOTED.sub("", text).strip()
    return [] if bare.startswith("--") else OPTION.findall(bare)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a quieter machine, or --max-launches, narrows it", ["--max-launches"]),
        ("--cpus {}: where counted there is one; --no-icount runs more", []),
        ("nothing was counted; `ream run {} --count` counts", []),
    ],
)
def test_a_hint_is_an_option_that_was_not_given(text: str, found: list[str]) -> None:
    assert hinted(text) == found


def test_hints_name_options_of_the_command_that_runs() -> None:
    every = options()
    known = frozenset[str]().union(*every.values())
    paths = modules()
    assert LAB / "ream/session/run.py" in paths
    found = [
        f"{path.relative_to(CHECKOUT)}:{line}: ream judge has no {option}: {text}"
        for path in sorted(paths)
        for line, text in texts(path.read_text(encoding="utf-8"))
        for option in hinted(text)
        if option in known - every["judge"]
    ]
    assert not found, "\n".join(found)


def test_commands_that_are_quoted_take_the_options_that_they_have() -> None:
    every = options()
    quoted = [
        (path, line, one)
        for path in sorted((LAB / "ream").rglob("*.py"))
        for line, text in texts(path.read_text(encoding="utf-8"))
        for one in QUOTED.findall(text)
    ]
    assert len(quoted) > 10
    found = [
        f"{path.relative_to(CHECKOUT)}:{line}: {one}: no {option}"
        for path, line, one in quoted
        for option in OPTION.findall(one)
        if option not in every.get(one.split()[1].strip("`"), frozenset({option}))
    ]
    assert not found, "\n".join(found)
