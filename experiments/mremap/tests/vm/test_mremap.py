# SPDX-License-Identifier: GPL-2.0-only
"""mremap() of whole kernels: the same memory, by another way."""

import pytest

from experiments.mprotect.tests.job_boots import Boots, best, boots_of, guests, job
from experiments.mremap.guests import MremapGuests
from fixtures.guests import Builder
from ream.errors import VerificationFailed
from ream.paths import EXPERIMENTS


@pytest.fixture(scope="module")
def boots(image: Builder, tmp_path_factory: pytest.TempPathFactory) -> Boots:
    return boots_of(image, tmp_path_factory)


def test_batches_cost_where_memory_moves(boots: Boots) -> None:
    its = guests(MremapGuests)
    before = boots(its)
    published = boots(its, "mprotect-batch", "mremap-batch")
    assert {one.write_faults for one in (*before, *published)} == {0}
    for row in ("vm-across-4k", "vm-across-64k"):
        where = (job(its, row), "move")
        assert best(published)[where] > 1.3 * best(before)[where]


def test_a_kernel_that_does_not_note_what_moves_is_noticed(boots: Boots) -> None:
    wrong = str(EXPERIMENTS / "mremap/wrong/02-soft-dirty-lost.patch")
    with pytest.raises(VerificationFailed, match="memory is not as it must be"):
        boots(guests(MremapGuests, "vm-across-64k"), wrong)
