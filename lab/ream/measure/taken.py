# SPDX-License-Identifier: GPL-2.0-only
"""What a stage hands on: a sample, and what its operation gave besides."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ream.measure.compaction import Compacted
from ream.measure.sample import BESIDE, NO_EXTRA, Sample


@dataclass(frozen=True)
class Taken:
    """A sample, and what else its operation gave."""

    sample: Sample
    extra: Mapping[str, Any] = field(default_factory=dict)
    """What only the stage knows of it; docs/format.md names it."""
    beside: Mapping[str, int] | None = None
    """By name, other quantities of the same operation, in the unit of the sample's time."""
    compacted: Compacted | None = None
    said: object = None
    """By what program it was told, as it said it; for remarks."""

    def in_record(self) -> Mapping[str, Any]:
        """What its line has besides the sample's own fields."""
        more = self.compacted.extra() if self.compacted else NO_EXTRA
        return {**({} if self.beside is None else {BESIDE: self.beside}), **self.extra, **more}

    def others(self) -> Iterator[tuple[str, Sample]]:
        """What it says besides, each by its name as a sample."""
        for name, time_ns in (self.beside or {}).items():
            yield name, replace(self.sample, time_ns=time_ns)
