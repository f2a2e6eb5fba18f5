# SPDX-License-Identifier: GPL-2.0-only
"""Experiments as there are: a folder each, found by listing, with code of its own.

A folder is a Python package with `rows.py`, whose EXPERIMENT is the class that its file
experiment.toml is read into, and a module for each stage that it has: `hosted.py`, `guests.py`,
`live.py`, with one value each, HOSTED, GUESTS, LIVE.
"""

import hashlib
import importlib
import json
import re
import sys
from collections.abc import Mapping
from importlib.machinery import ModuleSpec
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

from pydantic import ValidationError

from ream.errors import BadUsage
from ream.experiment.columns import NO_COLUMNS, Columns
from ream.experiment.counters import with_counters
from ream.experiment.shape import ExperimentBase, RowBase
from ream.folders import EXPERIMENT as FILE
from ream.folders import file_of, name_of, names
from ream.grid import expanded
from ream.paths import EXPERIMENTS
from ream.values import faults, read_toml

T = TypeVar("T")

Experiment = ExperimentBase[RowBase]

_NAMESPACE = "experiments"
_DIGITS = 8
_LEANS = re.compile(rf"^from {_NAMESPACE}\.(\w+)", re.MULTILINE)


def named(name: str) -> Experiment:
    """An experiment of this checkout; raises BadUsage if there is none."""
    return load(file_of(name))


def load(path: Path) -> Experiment:
    """Read one experiment, its grids as single rows.

    path: its folder, or a file: of such a folder, or with rows of your own for an experiment of
    this checkout, which it names.
    Raises BadUsage with every fault of the file, one line each: file: field: fault (value).
    """
    path = path / FILE if path.is_dir() else path
    fields = read_toml(path)
    kind = _kind(path, fields.get("name"))
    if path.parent.parent == EXPERIMENTS and fields.get("name") != (own := name_of(path.parent)):
        raise BadUsage(f"{path}: name: must be {own}, as its folder (it is {fields.get('name')!r})")
    places: tuple[int, ...] = ()
    if isinstance(rows := fields.get("rows"), list) and rows:
        places, fields["rows"] = zip(*expanded(rows, source=str(path)), strict=True)
    try:
        return kind.model_validate(fields)
    except ValidationError as cause:
        raise faults(str(path), cause, rows=places) from cause


def columns_of(name: object, folder: Path | None = None) -> Columns:
    """What its samples have beside time: the machine's counters, and what the experiment declares.

    If its code is not there, the counters alone.

    folder: of one that is none of this checkout's.
    """
    if folder is None:
        own = _class_of(file_of(str(name)).parent).columns if name in names() else NO_COLUMNS
    else:
        own = _class_of(folder).columns if (folder / "rows.py").is_file() else NO_COLUMNS
    return with_counters(own)


def revived(fields: Mapping[str, Any], folder: str | None = None) -> Experiment:
    """An experiment from what `model_dump` gave of it; folder: of one of another place.

    Raises ValueError, of pydantic, or BadUsage if its code is not there.
    """
    place = Path(folder).expanduser() if folder else file_of(str(fields.get("name"))).parent
    return _class_of(place).model_validate_json(json.dumps(dict(fields)))


def _kind(path: Path, name: object) -> type[Experiment]:
    if (path.parent / "rows.py").is_file():
        return _class_of(path.parent)
    if name is None:
        raise BadUsage(f"{path}: name: Field required; there are {', '.join(names())}")
    try:
        return _class_of(file_of(str(name)).parent)
    except BadUsage as cause:
        raise BadUsage(f"{path}: name: {cause}") from cause


def _class_of(folder: Path) -> type[Experiment]:
    if not (folder / "rows.py").is_file():
        raise BadUsage(f"{folder}: the code of an experiment is not there")
    module = importlib.import_module(f"{_package(folder)}.rows")
    held: type[Experiment] = _held(module, "EXPERIMENT", type)
    # Its other modules are found by where its class is.
    if held.__module__ != module.__name__:
        raise BadUsage(f"{module.__file__}: EXPERIMENT is of {held.__module__}: make a class of it")
    return held


def part(experiment: type[Experiment], name: str, kind: type[T]) -> T | None:
    """What an experiment's module of that name holds for a stage; None where there is none."""
    package = experiment.__module__.rpartition(".")[0]
    if find_spec(f"{package}.{name}") is None:
        return None
    return _held(importlib.import_module(f"{package}.{name}"), name.upper(), kind)


def folders_of(folder: Path) -> list[Path]:
    """An experiment's folder, and that of every other one whose code it imports."""
    left, found = [folder], list[Path]()
    while left:
        if (one := left.pop()) in found:
            continue
        found.append(one)
        for path in sources_of(one):
            left += (EXPERIMENTS / name for name in _LEANS.findall(path.read_text("utf-8")))
    return sorted(found)


def sources_of(folder: Path) -> list[Path]:
    """The Python of an experiment's folder, without its tests."""
    tests = folder / "tests"
    return sorted(path for path in folder.rglob("*.py") if not path.is_relative_to(tests))


def _held(module: ModuleType, name: str, kind: type[T]) -> T:
    held = getattr(module, name, None)
    if not isinstance(held, kind):
        raise BadUsage(f"{module.__file__}: {name} is no {kind.__name__} (it is {held!r:.80})")
    return held


def _package(folder: Path) -> str:
    """The name of the package in a folder, which can be imported from then on."""
    if _NAMESPACE not in sys.modules:
        spec = ModuleSpec(_NAMESPACE, None, is_package=True)
        spec.submodule_search_locations = [str(EXPERIMENTS)]
        sys.modules[_NAMESPACE] = module_from_spec(spec)
    folder = folder.resolve()
    if folder.parent == EXPERIMENTS:
        return f"{_NAMESPACE}.{folder.name}"
    # Of another place: it may be called as one of ours is.
    digest = hashlib.sha256(str(folder).encode()).hexdigest()[:_DIGITS]
    name = f"{_NAMESPACE}.{folder.name.replace('-', '_')}_{digest}"
    if name not in sys.modules:
        spec_there = spec_from_file_location(
            name, folder / "__init__.py", submodule_search_locations=[str(folder)]
        )
        assert spec_there is not None
        assert spec_there.loader is not None
        sys.modules[name] = module = module_from_spec(spec_there)
        if (folder / "__init__.py").exists():
            spec_there.loader.exec_module(module)
    return name
