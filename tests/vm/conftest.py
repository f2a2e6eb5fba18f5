# SPDX-License-Identifier: GPL-2.0-only
"""Whole kernels for the tests of the vm stage, from the user's own cache."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from experiments.zone_device.boot import Checked, Device, run_boot
from experiments.zone_device.guests import MODULES, initramfs_of
from ream.kernel.image import Image, build_image
from ream.kernel.series import load_series
from ream.kernel.source import Tree, fetch_tree
from ream.paths import EXPERIMENTS, KERNEL_CONFIG, KERNEL_MODULES, SERIES, cache_dir
from ream.progress import Reporter
from ream.stage.initramfs import build_init
from ream.stage.qemu import GuestMachine
from ream.stage.vm import BootableKernel, Start

Builder = Callable[..., Image]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All but the smoke test are `make test-vm`: they take kernels and an hour."""
    for item in items:
        if Path(__file__).parent in item.path.parents and item.path.name != "test_smoke.py":
            item.add_marker(pytest.mark.vm)


@pytest.fixture(scope="session")
def kernel() -> Tree:
    return fetch_tree(None, cache=cache_dir(), step=print)


@pytest.fixture(scope="session")
def image(kernel: Tree) -> Builder:
    """A function that builds a kernel: image("zone-device", config="vm-trace").

    config: one fragment over vm.config, or several: "vm-debug+vm-dma".
    """

    def build(*series: str, config: str = "vm", modules: Sequence[Path] = ()) -> Image:
        patches = [patch for name in series for patch in load_series(SERIES / name).patches]
        names = dict.fromkeys(("vm", *config.split("+")))
        return build_image(
            kernel,
            patches,
            cache=cache_dir(),
            fragments=[KERNEL_CONFIG / f"{name}.config" for name in names],
            modules=modules,
            reporter=Reporter(),
        )

    return build


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
