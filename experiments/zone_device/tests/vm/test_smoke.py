# SPDX-License-Identifier: GPL-2.0-only
"""The vm stage in small: one boot of the shipped kernel, one namespace, its map compared."""

import re
from pathlib import Path

import pytest

from experiments.zone_device.boot import Device
from ream.stage.qemu import GuestMachine

# That of deferred-init boots the same kernel: another worker would only wait until it is built.
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
