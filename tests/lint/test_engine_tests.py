# SPDX-License-Identifier: GPL-2.0-only
"""Tests of the engine know no experiment by its code: an experiment's tests are in its folder.

A test that needs some experiment's rows, variants or programs gets them by its name.
"""

import ast
from collections.abc import Iterable
from pathlib import Path

import pytest

from checkout import named, none_of
from ream.paths import CHECKOUT

ALLOWED = {
    "tests/unit/test_tried_somewhere.py": (
        "which rows of deferred-init get times on a machine depends on its shapes of guests"
    ),
    "tests/vm/test_faults.py": "guests that hang, are killed or are too small have to do something",
}
"""Tests of the engine that need the code of a real experiment, each with the reason."""


def experiments_imported(text: str) -> set[str]:
    """Names of the experiments that a Python file imports, anywhere in it."""
    found: list[str] = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found += [one.name for one in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            found += [f"{node.module}.{one.name}" for one in node.names]
    return {words[1] for one in found if (words := one.split("."))[0] == "experiments"}


def importing(paths: Iterable[Path]) -> dict[str, set[str]]:
    found = {named(path): experiments_imported(path.read_text(encoding="utf-8")) for path in paths}
    return {name: its for name, its in found.items() if its}


def test_tests_of_the_engine_import_no_experiment() -> None:
    paths = (CHECKOUT / "conftest.py", *(CHECKOUT / "tests").rglob("*.py"))
    none_of(
        f"{name}: imports {', '.join(sorted(its))}: move it to the tests of the experiment, or get "
        "what it needs by name, as tests/named_rows.py does"
        for name, its in importing(paths).items()
        if name not in ALLOWED
    )


def test_every_allowance_is_needed() -> None:
    none_of(
        f"{name}: is allowed to import experiments, and imports none"
        for name in ALLOWED
        if not importing([CHECKOUT / name])
    )


@pytest.mark.parametrize(
    "line",
    [
        "import experiments.fork.rows",
        "from experiments.fork import rows",
        "from experiments import fork",
        "def later():\n    from experiments.fork.rows import ForkRow",
    ],
)
def test_an_import_is_found_wherever_it_is(line: str) -> None:
    assert experiments_imported(line) == {"fork"}
    assert not experiments_imported(repr(line))
