# SPDX-License-Identifier: GPL-2.0-only
"""Each defect that was found is in the kernels that it names, and is not with its repair."""

from collections.abc import Callable
from functools import cache as once
from pathlib import Path

import pytest

from experiments.mm.found import Defect, defects, repairs
from ream.kernel.base import base_named
from ream.kernel.source import fetch_tree
from ream.program.ran import Rig
from ream.program.text import parse

pytestmark = [pytest.mark.native, pytest.mark.xdist_group("computer")]


@pytest.fixture(scope="module")
def rigs(cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], tuple[Rig, Rig]]:
    """A function that hosts a kernel: as it is, and with all repairs."""

    @once
    def make(kernel: str) -> tuple[Rig, Rig]:
        tree = fetch_tree(base_named(kernel), cache=cache, step=print)
        without, repaired = (
            Rig.of(tree, patches, cache=cache, work=tmp_path_factory.mktemp("rig"), step=print)
            for patches in ([], repairs(kernel))
        )
        return without, repaired

    return make


@pytest.mark.parametrize(
    ("defect", "kernel"),
    [(one, kernel) for one in defects() for kernel in one.kernels],
    ids=lambda its: its.name if isinstance(its, Defect) else its,
)
def test_its_program_shows_it_without_the_repair_alone(
    rigs: Callable[[str], tuple[Rig, Rig]], defect: Defect, kernel: str
) -> None:
    for number, its in enumerate(rigs(kernel)):
        ran = its.run(parse(str(defect.program)))
        assert ran.is_wrong == (bool(defect.alarm) and not number)
        assert all(defect.alarm in text for _, text in ran.alarms)
        assert {at: ran.returned[at] for at in defect.returned} == {
            at: both[number] for at, both in defect.returned.items()
        }


@pytest.mark.parametrize("kernel", sorted({one for its in defects() for one in its.kernels}))
def test_repairs_leave_right_what_was_right(
    rigs: Callable[[str], tuple[Rig, Rig]], kernel: str
) -> None:
    steps = (
        *("p0 mmap a 8 anon private rw populate", "p0 madvise a mergeable"),
        *(f"set /sys/kernel/mm/ksm/{its}" for its in ("use_zero_pages 1", "run 1")),
        *("wait 3s", "p0 fork p1", "p1 exit", "p0 fork p1", "p0 exit"),
    )
    for its in rigs(kernel):
        assert not its.run(parse("".join(f"{step}\n" for step in steps))).alarms
