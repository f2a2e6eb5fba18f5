# SPDX-License-Identifier: GPL-2.0-only
"""One boot of the migrate experiment: a guest with two nodes, and a program that moves memory.

The program verifies each move: every folio on its node, as large as before, every byte as it was
written just before, and the kernel's counters as they must be.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from experiments.fork.boot import judge
from ream.count.guest import Counted
from ream.counted import counted
from ream.errors import ReamError, VerificationFailed
from ream.kernel.image import Image
from ream.stage.initramfs import guest_initramfs, namespace_programs
from ream.stage.qemu import GuestNode
from ream.stage.vm import Start, said_as
from ream.stage.workload import build_workload
from ream.values import Value

from .engine import EngineModel
from .programs import MIGRATE_SOAK, MOVE_FOLIOS

IN_GUEST = "/workloads"
"""Folder in which guest.c finds its programs."""

Provider = Literal["none", "dcbm", "mtcopy"]
"""What copies: none: the kernel, folio by folio; dcbm: DMA channels; mtcopy: threads."""

MODULES = ("swdma", "dcbm", "mtcopy")
"""What guest.c loads when it is needed; kernels without the series have only the first."""

ENGINE = "swdma"
"""Module of kernel/modules that is built for every kernel."""

SYSTEM_BYTES = 1 << 30
"""Memory of the first node besides the buffer."""

SPARE_BYTES = 256 << 20
"""Memory of the second node besides two buffers, that huge pages are found in it."""

SILENCE_S = 600.0
"""A buffer of 1 GiB is filled, moved and looked at byte by byte without a word, emulated."""

DEADLINE_S = 3600.0


@dataclass(frozen=True)
class Step:
    """Folios of one size, moved with one way to copy."""

    folio_kib: int
    """4 is not a folio's size but a page's."""
    provider: Provider = "none"
    parts: int = 0
    """Channels or threads."""
    model: EngineModel | None = None
    """What a channel takes at least."""

    def __str__(self) -> str:
        words = f"{self.folio_kib}/{self.provider}/{self.parts}"
        model = self.model
        return words if model is None else f"{words}/{model.setup_ns}/{model.mb_per_s}"


@dataclass(frozen=True)
class MigratePlan:
    """What one boot measures: every step in turn, each on a buffer of its own."""

    steps: tuple[Step, ...]
    buffer_bytes: int
    rounds: int
    """Rounds after round 0. That one moves a fresh buffer first and is no sample of a row."""
    path: str = "move_pages"
    """Path of migration that workloads/move_folios.c takes."""
    source: int = 0
    target: int = 1
    seed: int = 1
    """Seed of the random contents of the buffer."""
    words: tuple[str, ...] = ()
    """Settings of the guest, for paths that need some: guest.c."""

    @property
    def node_bytes(self) -> tuple[int, int]:
        """Memory that each of the two nodes needs: there is room to find large folios in."""
        return SYSTEM_BYTES + 2 * self.buffer_bytes, SPARE_BYTES + 2 * self.buffer_bytes

    @property
    def least_bytes(self) -> int:
        """Memory that a guest needs."""
        return sum(self.node_bytes)

    @property
    def name(self) -> str:
        return "migrate"

    def init_words(self) -> tuple[str, ...]:
        """What PID 1 is told; guest.c reads it."""
        words = {
            "experiment": "migrate",
            "steps": ",".join(map(str, self.steps)),
            "size": str(self.buffer_bytes),
            "rounds": str(self.rounds),
            "path": self.path,
            "from": str(self.source),
            "to": str(self.target),
            "seed": str(self.seed),
        }
        return (*(f"{name}={value}" for name, value in words.items()), *self.words)


class MigrateSample(Value):
    """One move of the whole buffer, verified, as the workload says it."""

    op: str
    folio_kib: int
    round: int
    source: int
    target: int
    time_ns: int
    """Time by the guest's clock. If the clock counts instructions: those of the whole guest."""
    nr_bytes: int
    nr_folios: int
    nr_arrived: int
    counters: Mapping[str, int]
    """Growth of each counter; workloads/counters.c names them."""
    verified: bool
    window: int = 0
    """The name by which a plugin that counts knows the move."""
    counted: Counted | None = None
    """What the kernel did meanwhile; None if it was not counted."""
    cpu_ns: int | None = None
    """CPU time of the caller, and where nobody else works of all processes; None: not known."""


