# SPDX-License-Identifier: GPL-2.0-only
"""What a kit holds: kit.json, which its result returns, and the names of the other files."""

import hashlib
from typing import Any

from pydantic import Field, ValidationError

from ream.errors import BadUsage
from ream.measure.plan import Launch
from ream.record.receipt import BuiltKernel, Ream
from ream.values import Name, Sealed, Texts, Tuple, Value, faults

SCHEMA = 1
"""Schema number of kit.json and of results, described in docs/commands.md."""

KIT = "kit.json"
SUMS = "SHA256SUMS"
ID_DIGITS = 12
SUFFIX = ".result"
"""The end of a result's name, by which `ream merge` knows one."""

CPU_COUNTS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
"""Machines for which a kit has plans: one of more CPUs takes the largest that it has."""


class PlanOfKit(Value):
    """The rows of one program for machines of one number of CPUs."""

    file: str
    sha256: str
    rows: Tuple[Sealed[str, Any]]
    """The fields of each row that runs."""
    shrunk: Texts
    cpus: int
    """CPUs that the kernels see; 0: as many as there are."""
    needed_bytes: int


class LaunchOfKit(Value):
    """One launch: its draws, and the program that is linked for it alone."""

    number: int
    seed: int
    data_offset: int
    link_order: Texts
    sha256: str
    """Of the program."""

    def launch(self) -> Launch:
        """The launch, as a run here has it."""
        return Launch(self.number, self.seed, self.data_offset, self.link_order)


class PartOfKit(Value):
    """One program of an experiment."""

    name: str
    """The name of its files."""
    label: str
    config_sha256: str
    launches: Tuple[LaunchOfKit]
    plans: Sealed[str, PlanOfKit]
    """By number of CPUs; a machine of a number that is missing runs no row of this program."""


class VisitOfKit(Value):
    """A run of a program that times whole calls of the kernel that the other machine runs."""

    name: str
    """The name of its files."""
    program: str
    words: Texts
    sha256: str
    """Of the program."""


class ExperimentOfKit(Value):
    """One experiment: what a run of it would have recorded before its first launch."""

    name: Name
    plan: Sealed[str, Any]
    """The object of plan.json."""
    series: str
    """The text of series.json."""
    kernel: BuiltKernel
    benchmark: str
    operations_verified: int
    symbols: Sealed[str, Any]
    parts: Tuple[PartOfKit]
    visits: Tuple[VisitOfKit] = ()


class Kit(Value):
    """A kit without its programs."""

    schema_number: int = Field(alias="schema")
    ream: Ream
    arch: str
    minutes: float
    experiments: Tuple[ExperimentOfKit]

    def to_text(self) -> str:
        """The text of kit.json."""
        return self.model_dump_json(by_alias=True) + "\n"


def id_of(text: bytes) -> str:
    """The id of a kit: digits of the SHA-256 of its kit.json."""
    return hashlib.sha256(text).hexdigest()[:ID_DIGITS]


def read_kit(text: bytes, *, where: str) -> Kit:
    """Read kit.json; raises BadUsage if it is none, or one of another schema."""
    try:
        return Kit.model_validate_json(text)
    except ValidationError as cause:
        raise faults(f"{where}: {KIT}", cause) from cause
    except ValueError as cause:
        raise BadUsage(f"{where}: {KIT}: {cause}") from cause
