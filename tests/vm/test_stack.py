# SPDX-License-Identifier: GPL-2.0-only
"""All of ream on one base, in a small kernel and in one as distributions configure it.

The latter has what vm.config leaves out: memcg, MGLRU, mitigations, paravirtual page tables,
machine checks and what handles poisoned memory, tracing, preemption that is chosen at boot.
"""

from collections.abc import Callable, Mapping
from functools import cache as once
from itertools import product
from pathlib import Path

import pytest

from fixtures.guests import Builder
from ream.kernel.image import Image
from ream.paths import KERNEL_MODULES
from ream.stage.qemu import GuestMachine, GuestNode
from ream.stage.selftests import (
    SELFTESTS,
    Selftests,
    differences,
    read_selftests,
    run_selftests,
)
from without_keys import without_keys

CONFIGS = ("vm", "vm-distro")
ALL = "all"
GIB = 1 << 30

MACHINES = {
    "zone-device": GuestMachine("tcg", memory_bytes=6 * GIB),
    "fork": GuestMachine("tcg", cpus=2, memory_bytes=4 * GIB),
    "mprotect": GuestMachine("tcg", cpus=2, memory_bytes=4 * GIB, cpu="max"),
    "migrate": GuestMachine(
        "tcg",
        cpus=3,
        memory_bytes=8 * GIB,
        nodes=(GuestNode(5 * GIB, "0-1"), GuestNode(3 * GIB, "2")),
    ),
}
"""By list of tests: what guest they need."""


def selftests_of(name: str) -> Selftests:
    return without_keys(read_selftests(SELFTESTS / f"{name}.list"))


ALONE = {
    "zone-device": ("zone-device", "zone-device-parallel", "deferred-init"),
    "fork": ("rmap-exclusive", "pte-hw-done", "fork"),
    "mprotect": ("pte-hw-done", "mprotect"),
    "migrate": (
        *("dmaengine-fixes", "migrate-offload", "migrate-beyond"),
        *("rmap-exclusive", "migrate-faster"),
        *("compact-fixes", "compact"),
    ),
}
"""By list of tests: the series that these are about, with what they stand on."""

Results = Mapping[str, str]


@pytest.fixture(scope="module")
def on_base(image: Builder, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Results]:
    """A function that gives what the base says: on_base("vm-distro", "fork")."""

    @once
    def results(config: str, name: str) -> Results:
        work = tmp_path_factory.mktemp("base")
        built, tests = image(config=config), selftests_of(name)
        return run_selftests(MACHINES[name], built, tests, work=work, log=work / "console.log")

    return results


def _differs(built: Image, name: str, expected: Results, work: Path) -> tuple[str, ...]:
    tests = selftests_of(name)
    found = run_selftests(MACHINES[name], built, tests, work=work, log=work / "console.log")
    assert "pass" in found.values()
    return differences(expected, found, tests)


@pytest.mark.parametrize(("config", "name"), tuple(product(CONFIGS, sorted(MACHINES))))
def test_the_kernels_own_tests_give_the_same_results(
    config: str, name: str, on_base: Callable[..., Results], image: Builder, tmp_path: Path
) -> None:
    expected = on_base(config, name)
    # The image that test_beside.py boots, too: such a kernel takes ten minutes to build.
    built = image(ALL, config=config, modules=[KERNEL_MODULES / "swdma"])
    assert _differs(built, name, expected, tmp_path) == ()


@pytest.mark.parametrize(
    ("config", "name"),
    [*product(["vm-distro"], sorted(MACHINES)), ("vm", "fork"), ("vm", "migrate")],
)
def test_series_give_the_same_results_without_the_others(
    config: str, name: str, on_base: Callable[..., Results], image: Builder, tmp_path: Path
) -> None:
    """With vm.config test_selftests.py and that of mprotect boot what is missing here."""
    expected = on_base(config, name)
    assert _differs(image(*ALONE[name], config=config), name, expected, tmp_path) == ()