def two_nodes(cpus: int, plan: MigratePlan) -> tuple[GuestNode, ...]:
    """Nodes 0 and 1, both with CPUs if there are as many."""
    first, second = plan.node_bytes
    half = (cpus + 1) // 2
    others = _cpus(half, cpus - 1) if cpus > half else ""
    return GuestNode(first, _cpus(0, half - 1)), GuestNode(second, others)


def _cpus(first: int, last: int) -> str:
    return f"{first}-{last}"


def migrate_initramfs(
    image: Image, *, init: Path, work: Path, soak: bool = False, namespaces: bool = False
) -> Path:
    """What a guest of this experiment boots into: PID 1, the workload, what modules there are.

    soak: with the other program, too. namespaces: with what makes memory of an emulated pmem.
    Raises what compiling and packing raise.
    """
    programs = {
        f"{IN_GUEST}/{name}": build_workload(name, work, image.arch)
        for name in (MOVE_FOLIOS, *((MIGRATE_SOAK,) if soak else ()))
    }
    modules: tuple[str, ...] = MODULES
    if namespaces:
        modules, programs = (*modules, "nd_pmem"), programs | namespace_programs()
    return guest_initramfs(
        image, "migrate", init=init, work=work, modules=modules, programs=programs
    )


def run_migrate_boot(start: Start, plan: MigratePlan) -> Iterator[tuple[int, MigrateSample]]:
    """Boot once; yield each step's number with each of its samples, as they come.

    Nothing of QEMU outlives this iterator.
    Raises VerificationFailed if memory is not as it must be after a move, CannotRunHere if the
    guest cannot have such folios or go that path, ReamError if it fails otherwise, says what it
    must not, or goes silent.
    """
    seen: Counter[int] = Counter()
    number = -1
    log = start.log
    for message in start.messages(plan.init_words(), deadline_s=DEADLINE_S, silence_s=SILENCE_S):
        if "step" in message:
            number += 1
        elif "workload" in message:
            judge(message["workload"]["exit"], _where(message["workload"]["step"], log))
        elif "op" in (said := message.get("migrate", {})):
            sample = _sample(said, log)
            its = start.counted(sample.window)
            sample = sample.model_copy(update={"counted": its})
            seen[number] += 1
            yield number, sample
    if seen != Counter(dict.fromkeys(range(len(plan.steps)), plan.rounds + 1)):
        counts = ", ".join(
            f"{step} {counted(seen[nr], 'time')}" for nr, step in enumerate(plan.steps)
        )
        raise ReamError(f"{log.name}: the guest gave other samples than asked for: {counts}")


def run_soak_boot(start: Start, words: Sequence[str]) -> Mapping[str, Any]:
    """Boot once and soak; return the workload's last words, its totals.

    words: for PID 1, besides the experiment's name: size=, seconds=, seed=, phases=, step=.
    Raises as above.
    """
    end: Mapping[str, Any] = {}
    words = ("experiment=migrate-soak", *words)
    log = start.log
    for message in start.messages(words, deadline_s=DEADLINE_S, silence_s=SILENCE_S):
        if "workload" in message:
            judge(message["workload"]["exit"], _where("soak", log))
        elif "end" in (said := message.get("migrate", {})):
            end = said["end"]
    if not end:
        raise ReamError(f"{log.name}: the soak gave no totals")
    return end


def _sample(said: Any, log: Path) -> MigrateSample:
    sample = said_as(MigrateSample, said, "migrate")
    if not sample.verified:
        raise VerificationFailed(f"{_where(said['folio_kib'], log)}: {sample.op} was not verified")
    return sample


def _where(step: object, log: Path) -> str:
    return f"moving folios, {step}, console {log}"
