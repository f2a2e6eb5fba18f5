# SPDX-License-Identifier: GPL-2.0-only
"""A function is one thought: at most 60 lines and 10 parameters, but for declarations of commands.

A command's parameters are its options, which typer reads from the signature.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from ream.paths import CHECKOUT

MOST_LINES = 60
MOST_PARAMETERS = 10

Function = ast.FunctionDef | ast.AsyncFunctionDef


def functions(path: Path) -> Iterator[Function]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, Function):
            yield node


def is_command(function: Function) -> bool:
    return any("app.command(" in ast.unparse(one) for one in function.decorator_list)


def nr_parameters(function: Function) -> int:
    given = function.args
    names = [one.arg for one in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
    return len(names) - (names[:1] in (["self"], ["cls"]))


def too_large(path: Path) -> Iterator[str]:
    for function in functions(path):
        nr_lines = (function.end_lineno or 0) - function.lineno + 1
        if is_command(function):
            continue
        if nr_lines > MOST_LINES or nr_parameters(function) > MOST_PARAMETERS:
            size = f"{nr_lines} lines, {nr_parameters(function)} parameters"
            yield f"{path.name}: {function.name}: {size}"


@pytest.mark.parametrize("root", ["lab", "experiments"])
def test_functions_are_small(root: str) -> None:
    found = [fault for path in (CHECKOUT / root).rglob("*.py") for fault in too_large(path)]
    assert not found, "\n".join(found)


def test_a_large_function_is_found(tmp_path: Path) -> None:
    body = "\n    pass" * MOST_LINES
    path = tmp_path / "large.py"
    path.write_text(f"def long():{body}\n\ndef wide({', '.join('abcdefghijk')}): ...\n")
    assert [fault.split(":")[1].strip() for fault in too_large(path)] == ["long", "wide"]
