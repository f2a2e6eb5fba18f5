# SPDX-License-Identifier: GPL-2.0-only
"""One boot in which a program of the live stage does one job after another.

mremap uses this as well. The program verifies each mapping before its clock starts and after it
has stopped, and says so.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from experiments.fork.boot import judge
from ream.counted import counted
from ream.errors import ReamError, VerificationFailed
from ream.kernel.image import Image
from ream.stage.initramfs import guest_initramfs
from ream.stage.vm import Start, said_as
from ream.stage.workload import Workload, build_workload

from .jobs import Job, JobSample

SYSTEM_BYTES = 1 << 30
"""Memory of a guest besides the mapping and what describes it."""

SILENCE_S = 600.0
"""A mapping is filled, changed and used page by page without a word, emulated."""

DEADLINE_S = 3600.0


@dataclass(frozen=True)
class JobPlan:
    """What one boot measures: every job, each in so many rounds."""

    experiment: str
    jobs: tuple[Job, ...]
    rounds: int
    seed: int = 0
    """For the contents of memory, and the order of scattered folios."""

    @property
    def mapping_bytes(self) -> int:
        """The size of the largest mapping."""
        return max(job.nr_bytes for job in self.jobs)

    @property
    def least_bytes(self) -> int:
        """Memory that a guest needs for it: with room to find large folios in."""
        return SYSTEM_BYTES + self.mapping_bytes * 3 // 2

    @property
    def name(self) -> str:
        """Name for use in a file name."""
        return self.experiment

    def init_words(self) -> tuple[str, ...]:
        """What PID 1 is told; guest.c reads it."""
        words = {
            "experiment": self.experiment,
            "runs": ",".join(job.name for job in self.jobs),
            "rounds": str(self.rounds),
            "seed": str(self.seed),
        }
        return tuple(f"{name}={value}" for name, value in words.items())


def job_initramfs(
    program: Workload, experiment: str, image: Image, *, init: Path, work: Path
) -> Path:
    """What a guest of such an experiment boots into: PID 1 and the program, no modules.

    Raises what compiling and packing raise.
    """
    programs = {f"/workloads/{program.name}": build_workload(program, work, image.arch)}
    return guest_initramfs(image, experiment, init=init, work=work, programs=programs)


def run_job_boot(start: Start, plan: JobPlan) -> Iterator[JobSample]:
    """Boot once; yield every sample as it comes. Nothing of QEMU outlives this iterator.

    Raises VerificationFailed if a mapping is not as it must be, CannotRunHere if the guest cannot
    get folios of a size, ReamError if it fails otherwise, says what it must not, or goes silent.
    """
    seen: Counter[tuple[str, str]] = Counter()
    log = start.log
    for message in start.messages(plan.init_words(), deadline_s=DEADLINE_S, silence_s=SILENCE_S):
        if "workload" in message:
            said = message["workload"]
            judge(said["exit"], f"{plan.experiment}, {said['run']}, console {log}")
        elif "op" in (said := message.get(plan.experiment, {})):
            sample = _sample(said, plan.experiment, log)
            its = start.counted(sample.window)
            seen[sample.run, sample.op] += 1
            yield sample.model_copy(update={"counted": its})
    if seen != Counter({(job.name, op): plan.rounds for job in plan.jobs for op in job.ops}):
        counts = ", ".join(f"{op} of {run} {counted(nr, 'time')}" for (run, op), nr in seen.items())
        raise ReamError(f"{log.name}: the guest gave other samples than asked for: {counts}")


def _sample(said: Any, experiment: str, log: Path) -> JobSample:
    sample = said_as(JobSample, said, experiment)
    if not sample.verified:
        raise VerificationFailed(
            f"{experiment}, {sample.run}, console {log}: {sample.op} was not verified"
        )
    return sample
