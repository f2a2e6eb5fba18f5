# SPDX-License-Identifier: GPL-2.0-only
"""Every kind of device on base and series, in booted kernels: each map is compared whole."""

from pathlib import Path

import numpy as np
import pytest

from experiments.zone_device.boot import Device, plan_boot
from ream.experiment import parse_size
from ream.paths import CHECKOUT
from ream.stage.guest import boot
from ream.stage.qemu import GuestMachine, GuestNode

GIB = 1 << 30
VERIFICATION_FAILED = 5
VARIANTS = ((), ("zone-device",), ("zone-device", "zone-device-parallel"))


def namespace(size: str, order: int, *, altmap: bool, type_: str = "GENERIC") -> Device:
    return Device(parse_size(size), order, type_, altmap, in_namespace=True)


def asked_for(type_: str, size: str, order: int = 0) -> Device:
    return Device(parse_size(size), order, type_, altmap=False, in_namespace=False)


DEVICES = (
    namespace("3GiB", 0, altmap=True, type_="FS_DAX"),
    namespace("3GiB", 0, altmap=True),
    namespace("3GiB", 9, altmap=True),
    namespace("3GiB", 9, altmap=False),
    namespace("4GiB", 18, altmap=True),
    namespace("4GiB", 18, altmap=False),
    asked_for("PRIVATE", "3GiB"),
    asked_for("COHERENT", "3GiB"),
    asked_for("FS_DAX", "3GiB"),
    asked_for("PCI_P2PDMA", "3GiB"),
    asked_for("GENERIC", "3GiB", 9),
    asked_for("GENERIC", "128MiB"),
)

WATCHED = (DEVICES[0], DEVICES[2], DEVICES[3], *DEVICES[6:8], DEVICES[-2])


@pytest.mark.parametrize("device", DEVICES, ids=str)
@pytest.mark.parametrize("series", VARIANTS, ids=lambda names: "+".join(names) or "before")
def test_a_map_is_as_predicted(boots, series: tuple[str, ...], device: Device) -> None:
    machine = GuestMachine("tcg", icount=True, memory_bytes=device.least_bytes)
    assert len(boots(series, machine, device, 2)) == 2


@pytest.mark.parametrize("device", DEVICES[:5], ids=str)
def test_a_map_that_several_cpus_write_is_as_predicted(boots, device: Device) -> None:
    machine = GuestMachine("tcg", cpus=4, memory_bytes=device.least_bytes)
    assert len(boots(VARIANTS[-1], machine, device, 4)) == 4


@pytest.mark.parametrize("device", WATCHED, ids=str)
def test_a_kernel_that_watches_itself_has_nothing_to_say(boots, device: Device) -> None:
    """KASAN, lockdep, DEBUG_VM, DEBUG_PAGE_REF: any report of theirs would end the boot."""
    machine = GuestMachine("tcg", cpus=2, memory_bytes=device.least_bytes)
    assert len(boots(VARIANTS[-1], machine, device, 2, "vm-debug")) == 2


@pytest.mark.parametrize("series", VARIANTS, ids=lambda names: "+".join(names) or "before")
def test_the_device_of_a_distant_node_says_so(boots, series: tuple[str, ...]) -> None:
    """Every descriptor has the node's number. The node has no CPUs and a distance of its own."""
    device = namespace("2GiB", 9, altmap=True)
    machine = GuestMachine(
        "tcg",
        cpus=2,
        memory_bytes=8 * GIB,
        # Node 0 ends below 4 GiB: all of the pmem is node 1's.
        nodes=(GuestNode(2 * GIB, "0-1"), GuestNode(6 * GIB, "")),
        distances=((0, 1, 30),),
    )
    for checked in boots(series, machine, device, 2):
        assert checked.bind.calls[0].nid == 1


def test_memory_read_in_place_is_what_qemu_saves(kernel_of, tmp_path: Path) -> None:
    """Read a map with the compound optimisation, where most pages of map are one, in two ways."""
    device = namespace("1GiB", 9, altmap=False)
    machine = GuestMachine("tcg", icount=True, memory_bytes=device.least_bytes)
    argv = plan_boot(machine, kernel_of(()), device, 1, append=(), work=tmp_path)
    port, qmp, saved = tmp_path / "port", tmp_path / "qmp", tmp_path / "saved"
    log = tmp_path / "console.log"
    with boot(argv, log=log, port=port, qmp=qmp, deadline_s=600, silence_s=120) as guest:
        for message in guest.messages():
            if "bind" in message:
                (call,) = message["bind"]["calls"]
                nr_bytes = call["nr_pages"] * 64
                with guest.memory(call["map"], nr_bytes) as held:
                    read = held[0:nr_bytes]
                guest.save(call["map"], nr_bytes, saved)
                guest.answer("next")
    assert (read == np.fromfile(saved, np.uint8)).all()
    assert len(np.unique(read)) > 1


def test_a_wrong_field_is_found_at_its_byte(ream, tmp_path: Path) -> None:
    patch = CHECKOUT / "tests/native/patches/wrong-field.patch"
    words = (
        "--stage",
        "vm",
        "--accel",
        "tcg",
        "--row",
        "fsdax-bind",
        "--set",
        "device_bytes=4GiB",
        "--series",
        str(patch),
    )
    answer = ream("run", *words, "--output", str(tmp_path / "runs"))
    assert answer.code == VERIFICATION_FAILED
    # pfn 2000042 is in the device, and zone_device_data is at offset 16.
    assert "byte 16 of the struct page of pfn 0x1e84aa is not as predicted" in answer.err
    assert not list((tmp_path / "runs").iterdir())
