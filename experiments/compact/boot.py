# SPDX-License-Identifier: GPL-2.0-only
"""One boot of the compact experiment: huge pages out of a node whose memory is in use, with holes.

Node 0 has all CPUs and all of the system. Node 1 has memory only: a program takes nearly all of
it, and gives every second page back. Then a module asks for huge pages there.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from experiments.fork.boot import judge
from experiments.migrate.engine import EngineModel
from ream.errors import ReamError, VerificationFailed
from ream.kernel.image import Image
from ream.stage.initramfs import guest_initramfs
from ream.stage.qemu import GuestNode
from ream.stage.vm import Start, said_as
from ream.stage.workload import build_workload
from ream.values import Value

from .columns import CpuTimes
from .programs import FRAGMENT, HOG, HOLD_FOLIOS

PROGRAMS = (FRAGMENT, HOG, HOLD_FOLIOS)

IN_GUEST = "/workloads"
"""Folder in which guest.c finds its programs."""

Mode = Literal["baseline", "dma", "busy-baseline", "busy-dma", "law"]

OWN_MODULES = ("swdma", "order9")
"""Modules of kernel/modules that are built for every kernel."""

MODULES = (*OWN_MODULES, "dcbm")
"""What guest.c loads when it is needed; kernels without the series have no dcbm."""

SYSTEM_BYTES = 2 << 30
"""Memory of the first node. QEMU's q35 has so much below 4 GiB, if it has more than that: the other
node then lies above, and is one zone, whatever its size."""

PAGE_BYTES = 4096

SILENCE_S = 900.0
"""A buffer of 10 GiB is filled, compacted and looked at word by word with three words, emulated."""

DEADLINE_S = 3600.0


@dataclass(frozen=True)
class CompactPlan:
    """What one boot measures."""

    mode: Mode
    nr_huge: int
    """Pages of order 9 that are requested; "law" requests none."""
    buffer_bytes: int
    """Size of the fragmented memory with its holes. 0: nearly all that is free in its node."""
    node_bytes: int
    """Memory of its node."""
    channels: int = 0
    model: EngineModel | None = None
    """What a channel takes at least."""
    seed: int = 1
    """Seed of the random contents of the buffer."""
    words: tuple[str, ...] = ()
    """Settings of the guest: guest.c."""

    @property
    def least_bytes(self) -> int:
        """Memory that a guest needs."""
        return SYSTEM_BYTES + self.node_bytes

    @property
    def name(self) -> str:
        return f"compact-{self.mode}"

    @property
    def busy(self) -> bool:
        """Whether the CPU that allocates has other work to do: with an engine, that is a second."""
        return self.mode.startswith("busy")

    def init_words(self) -> tuple[str, ...]:
        """What PID 1 is told; guest.c reads it."""
        words = {
            "experiment": "compact",
            "mode": self.mode,
            **({} if self.mode == "law" else {"huge": str(self.nr_huge)}),
            "size": str(self.buffer_bytes),
            "seed": str(self.seed),
            **({"channels": str(self.channels)} if self.channels else {}),
            **({"model": f"{self.model.setup_ns}/{self.model.mb_per_s}"} if self.model else {}),
        }
        return (*(f"{name}={value}" for name, value in words.items()), *self.words)


class CompactSample(Value):
    """What came of one boot, as PID 1 says it."""

    mode: Mode
    asked: int
    allocated: int
    ballast: int
    """Huge pages that were free, and were taken away before the clock started."""
    time_ns: int
    """Time by the guest's clock. If the clock counts instructions: those of the whole guest."""
    page_copy_ns: int
    """Time of the CPU to copy one page of 4 KiB, as the kernel copies it."""
    longest_ns: int
    """Time of the longest allocation."""
    resident_pages: int
    wrong_words: int
    user_ns: int
    system_ns: int
    idle_ns: int
    """user_ns, system_ns, idle_ns: times of the allocating CPU during the measurement."""
    machine: CpuTimes
    """Times of all CPUs during the measurement."""
    hog_iterations: int | None
    counters: Mapping[str, int]
    """Growth of each counter; workloads/counters.c names them."""
    verified: bool


