# SPDX-License-Identifier: GPL-2.0-only
"""Each defect that was found is in the kernel, and is not with its repair."""

from pathlib import Path

import pytest

from experiments.mm.found import Defect, defects
from ream.kernel.series import load_series
from ream.kernel.source import Tree
from ream.program.ran import Rig
from ream.program.text import parse

pytestmark = [pytest.mark.native, pytest.mark.xdist_group("computer")]


@pytest.mark.parametrize("defect", defects(), ids=lambda one: one.name)
def test_its_program_shows_it_without_the_repair_alone(
    rig: Rig, kernel: Tree, defect: Defect, cache: Path, tmp_path: Path
) -> None:
    (base,) = (one for one in defect.kernels if kernel.version.startswith(f"{one}."))
    patches = load_series(defect.repair(base)).patches
    repaired = Rig.of(kernel, patches, cache=cache, work=tmp_path, step=print)
    for number, its in enumerate((rig, repaired)):
        ran = its.run(parse(str(defect.program)))
        assert not ran.is_wrong
        assert {at: ran.returned[at] for at in defect.returned} == {
            at: both[number] for at, both in defect.returned.items()
        }
