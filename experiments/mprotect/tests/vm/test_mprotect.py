# SPDX-License-Identifier: GPL-2.0-only
"""mprotect() of whole kernels: the same memory, by another way."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from experiments.mprotect.guests import MprotectGuests
from experiments.mprotect.jobs import JobSample
from experiments.mprotect.tests.job_boots import Boots, best, boots_of, guests, job
from fixtures.guests import Builder
from ream.errors import VerificationFailed

PATCHES = Path(__file__).parent / "patches"


@pytest.fixture(scope="module")
def boots(image: Builder, tmp_path_factory: pytest.TempPathFactory) -> Boots:
    return boots_of(image, tmp_path_factory)


@pytest.fixture(scope="module")
def changes(boots: Boots) -> Mapping[str, list[JobSample]]:
    """All rows of mprotect, on kernels that take PTEs one by one, in batches, and by flags."""
    kernels = {"before": (), "published": ("mprotect-batch",), "ream": ("pte-hw-done", "mprotect")}
    return {name: boots(guests(MprotectGuests), *series) for name, series in kernels.items()}


def test_pages_are_writable_again_without_a_fault(changes: Mapping[str, list[JobSample]]) -> None:
    for samples in changes.values():
        back = [one for one in samples if one.op.endswith("-to-rw")]
        assert {one.write_faults for one in back} == {0}
        assert all(one.soft_dirtied is not None for one in back)


def test_batches_cost_single_pages_and_save_on_large_folios(
    changes: Mapping[str, list[JobSample]],
) -> None:
    its = guests(MprotectGuests)
    before, published = best(changes["before"]), best(changes["published"])
    for memory in ("", "-shared"):
        single = (job(its, f"vm-rw-to-r-4k{memory}"), "rw-to-r")
        large = (job(its, f"vm-rw-to-r-64k{memory}"), "rw-to-r")
        assert published[single] > 1.3 * before[single]
        assert published[large] < before[large]


def test_memory_that_nobody_wrote_is_soft_dirty_after_batches_alone(
    changes: Mapping[str, list[JobSample]],
) -> None:
    large = job(guests(MprotectGuests), "vm-r-to-rw-64k")
    dirt = {
        name: {one.soft_dirtied for one in samples if one.run == large and one.op == "r-to-rw"}
        for name, samples in changes.items()
    }
    assert dirt == {"before": {0}, "published": {1024}, "ream": {0}}


def test_a_kernel_that_forgets_what_was_written_is_noticed(boots: Boots) -> None:
    wrong = str(PATCHES / "mprotect-clean-when-no-access.patch")
    with pytest.raises(VerificationFailed, match="none, console .*: memory is not as it must be"):
        boots(guests(MprotectGuests, "vm-rw-to-none-4k-4000KiB"), wrong)
