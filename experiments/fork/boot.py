# SPDX-License-Identifier: GPL-2.0-only
"""One boot of the fork experiment: the workload of the live stage, in a guest of its own.

The workload verifies each mapping before its clock starts and after it has stopped, and says so;
with each fork() it gives a digest of what the two processes then share. Guests that run the
same plan must give the same digests, whatever their kernel does to get there.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ream.count.guest import Counted
from ream.counted import counted
from ream.errors import CannotRunHere, ReamError, VerificationFailed
from ream.kernel.image import Image
from ream.stage.initramfs import guest_initramfs
from ream.stage.vm import Start, said_as
from ream.stage.workload import EXIT_CANNOT_RUN, EXIT_NOT_VERIFIED, build_workload
from ream.values import Value

from .programs import FORK_FOLIOS

IN_GUEST = "/workloads/fork_folios"
"""Path at which guest.c finds the workload."""

ALL_OPS = ("fork", "exit", "refork", "munmap-shared", "munmap", "dontneed")
"""Operations that workloads/fork_folios.c times by default."""

SYSTEM_BYTES = 1 << 30
"""Memory of a guest besides the mapping and what describes it."""

SILENCE_S = 600.0
"""A mapping of 1 GiB is filled, forked and looked at page by page without a word, emulated."""

DEADLINE_S = 3600.0


@dataclass(frozen=True)
class ForkPlan:
    """What one boot measures: every operation, on each size of folio in turn."""

    folio_kib: tuple[int, ...]
    """4 is not a folio's size but a page's."""
    mapping_bytes: int
    rounds: int
    ops: tuple[str, ...] = ALL_OPS
    seed: int = 0
    """Seed for the order of mappings within a round."""

    @property
    def least_bytes(self) -> int:
        """Memory that a guest needs for it: with room to find large folios in."""
        return SYSTEM_BYTES + self.mapping_bytes * 3 // 2

    @property
    def name(self) -> str:
        """Name for use in a file name: fork-16-64."""
        return "-".join(("fork", *map(str, self.folio_kib)))

    def init_words(self) -> tuple[str, ...]:
        """What PID 1 is told; guest.c reads it."""
        words = {
            "experiment": "fork",
            "folios": ",".join(map(str, self.folio_kib)),
            "size": str(self.mapping_bytes),
            "rounds": str(self.rounds),
            "ops": ",".join(self.ops),
            "seed": str(self.seed),
        }
        return tuple(f"{name}={value}" for name, value in words.items())


class ForkSample(Value):
    """One operation on one mapping, verified before and after, as the workload says it."""

    folio_kib: int
    round: int
    op: str
    time_ns: int
    """Time by the guest's clock; instructions if the clock counts these."""
    nr_ptes: int
    verified: bool
    window: int = 0
    """The name by which a plugin that counts knows the operation."""
    counted: Counted | None = None
    """What the kernel did meanwhile; None if it was not counted."""
    digest: str | None = None
    """Digest over flags, mapcounts and contents of all pages by address; op "fork" only."""


def fork_initramfs(image: Image, *, init: Path, work: Path) -> Path:
    """What a guest of this experiment boots into: PID 1 and the workload, no modules.

    Raises what compiling and packing raise.
    """
    programs = {IN_GUEST: build_workload(FORK_FOLIOS, work, image.arch)}
    return guest_initramfs(image, "fork", init=init, work=work, programs=programs)


def run_fork_boot(start: Start, plan: ForkPlan) -> Iterator[ForkSample]:
    """Boot once; yield every sample as it comes. Nothing of QEMU outlives this iterator.

    Raises VerificationFailed if a mapping is not as it must be, CannotRunHere if the guest cannot
    get folios of a size, ReamError if it fails otherwise, says what it must not, or goes silent.
    """
    seen: Counter[tuple[int, str]] = Counter()
    log = start.log
    for message in start.messages(plan.init_words(), deadline_s=DEADLINE_S, silence_s=SILENCE_S):
        if "workload" in message:
            said = message["workload"]
            judge(said["exit"], _where(said, log))
        elif "op" in (said := message.get("fork", {})):
            sample = _sample(said, log)
            its = start.counted(sample.window)
            sample = sample.model_copy(update={"counted": its})
            seen[sample.folio_kib, sample.op] += 1
            yield sample
    if seen != Counter({(kib, op): plan.rounds for kib in plan.folio_kib for op in plan.ops}):
        counts = ", ".join(
            f"{op} of {kib} KiB {counted(nr, 'time')}" for (kib, op), nr in seen.items()
        )
        raise ReamError(f"{log.name}: the guest gave other samples than asked for: {counts}")


def _sample(said: Any, log: Path) -> ForkSample:
    sample = said_as(ForkSample, said, "fork")
    if not sample.verified:
        raise VerificationFailed(f"{_where(said, log)}: {sample.op} was not verified")
    return sample


def judge(code: int, where: str) -> None:
    """Raise what a workload's exit status stands for; where: of what it was, and its console."""
    if code == EXIT_NOT_VERIFIED:
        raise VerificationFailed(f"{where}: memory is not as it must be")
    if code == EXIT_CANNOT_RUN:
        raise CannotRunHere(f"{where}: this guest cannot")
    if code:
        raise ReamError(f"{where}: the workload ended with {code}")


def _where(said: Any, log: Path) -> str:
    return f"fork over folios of {said['folio_kib']} KiB, console {log}"
