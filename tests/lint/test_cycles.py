# SPDX-License-Identifier: GPL-2.0-only
"""No module of the engine needs one that needs it, not even inside of a function."""

import ast
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

from ream.paths import CHECKOUT

LAB = CHECKOUT / "lab"


def name_of(path: Path) -> str:
    return ".".join(path.relative_to(LAB).with_suffix("").parts).removesuffix(".__init__")


def imported(tree: ast.AST, modules: frozenset[str]) -> Iterator[str]:
    """Modules of the engine that are imported anywhere, or only for types."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names = [f"{node.module}.{one.name}" for one in node.names]
            yield from (name if name in modules else node.module for name in names)
        elif isinstance(node, ast.Import):
            yield from (one.name for one in node.names)


def test_modules_of_the_engine_import_one_another_one_way() -> None:
    paths = {name_of(path): path for path in LAB.rglob("*.py")}
    known = frozenset(paths)
    needs = {
        name: {it for it in imported(ast.parse(path.read_text()), known) if it in known} - {name}
        for name, path in paths.items()
    }
    assert sum(map(len, needs.values())) > len(paths)
    TopologicalSorter(needs).prepare()  # raises CycleError with the modules of a cycle
