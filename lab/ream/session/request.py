# SPDX-License-Identifier: GPL-2.0-only
"""What a run is asked to do, and what a stage brings back from it."""

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
    """How the user wants the guests of the vm stage; None: as we choose."""

    accel: Literal["auto", "kvm", "tcg"] = "auto"
    icount: bool | None = None
    full: bool = False
    keep_rounds: bool = False
    keep_launches: bool = False
    """Whether the user gave these numbers: then they hold where instructions are counted, too."""
    cpus: int | None = None
    memory_bytes: int | None = None
    nodes: tuple[GuestNode, ...] = ()
    distances: tuple[tuple[int, int, int], ...] = ()
    append: tuple[str, ...] = ()
    """More words for the kernel."""
    qemu_options: tuple[str, ...] = ()
    arch: str = X86_64.name
    """Of their kernels."""
    cpu: str | None = None
    """QEMU's words for the CPU to emulate; None: as we choose."""


@dataclass(frozen=True)
class CountOptions:
    """How what samples execute is counted."""

    full: bool = False
    """Whether rows keep the size that their file gives them."""
    annotate: tuple[str, ...] = ()
    """Functions whose instructions are listed, each with how often it was executed."""


@dataclass(frozen=True)
class Request:
    """What a run is asked to do."""

    experiment: Experiment
    stage: Stage
    variants: tuple[Variant, ...]
    tree: Wanted
    threads: int | None
    seed: int
    runs: Path
    cache: Path
    command: str
    """The line that repeats the run."""
    guest: GuestOptions = GuestOptions()
    resume: Path | None = None
    """The unfinished record to go on with; the rest of the request is then its plan's."""
    stable: Stable | None = None
    """How narrow intervals have to be before it ends; None: however they are."""
    cell: str | None = None
    """The id of the cell of a plan for several machines, if it is one."""
    control: float | None = None
    """Share of its time by which the variant `control` is slowed; None: there is none."""
    verify_minutes: float = 0.0
    """How long other mixtures are tried after those that every run tries."""
    asked: bool = False
    """Whether somebody chose the variants: then all of them have to apply."""
    trees: Mapping[str, Tree] = field(default_factory=dict)
    """Kernel sources, once fetched, of variants that do not use the run's source or options."""
    setup: Setup = OURS
    """How the kernels of all variants are built that have no options of their own."""
    count: CountOptions | None = None
    """Whether the native stage counts what is executed, under an emulator, instead of timing it."""
    cpu: str | None = None
    """The name of the CPU that is emulated; None: the one that all have who ask for no other."""
    measure_anyway: bool = False
    """Whether a given series is measured although no row executes what it changes."""
    confined: bool = True
    """Whether runners of the native stage are kept from all that they do not need."""
    beside_live: bool = False
    """Whether the running kernel performs each row's program in turn with the hosted ones."""
    choose: Callable[[Experiment], tuple[Variant, ...]] | None = None
    """What the variants are of the experiment on another base; None: these are settled."""


@dataclass(frozen=True, kw_only=True)
class Measured(Results):
    """What a stage brings back: its samples are in the record already."""

    conditions: Conditions
    launches: int
    config_sha256: str
    options: Mapping[str, Scalar | None]
    """What else it was asked with."""
    warnings: tuple[str, ...] = ()
    guest: GuestFacts | None = None
    """What ran it, in the vm stage."""
    count: CountFacts | None = None
    """What counted it, where nothing was timed."""
    symbols: Mapping[str, Any] = field(default_factory=dict)
    stubs: Mapping[str, Any] = field(default_factory=dict)
    cpu_clock_step_ns: int | None = None
    """The largest step of the CPU clock of any launch, in ns; None where none was measured."""
