# SPDX-License-Identifier: GPL-2.0-only
"""What a run is asked to do, and what a stage brings back from it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ream.experiment import Experiment, Row
from ream.measure.sample import Sample
from ream.record.machine import Conditions
from ream.values import Scalar
from ream.variants import Variant


@dataclass(frozen=True)
class Request:
    """What a run is asked to do."""

    experiment: Experiment
    variants: tuple[Variant, ...]
    tree: Path | None
    threads: int | None
    seed: int
    runs: Path
    cache: Path
    command: str
    """The line that repeats the run."""


@dataclass(frozen=True)
class Measured:
    """What a stage brings back: its samples are in the record already."""

    rows: tuple[Row, ...]
    """As they ran, perhaps with a smaller device than asked for."""
    samples: tuple[Sample, ...]
    conditions: Conditions
    launches: int
    config_sha256: str
    options: Mapping[str, Scalar | None]
    """What else it was asked with."""
    warnings: tuple[str, ...] = ()
    symbols: Mapping[str, Any] = field(default_factory=dict)
    stubs: Mapping[str, Any] = field(default_factory=dict)
