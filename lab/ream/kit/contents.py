# SPDX-License-Identifier: GPL-2.0-only
"""Contents of a kit: kit.json, which the result contains again, and the other files' names."""

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
"""Suffix of a result's file name, by which `ream merge` recognises one."""

CPU_COUNTS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
"""Numbers of CPUs for which a kit has plans. A machine takes the largest that it has CPUs for."""


class PlanOfKit(Value):
    """The rows of one program for machines with one number of CPUs."""

    file: str
    sha256: str
    rows: Tuple[Sealed[str, Any]]
    """The fields of each row that runs."""
    shrunk: Texts
    cpus: int
    """CPUs that the kernels see; 0: all CPUs of the machine."""
    needed_bytes: int


class LaunchOfKit(Value):
    """One launch: its random choices, and the program that is linked for it alone."""

    number: int
    seed: int
    data_offset: int
    link_order: Texts
    sha256: str
    """SHA-256 of the program."""

    def launch(self) -> Launch:
        """Return the launch in the form of a run on this machine."""
        return Launch(self.number, self.seed, self.data_offset, self.link_order)


class PartOfKit(Value):
    """One program of an experiment."""

    name: str
    """The name of the program's files."""
    label: str
    config_sha256: str
    launches: Tuple[LaunchOfKit]
    plans: Sealed[str, PlanOfKit]
    """Plans by number of CPUs. Where a number is missing, no row of this program is run."""


class VisitOfKit(Value):
    """A run of a program that times whole calls of the target machine's own kernel."""

    name: str
    """The name of its files."""
    program: str
    words: Texts
    sha256: str
    """SHA-256 of the program."""


class ExperimentOfKit(Value):
    """One experiment: what a run of it records before its first launch."""

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
    """The contents of kit.json: a kit without its programs."""

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
    """Read kit.json; raises BadUsage if the text is no kit.json or has another schema number."""
    try:
        return Kit.model_validate_json(text)
    except ValidationError as cause:
        raise faults(f"{where}: {KIT}", cause) from cause
    except ValueError as cause:
        raise BadUsage(f"{where}: {KIT}: {cause}") from cause
