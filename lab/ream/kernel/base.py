# SPDX-License-Identifier: GPL-2.0-only
"""Bases: kernels that can be selected by version, each with a file in kernel/base."""

import re
from dataclasses import dataclass

from pydantic import ValidationError

from ream.errors import BadUsage
from ream.folders import base_names, version_numbers
from ream.nearest import hint
from ream.paths import KERNEL_BASE
from ream.values import Texts, Value, faults, read_toml

LATEST_BASE = "latest"
"""Name of the newest kernel in the archive, whether or not it has a file."""

_PACKAGE = re.compile(r"linux-source-(\d+(?:\.\d+)+)")


@dataclass(frozen=True)
class Base:
    """A kernel and its source."""

    name: str
    """The name that --base takes: a version, or `latest`."""
    package: str | None
    """A package of the archive; None: the newest linux-source-VERSION of the suites."""
    suites: tuple[str, ...] = ()
    """Suites of this machine's archive from which apt chooses; none: its own sources."""

    def __str__(self) -> str:
        return self.package or "the newest linux-source"


class _File(Value):
    """The contents of a file of kernel/base."""

    package: str
    suites: Texts = ()
    default: bool = False


def base_named(name: str) -> Base:
    """Return a base by its version, or `latest`; raises BadUsage if there is none of that name."""
    if name == LATEST_BASE:
        found = (suite for one in base_names() for suite in _read(one).suites)
        return Base(LATEST_BASE, None, tuple(dict.fromkeys(found)))
    if name not in (known := base_names()):
        raise BadUsage(
            f"--base {name}: no such base{hint(name, known)}; there is {', '.join(known)} and"
            f" {LATEST_BASE}, and --tree takes any kernel source"
        )
    its = _read(name)
    return Base(name, its.package, its.suites)


def default_base() -> Base:
    """Return the base that is used if none is named."""
    return base_named(next(name for name in base_names() if _read(name).default))


def newest_package(names: list[str]) -> str | None:
    """Return the package name of the newest kernel source; None if there is none."""
    found = [name for name in names if _PACKAGE.fullmatch(name)]
    return max(found, key=lambda name: version_numbers(name.rpartition("-")[2]), default=None)


def _read(name: str) -> _File:
    path = KERNEL_BASE / f"{name}.toml"
    try:
        return _File.model_validate(read_toml(path))
    except ValidationError as cause:
        raise faults(str(path), cause) from cause
