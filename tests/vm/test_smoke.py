# SPDX-License-Identifier: GPL-2.0-only
"""The vm stage in small: one boot of the shipped kernel, one namespace, its map compared; and one
boot of four CPUs, its deferred pages compared.
"""

import re
from pathlib import Path

import pytest

from experiments.deferred_init.boot import Shape, deferred_initramfs, layout_of, run_deferred_boot
from experiments.zone_device.boot import Device
from ream.paths import EXPERIMENTS, KERNEL_MODULES
from ream.stage.initramfs import build_init
from ream.stage.qemu import GuestMachine
from ream.stage.vm import BootableKernel, Start

# Both boot one kernel: another worker would only wait until it is built.
pytestmark = pytest.mark.xdist_group("smoke")

GIB = 1 << 30
SERIES = ("zone-device", "zone-device-parallel")
DEVDAX = Device(size_bytes=2 * GIB, order=9, type="GENERIC", altmap=True, in_namespace=True)


def test_a_namespace_is_bound_and_its_map_is_as_predicted(boots, tmp_path: Path) -> None:
    machine = GuestMachine("tcg", icount=True, memory_bytes=DEVDAX.least_bytes)
    first, second = boots(SERIES, machine, DEVDAX, 2)
    assert first.bind.calls[0].order == second.bind.calls[0].order == 9
    assert first.nr_bytes == (DEVDAX.size_bytes // 4096 - first.bind.calls[0].skip_pages) * 64
    # The kernel's own clock and ours are of the same interval; its step is a millisecond.
    for bound in (first, second):
        message = re.search(r"initialised (\d+) pages in (\d+)ms", bound.bind.message or "")
        assert message is not None
        assert int(message[1]) * 64 == bound.nr_bytes
        assert abs(int(message[2]) - bound.init_ns / 1e6) <= 2
    assert "ok 2" in (tmp_path / "console.log").read_text()


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
