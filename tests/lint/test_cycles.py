# SPDX-License-Identifier: GPL-2.0-only
"""No module needs one that needs it, not even inside of a function, and no experiment does.

An experiment may use another one's code. Two that use each other could be changed, benchmarked and
left out only together.
"""

import ast
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from ream.paths import CHECKOUT, EXPERIMENTS

LAB = CHECKOUT / "lab"


def name_of(path: Path, root: Path) -> str:
    return ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__")


def imported(tree: ast.AST, package: str, modules: frozenset[str]) -> Iterator[str]:
    """Names of modules that are imported anywhere, or only for types.

    package: the dotted name that `from . import` is relative to.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1]
            parts = (*(above if node.level else ()), *((node.module,) if node.module else ()))
            names = [".".join((*parts, one.name)) for one in node.names]
            yield from (name if name in modules else ".".join(parts) for name in names)
        elif isinstance(node, ast.Import):
            yield from (one.name for one in node.names)


def needs_of(paths: Mapping[Path, str]) -> dict[str, set[str]]:
    """The modules that each module imports, among those given; both by their dotted names."""
    known = frozenset(paths.values())
    needs: dict[str, set[str]] = {}
    for path, name in paths.items():
        package = name if path.stem == "__init__" else name.rpartition(".")[0]
        found = imported(ast.parse(path.read_text(encoding="utf-8")), package, known)
        needs[name] = {it for it in found if it in known} - {name}
    return needs


def modules_of_experiments(root: Path) -> dict[Path, str]:
    """Names of the modules of all experiments, without their tests."""
    found = (path for path in root.rglob("*.py") if "tests" not in path.relative_to(root).parts)
    return {path: name_of(path, root.parent) for path in found}


def experiments_needed(needs: Mapping[str, set[str]]) -> dict[str, set[str]]:
    """The experiments whose code each experiment uses, by the names of their folders."""
    by_folder: dict[str, set[str]] = {}
    for name, its in needs.items():
        folder = name.split(".")[1]
        by_folder.setdefault(folder, set()).update(it.split(".")[1] for it in its)
    return {folder: its - {folder} for folder, its in by_folder.items()}


def test_modules_of_the_engine_import_one_another_one_way() -> None:
    needs = needs_of({path: name_of(path, LAB) for path in LAB.rglob("*.py")})
    assert sum(map(len, needs.values())) > len(needs)
    TopologicalSorter(needs).prepare()  # raises CycleError with the modules of a cycle


def test_modules_of_experiments_import_one_another_one_way() -> None:
    needs = needs_of(modules_of_experiments(EXPERIMENTS))
    assert sum(map(len, needs.values())) > len(needs)
    TopologicalSorter(needs).prepare()


def test_no_two_experiments_need_each_other() -> None:
    needs = experiments_needed(needs_of(modules_of_experiments(EXPERIMENTS)))
    assert sum(map(len, needs.values())) > 1
    TopologicalSorter(needs).prepare()


def test_experiments_that_need_each_other_are_found(tmp_path: Path) -> None:
    root = tmp_path / "experiments"
    for name, text in {
        "one/rows.py": "",
        "one/plan.py": "def later():\n    from experiments.two.rows import Row",
        "two/rows.py": "from . import of_mine",
        "two/of_mine.py": "import experiments.one.rows",
        "two/tests/test_rows.py": "import experiments.three.rows",
        "three/rows.py": "from ..two.rows import Row",
    }.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    modules = needs_of(modules_of_experiments(root))
    TopologicalSorter(modules).prepare()
    needs = experiments_needed(modules)
    assert needs == {"one": {"two"}, "two": {"one"}, "three": {"two"}}
    with pytest.raises(CycleError, match="cycle"):
        TopologicalSorter(needs).prepare()
