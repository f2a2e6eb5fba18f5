# SPDX-License-Identifier: GPL-2.0-only
"""Patches that look right and are wrong: each is caught before anything is timed.

They were written by somebody who had not seen the oracle. What hosted code cannot show is named
here with the reason, so that nobody takes silence about it for an answer.
"""

import re
from pathlib import Path

import pytest

from ream.errors import ReamError
from ream.experiment import BASE
from ream.kernel.series import load_series
from ream.kernel.source import Tree
from ream.measure.plan import Launch
from ream.session.native import EXPERIMENTS
from ream.stage.bench import build_bench
from ream.stage.calls import Calls
from ream.stage.cases import cases_of
from ream.stage.link import Program
from ream.stage.native import launch_once, read_build
from ream.variants import Variant

WRONG = Path(__file__).parents[1] / "wrong"

pytestmark = [pytest.mark.xdist_group("wrong"), pytest.mark.vm]

UNSHOWN: dict[tuple[str, str], str] = {
    ("deferred-init", "06"): "CONFIG_VM_EVENT_COUNTERS is off here; in a boot PGFREE is compared",
    ("deferred-init", "19"): "a race of some instructions, in which nothing can hold a CPU up",
    ("fork", "21"): "no notifiers: CONFIG_MMU_NOTIFIER is not selected by what is built",
    ("fork", "22"): "no notifiers: CONFIG_MMU_NOTIFIER is not selected by what is built",
    ("fork", "34"): "free_pgtables() is not called: its tables are freed by RCU",
    ("fork", "45"): "the allocator, which clears pages with init_on_free, is not hosted",
    ("fork", "47"): "mm/ksm.c is not hosted, and the counter lies there",
    ("migrate", "21"): "kernels are hosted without MMU notifiers: no range is given to anybody",
    ("migrate", "37"): "no folio is in the swap cache: mm/swap_state.c is not hosted",
    ("zone-device", "34"): "mm/memremap.c is not hosted",
}
"""By experiment and number: why no run of hosted code can show it."""

CAUGHT = r": mine: |warnings"
"""Who was wrong, and in what case; or a WARN of the kernel's own."""

PATCHES = sorted(
    (path.parent.name, path) for path in WRONG.glob("*/*.patch") if path.parent.name in EXPERIMENTS
)


def number_of(path: Path) -> str:
    return path.name[:2]


@pytest.mark.parametrize(
    ("experiment", "path"),
    [one for one in PATCHES if one[0] != "compact" and (one[0], number_of(one[1])) not in UNSHOWN],
    ids=lambda one: one.stem if isinstance(one, Path) else one,
)
def test_it_is_caught(
    kernel: Tree, cache: Path, tmp_path: Path, experiment: str, path: Path
) -> None:
    variants = Variant(BASE, ()), Variant("mine", (load_series(path),), BASE)
    its = EXPERIMENTS[experiment]
    bench = build_bench(kernel, variants, folder=its.FOLDER, cache=cache, work=tmp_path, step=print)
    launch = Launch(0, 1, 0x340, (BASE, "mine"))
    program = bench.link(launch)
    with pytest.raises(ReamError, match=CAUGHT):
        run_all(experiment, program, launch, tmp_path)


def run_all(experiment: str, program: Program, launch: Launch, work: Path) -> None:
    build = read_build(program)
    calls = Calls({"mine": BASE})
    for planned, cpus in cases_of(experiment, build, work, seed=1, pass_number=0):
        with planned as (plan, descriptors):
            for _ in calls.counted(launch_once(program, launch, plan, descriptors, cpus=cpus)):
                pass
    calls.check()


def test_what_cannot_be_shown_is_there_and_has_a_reason() -> None:
    there = {(experiment, number_of(path)) for experiment, path in PATCHES}
    assert UNSHOWN.keys() <= there
    assert all(re.search(r"\w{3}", reason) for reason in UNSHOWN.values())