def wrong_counters(sample: CompactSample, plan: CompactPlan) -> str | None:
    """What the counters of a boot say that cannot be, in words; None if there is nothing.

    Only pages of the buffer are moved in this guest, all of them small, and nobody else holds one.
    So each page that was moved (pgmigrate_success) was copied once: by the engine
    (dcbm_folios_migrated); by the CPU, as the engine had failed (dcbm_folios_failures); or by the
    CPU, as its batch was declined, or to help. What the engine has copied may still not be moved,
    and is then counted as that, too (pgmigrate_fail). An engine that is told to copy all there is,
    and does not fail, leaves nothing to the CPU. What dcbm says of it, swdma has counted as well.
    And each page that was moved has become free where it was (pgfree).
    Source: migrate_pages_batch() in mm/migrate.c, dcbm_end() of the series.
    """
    count = {**dict.fromkeys(_OF_MODULES, 0), **sample.counters}
    moved, failed = count["pgmigrate_success"], count["pgmigrate_fail"]
    copied = count["dcbm_folios_migrated"]
    tried = copied + count["dcbm_folios_failures"]
    stalls, ended = count["compact_stall"], count["compact_success"] + count["compact_fail"]
    if stalls != ended:
        return f"compact_stall is {stalls}, compact_success and compact_fail are {ended} together"
    if count.get("pgfree", moved) < moved:
        return f"{moved} pages were moved, and pgfree has grown by only {count['pgfree']}"
    if tried > moved + failed:
        return f"{tried} pages were given to the engine, {moved} were moved, {failed} were not"
    if tried < moved and _copies_all(plan, sample):
        return f"{moved} pages were moved, and only {tried} given to an engine that copies all"
    if count["swdma_bytes"] != copied * PAGE_BYTES and not count["swdma_faults"]:
        return f"dcbm has copied {copied} pages, and swdma {count['swdma_bytes']} bytes"
    return None


_OF_MODULES = ("dcbm_folios_migrated", "dcbm_folios_failures", "swdma_bytes", "swdma_faults")
"""Counters that are not there as long as a module is not."""


def _copies_all(plan: CompactPlan, sample: CompactSample) -> bool:
    # One that weighs costs has a counter for batches that it declines.
    weighs = "dcbm_batches_declined" in sample.counters and "adaptive=0" not in plan.words
    may_fail = any(word.startswith("fault=") for word in plan.words)
    return plan.channels > 0 and not weighs and not may_fail


def compact_nodes(cpus: int, plan: CompactPlan) -> tuple[GuestNode, ...]:
    """Node 0 with all CPUs, and node 1 with what is fragmented."""
    return GuestNode(SYSTEM_BYTES, f"0-{cpus - 1}"), GuestNode(plan.node_bytes)


def compact_initramfs(image: Image, *, init: Path, work: Path) -> Path:
    """What a guest of this experiment boots into: PID 1, the workloads, what modules there are.

    Raises what compiling and packing raise.
    """
    programs = {f"{IN_GUEST}/{name}": build_workload(name, work, image.arch) for name in PROGRAMS}
    return guest_initramfs(
        image, "compact", init=init, work=work, modules=MODULES, programs=programs
    )


def run_compact_boot(start: Start, plan: CompactPlan) -> CompactSample:
    """Boot once; return what came of it, verified.

    Nothing of QEMU outlives this call.
    Raises VerificationFailed if memory is not as it was written or a counter not as it must be,
    CannotRunHere if the guest has not the memory, ReamError if it fails otherwise, says what it
    must not, or goes silent.
    """
    sample: CompactSample | None = None
    log = start.log
    for message in start.messages(plan.init_words(), deadline_s=DEADLINE_S, silence_s=SILENCE_S):
        if "workload" in message:
            judge(message["workload"]["exit"], _where(message["workload"]["step"], log))
        elif "compact" in message:
            sample = _sample(message["compact"], plan, log)
    if sample is None:
        raise ReamError(f"{log.name}: the guest gave no sample")
    return sample


def _sample(said: Any, plan: CompactPlan, log: Path) -> CompactSample:
    sample = said_as(CompactSample, said, "compact")
    if sample.wrong_words or not sample.verified:
        raise VerificationFailed(
            f"{_where(plan.mode, log)}: {sample.wrong_words} words are not as they were written"
        )
    if wrong := wrong_counters(sample, plan):
        raise VerificationFailed(f"{_where(plan.mode, log)}: {wrong}")
    return sample


def _where(step: object, log: Path) -> str:
    return f"compacting, {step}, console {log}"
