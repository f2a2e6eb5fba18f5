# SPDX-License-Identifier: GPL-2.0-only
"""Each program does the same hosted and on the running kernel, but for what a rule explains."""

from pathlib import Path

import pytest

from ream.program.compare import differences, facts_of
from ream.program.elsewhere import run_live, running_kernel
from ream.program.ran import Rig, numbered
from ream.program.text import load_program

pytestmark = [pytest.mark.native, pytest.mark.xdist_group("computer")]

SKIPPED = {"memory", "cpus", "swap"}
"""What user space does not perform of these programs."""


def test_a_program_does_the_same_on_the_running_kernel(
    rig: Rig, path: Path, tmp_path: Path
) -> None:
    program = numbered(load_program(path))
    ran = rig.run(program, shows=True)
    assert not ran.is_wrong, ran.alarms
    live = run_live(program, tmp_path)
    found = differences(program, ran.said, live, running_kernel())
    assert not [str(one) for one in found if not one.why]
    performed = {line for line, what in facts_of(live) if what == "returned"}
    assert performed >= {step.line for step in program if step.verb not in SKIPPED}
