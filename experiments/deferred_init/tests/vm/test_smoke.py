# SPDX-License-Identifier: GPL-2.0-only
"""The vm stage in small: one boot of four CPUs, its deferred pages compared."""

from pathlib import Path

import pytest

from experiments.deferred_init.boot import Shape, deferred_initramfs, layout_of, run_deferred_boot
from ream.paths import EXPERIMENTS, KERNEL_MODULES
from ream.stage.initramfs import build_init
from ream.stage.vm import BootableKernel, Start

# That of zone-device boots the same kernel: another worker would only wait until it is built.
pytestmark = pytest.mark.xdist_group("smoke")

GIB = 1 << 30
SERIES = ("zone-device", "zone-device-parallel")


def test_four_cpus_initialise_deferred_pages_as_predicted(image, tmp_path: Path) -> None:
    built = image(*SERIES, modules=[KERNEL_MODULES / "memmap"])
    initramfs = deferred_initramfs(
        built, init=build_init(tmp_path, *EXPERIMENTS.glob("*")), work=tmp_path
    )
    shape, log = Shape(GIB, cpus=4, present=4), tmp_path / "console.log"
    [booted] = run_deferred_boot(
        Start(
            shape.machine("tcg", icount=False, options=()),
            BootableKernel(built.bootable, initramfs),
            log,
        ),
        shape,
        layout_of(built, tmp_path),
    )
    [state] = booted.states
    assert 0.7 * GIB < state.nr_pages * 4096 < GIB
    assert "Brought up 1 node, 4 CPUs" in log.read_text()
