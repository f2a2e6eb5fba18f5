# SPDX-License-Identifier: GPL-2.0-only
"""What one sample of compaction says besides its time: pages, CPU, and what else ran."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from ream.measure.sample import Sample
from ream.values import Value

_WORK = ("asked", "allocated", "ballast", "longest_ns", "page_copy_ns")
_OF_CPU = ("user_ns", "system_ns", "idle_ns", "hog_iterations")


class CpuTimes(Value):
    """What all CPUs of a machine did in some time, as /proc/stat has it, in ns."""

    user_ns: int
    """With nice."""
    system_ns: int
    """With interrupts."""
    idle_ns: int
    """With waiting for input and output."""
    steal_ns: int
    """That the host gave to others."""

    @property
    def busy_ns(self) -> int:
        """CPU time that was used."""
        return self.user_ns + self.system_ns


@dataclass(frozen=True)
class Compacted:
    """One loop of allocations of huge pages. Unknown is None, never 0.

    Times are in the unit of the row; of a guest whose clock counts instructions, these.
    """

    row: str
    launch: int
    subject: str
    """The variant's name."""
    asked: int
    """Huge pages."""
    allocated: int
    time_ns: int
    longest_ns: int | None
    """Of one allocation."""
    page_copy_ns: int | None
    """Of one page, as migration copies it."""
    user_ns: int | None
    """Of the CPU meanwhile; user_ns is the hog's, where there is one."""
    system_ns: int | None
    idle_ns: int | None
    hog_iterations: int | None
    counters: Mapping[str, int]
    """By how much each has grown; what this kernel has no counter for is missing."""
    verified: bool
    round: int = 0
    ballast: int | None = None
    """Huge pages that were free, and were taken away before."""
    machine: CpuTimes | None = None
    """What all CPUs did meanwhile."""

    @classmethod
    def of_line(cls, sample: Sample, extra: Mapping[str, Any]) -> Self | None:
        """What a line of samples.jsonl has of it, besides its sample; None if it has nothing."""
        left = dict(extra)
        own = {name: left.pop(name, None) for name in (*_WORK, *_OF_CPU)}
        times = {name: left.pop(f"machine_{name}", None) for name in CpuTimes.model_fields}
        if type(own["asked"]) is not int or type(own["allocated"]) is not int:
            return None
        return cls(
            row=sample.row,
            launch=sample.launch,
            round=sample.round,
            subject=sample.subject,
            time_ns=sample.time_ns,
            verified=sample.verified,
            machine=None if None in times.values() else CpuTimes.model_validate(times),
            counters={name: value for name, value in left.items() if type(value) is int},
            **own,
        )

    def extra(self) -> dict[str, Any]:
        """The keys that a line of samples.jsonl has of it."""
        own = {name: getattr(self, name) for name in (*_WORK, *_OF_CPU)}
        times = self.machine.model_dump() if self.machine else {}
        return own | {f"machine_{name}": ns for name, ns in times.items()} | dict(self.counters)
