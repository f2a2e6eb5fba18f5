# SPDX-License-Identifier: GPL-2.0-only
"""Guests that make devices, in kernels from the user's own cache."""

from collections.abc import Callable
from pathlib import Path

import pytest

from experiments.zone_device.boot import Checked, Device, run_boot
from experiments.zone_device.guests import MODULES, initramfs_of
from fixtures.guests import Builder
from ream.paths import EXPERIMENTS, KERNEL_MODULES
from ream.stage.initramfs import build_init
from ream.stage.qemu import GuestMachine
from ream.stage.vm import BootableKernel, Start


@pytest.fixture(scope="session")
def kernel_of(
    image: Builder, tmp_path_factory: pytest.TempPathFactory
) -> Callable[..., BootableKernel]:
    """A function that gives a kernel with its initramfs: kernel_of(("zone-device",))."""
    made: dict[tuple[tuple[str, ...], str], BootableKernel] = {}
    init = build_init(tmp_path_factory.mktemp("init"), *EXPERIMENTS.glob("*"))

    def make(series: tuple[str, ...], config: str = "vm") -> BootableKernel:
        if (series, config) not in made:
            work = tmp_path_factory.mktemp("kernel")
            modules = [KERNEL_MODULES / name for name in MODULES]
            built = image(*series, config=config, modules=modules)
            made[series, config] = BootableKernel(
                built.bootable, initramfs_of(built, init=init, work=work)
            )
        return made[series, config]

    return make


@pytest.fixture
def boots(kernel_of: Callable[..., BootableKernel], tmp_path: Path) -> Callable[..., list[Checked]]:
    """A function that boots a series, binds a device and compares its map as often as asked."""

    def run(
        series: tuple[str, ...],
        machine: GuestMachine,
        device: Device,
        binds: int,
        config: str = "vm",
    ) -> list[Checked]:
        log = tmp_path / "console.log"
        return list(run_boot(Start(machine, kernel_of(series, config), log), device, binds))

    return run
