# SPDX-License-Identifier: GPL-2.0-only
"""mprotect() and mremap() of whole kernels: the same memory, by another way."""

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from experiments.mprotect.boot import JobPlan, job_initramfs, run_job_boot
from experiments.mprotect.guests import MprotectGuests
from experiments.mprotect.job_guests import JobGuests
from experiments.mprotect.jobs import JobSample
from experiments.mremap.guests import MremapGuests
from ream.errors import VerificationFailed
from ream.experiment import named
from ream.kernel.image import Image
from ream.paths import EXPERIMENTS
from ream.session.guests import GuestSetting
from ream.session.request import GuestOptions
from ream.stage.initramfs import build_init
from ream.stage.qemu import GuestMachine
from ream.stage.vm import BootableKernel, Start

PATCHES = Path(__file__).parent / "patches"

Builder = Callable[..., Image]
Boots = Callable[..., list[JobSample]]

SETTING = GuestSetting("tcg", "asked for", True, GuestOptions())


def guests(experiment: str, *rows: str) -> JobGuests:
    """The guests of these rows, or of all."""
    its = named(experiment).at("vm")
    asked = its.only(rows) if rows else its
    kind = {"mprotect": MprotectGuests, "mremap": MremapGuests}[experiment]
    return kind(asked.rows, GuestOptions(), 7, lambda _options: SETTING)


@pytest.fixture(scope="module")
def boots(image: Builder, tmp_path_factory: pytest.TempPathFactory) -> Boots:
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


@pytest.fixture(scope="module")
def changes(boots: Boots) -> Mapping[str, list[JobSample]]:
    """All rows of mprotect, on kernels that take PTEs one by one, in batches, and by flags."""
    kernels = {"before": (), "published": ("mprotect-batch",), "ream": ("pte-hw-done", "mprotect")}
    return {name: boots(guests("mprotect"), *series) for name, series in kernels.items()}


def test_pages_are_writable_again_without_a_fault(changes: Mapping[str, list[JobSample]]) -> None:
    for samples in changes.values():
        back = [one for one in samples if one.op.endswith("-to-rw")]
        assert {one.write_faults for one in back} == {0}
        assert all(one.soft_dirtied is not None for one in back)


def test_batches_cost_single_pages_and_save_on_large_folios(
    changes: Mapping[str, list[JobSample]],
) -> None:
    its = guests("mprotect")
    before, published = best(changes["before"]), best(changes["published"])
    for memory in ("", "-shared"):
        single = (job(its, f"vm-rw-to-r-4k{memory}"), "rw-to-r")
        large = (job(its, f"vm-rw-to-r-64k{memory}"), "rw-to-r")
        assert published[single] > 1.3 * before[single]
        assert published[large] < before[large]


def test_memory_that_nobody_wrote_is_soft_dirty_after_batches_alone(
    changes: Mapping[str, list[JobSample]],
) -> None:
    large = job(guests("mprotect"), "vm-r-to-rw-64k")
    dirt = {
        name: {one.soft_dirtied for one in samples if one.run == large and one.op == "r-to-rw"}
        for name, samples in changes.items()
    }
    assert dirt == {"before": {0}, "published": {1024}, "ream": {0}}


def test_a_kernel_that_forgets_what_was_written_is_noticed(boots: Boots) -> None:
    wrong = str(PATCHES / "mprotect-clean-when-no-access.patch")
    with pytest.raises(VerificationFailed, match="none, console .*: memory is not as it must be"):
        boots(guests("mprotect", "vm-rw-to-none-4k-4000KiB"), wrong)


def test_batches_cost_where_memory_moves(boots: Boots) -> None:
    its = guests("mremap")
    before = boots(its)
    published = boots(its, "mprotect-batch", "mremap-batch")
    assert {one.write_faults for one in (*before, *published)} == {0}
    for row in ("vm-across-4k", "vm-across-64k"):
        where = (job(its, row), "move")
        assert best(published)[where] > 1.3 * best(before)[where]


def test_a_kernel_that_does_not_note_what_moves_is_noticed(boots: Boots) -> None:
    wrong = str(EXPERIMENTS / "mremap/wrong/02-soft-dirty-lost.patch")
    with pytest.raises(VerificationFailed, match="memory is not as it must be"):
        boots(guests("mremap", "vm-across-64k"), wrong)
