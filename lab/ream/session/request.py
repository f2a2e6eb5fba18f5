# SPDX-License-Identifier: GPL-2.0-only
"""The request for a run, and what a stage returns from it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from ream.experiment import Experiment, Stage
from ream.kernel.arch import X86_64
from ream.kernel.setup import OURS, Setup
from ream.kernel.source import Tree, Wanted
from ream.measure.stable import Stable
from ream.record.machine import Conditions
from ream.record.receipt import CountFacts, GuestFacts
from ream.report.ran import Results
from ream.stage.qemu import GuestNode
from ream.values import Scalar
from ream.variants import Variant


@dataclass(frozen=True)
class GuestOptions:
    """The user's settings for guests of the vm stage; None: ream chooses."""

    accel: Literal["auto", "kvm", "tcg"] = "auto"
    icount: bool | None = None
    full: bool = False
    keep_rounds: bool = False
    keep_launches: bool = False
    """Whether the user set these numbers. Then they also apply if instructions are counted."""
    cpus: int | None = None
    memory_bytes: int | None = None
    nodes: tuple[GuestNode, ...] = ()
    distances: tuple[tuple[int, int, int], ...] = ()
    append: tuple[str, ...] = ()
    """More kernel command line arguments."""
    qemu_options: tuple[str, ...] = ()
    arch: str = X86_64.name
    """Architecture of the guests' kernels."""
    cpu: str | None = None
    """QEMU's -cpu argument; None: ream chooses."""


@dataclass(frozen=True)
class CountOptions:
    """Options of a run that counts what samples execute."""

    full: bool = False
    """Whether rows keep the size in their file."""
    annotate: tuple[str, ...] = ()
    """Functions whose instructions are listed, each with its number of executions."""


@dataclass(frozen=True)
class Request:
    """The request for a run."""

    experiment: Experiment
    stage: Stage
    variants: tuple[Variant, ...]
    tree: Wanted
    threads: int | None
    seed: int
    runs: Path
    cache: Path
    command: str
    """The command line that repeats the run."""
    guest: GuestOptions = GuestOptions()
    resume: Path | None = None
    """The unfinished record to resume; the rest of the request is then from its plan."""
    stable: Stable | None = None
    """Width of intervals at which the run ends; None: it ends after the planned launches."""
    cell: str | None = None
    """The id of the cell, if the run is a cell of a plan for several machines."""
    control: float | None = None
    """Share of its time by which the variant `control` is slowed; None: no such variant."""
    verify_minutes: float = 0.0
    """Minutes for random mixtures beyond those that every run verifies."""
    asked: bool = False
    """Whether the user chose the variants: then all of them have to apply."""
    trees: Mapping[str, Tree] = field(default_factory=dict)
    """Fetched kernel sources of variants that do not use the run's source or options."""
    setup: Setup = OURS
    """How kernels are built of variants without options of their own."""
    count: CountOptions | None = None
    """How the native stage counts what is executed, under an emulator; None: it is timed."""
    cpu: str | None = None
    """The name of the CPU that is emulated; None: the architecture's default."""
    measure_anyway: bool = False
    """Whether a given series is measured although no row executes what it changes."""
    confined: bool = True
    """Whether runners of the native stage are confined to what they need."""
    beside_live: bool = False
    """Whether the running kernel also executes each row's program, in turn with hosted kernels."""
    choose: Callable[[Experiment], tuple[Variant, ...]] | None = None
    """Returns the variants for the experiment on another base; None: `variants` is final."""


@dataclass(frozen=True, kw_only=True)
class Measured(Results):
    """What a stage returns. Its samples are in the record already."""

    conditions: Conditions
    launches: int
    config_sha256: str
    options: Mapping[str, Scalar | None]
    """Further options of the run."""
    warnings: tuple[str, ...] = ()
    guest: GuestFacts | None = None
    """The guests of the vm stage; None in other stages."""
    count: CountFacts | None = None
    """How it was counted; None if it was timed."""
    symbols: Mapping[str, Any] = field(default_factory=dict)
    stubs: Mapping[str, Any] = field(default_factory=dict)
    cpu_clock_step_ns: int | None = None
    """The largest step of the CPU clock in any launch, in ns; None if none was measured."""
