# SPDX-License-Identifier: GPL-2.0-only
"""Boots of kernels that do the jobs of mprotect() or mremap(), and what comes of them."""

from collections.abc import Callable, Mapping

import pytest

from experiments.mprotect.boot import JobPlan, job_initramfs, run_job_boot
from experiments.mprotect.job_guests import JobGuests
from experiments.mprotect.jobs import JobSample
from fixtures.guests import Builder
from ream.experiment import named
from ream.paths import EXPERIMENTS
from ream.session.guests import GuestSetting
from ream.session.request import GuestOptions
from ream.stage.initramfs import build_init
from ream.stage.qemu import GuestMachine
from ream.stage.vm import BootableKernel, Start

Boots = Callable[..., list[JobSample]]

SETTING = GuestSetting("tcg", "asked for", True, GuestOptions())


def guests(kind: type[JobGuests], *rows: str) -> JobGuests:
    """The guests of these rows, or of all."""
    its = named(kind.experiment).at("vm")
    asked = its.only(rows) if rows else its
    return kind(asked.rows, GuestOptions(), 7, lambda _options: SETTING)


def boots_of(image: Builder, tmp_path_factory: pytest.TempPathFactory) -> Boots:
    """A function that boots a kernel of some series, and gives the samples of guests."""
    init = build_init(tmp_path_factory.mktemp("init"), *EXPERIMENTS.glob("*"))

    def run(its: JobGuests, *series: str) -> list[JobSample]:
        work = tmp_path_factory.mktemp("boot")
        built = image(*series)
        archive = job_initramfs(its.its.program, its.experiment, built, init=init, work=work)
        kernel = BootableKernel(built.bootable, archive)
        plan: JobPlan = its.plan
        machine = GuestMachine("tcg", icount=True, memory_bytes=plan.least_bytes)
        return list(run_job_boot(Start(machine, kernel, work / "console.log"), plan))

    return run


def best(samples: list[JobSample]) -> Mapping[tuple[str, str], float]:
    """The fewest instructions for each PTE, by job and operation."""
    found: dict[tuple[str, str], float] = {}
    for one in samples:
        where, each = (one.run, one.op), one.time_ns / one.nr_ptes
        found[where] = min(each, found.get(where, each))
    return found


def job(its: JobGuests, row: str) -> str:
    return its.its.job_of(named(its.experiment).row(row), 0).name
