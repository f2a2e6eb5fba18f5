# SPDX-License-Identifier: GPL-2.0-only
"""All of ream on one base, in a small kernel and in one as distributions configure it.

The latter has what vm.config leaves out: memcg, MGLRU, mitigations, paravirtual page tables,
machine checks and what handles poisoned memory, tracing, preemption that is chosen at boot.
"""

from collections.abc import Callable, Mapping
from itertools import product
from pathlib import Path

import pytest

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

Builder = Callable[..., Image]

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


@pytest.fixture(scope="module", params=product(CONFIGS, sorted(MACHINES)), ids="-".join)
def on_base(
    request: pytest.FixtureRequest, image: Builder, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, str, Mapping[str, str]]:
    config, name = request.param
    work = tmp_path_factory.mktemp("base")
    tests = selftests_of(name)
    log = work / "console.log"
    found = run_selftests(MACHINES[name], image(config=config), tests, work=work, log=log)
    return config, name, found


def test_the_kernels_own_tests_give_the_same_results(
    on_base: tuple[str, str, Mapping[str, str]], image: Builder, tmp_path: Path
) -> None:
    config, name, expected = on_base
    tests = selftests_of(name)
    # The image that test_beside.py boots, too: such a kernel takes ten minutes to build.
    built = image(ALL, config=config, modules=[KERNEL_MODULES / "swdma"])
    log = tmp_path / "console.log"
    found = run_selftests(MACHINES[name], built, tests, work=tmp_path, log=log)
    assert differences(expected, found, tests) == ()
    assert "pass" in found.values()
