# SPDX-License-Identifier: GPL-2.0-only
"""What goes wrong with a guest is told in time, with the right exit code, and leaves no QEMU."""

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from experiments.zone_device.boot import Device, plan_boot, run_boot
from experiments.zone_device.guests import MODULES, initramfs_of
from fixtures.guests import Builder
from ream.errors import BadUsage, CannotRunHere, ReamError
from ream.paths import EXPERIMENTS, KERNEL_MODULES
from ream.stage import vm
from ream.stage.guest import boot
from ream.stage.initramfs import build_init, build_initramfs
from ream.stage.qemu import GuestMachine
from ream.stage.vm import BootableKernel, Start

GIB = 1 << 30
DEVICE = Device(2 * GIB, 9, "GENERIC", altmap=True, in_namespace=True)
MACHINE = GuestMachine("tcg", icount=True, memory_bytes=DEVICE.least_bytes)


@pytest.fixture(scope="module")
def bootable(image: Builder, tmp_path_factory: pytest.TempPathFactory) -> BootableKernel:
    """The base, whose guests make devices."""
    work = tmp_path_factory.mktemp("kernel")
    init = build_init(work, *EXPERIMENTS.glob("*"))
    built = image(modules=[KERNEL_MODULES / name for name in MODULES])
    return BootableKernel(built.bootable, initramfs_of(built, init=init, work=work))


def bind(kernel: BootableKernel, machine: GuestMachine, log: Path, device: Device = DEVICE) -> None:
    for _ in run_boot(Start(machine, kernel, log), device, 2):
        pass


def is_qemu(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/comm").read_text().startswith("qemu-system")
    except OSError:
        return False


def qemus_of(parent: int) -> set[int]:
    """The QEMU processes that one process has started."""
    listing = subprocess.run(
        ["pgrep", "-P", str(parent)], capture_output=True, text=True, check=False
    )
    return {pid for pid in map(int, listing.stdout.split()) if is_qemu(pid)}


def test_a_killed_qemu_is_named(bootable, tmp_path: Path) -> None:
    argv = plan_boot(MACHINE, bootable, DEVICE, 2, append=(), work=tmp_path)
    log, port, qmp = (tmp_path / name for name in ("console.log", "port", "qmp"))
    with boot(argv, log=log, port=port, qmp=qmp, deadline_s=300, silence_s=100) as guest:
        messages = guest.messages()
        assert "hello" in next(messages)
        os.kill(guest.pid, signal.SIGKILL)
        with pytest.raises(ReamError, match="QEMU was killed by SIGKILL"):
            list(messages)


def test_an_init_that_hangs_is_killed_in_time_and_its_last_lines_are_shown(
    image, bootable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = Path(__file__).with_name("hang.c")
    hang = tmp_path / "hang"
    subprocess.run(["gcc", "-static", "-o", hang, source], check=True)
    initramfs = build_initramfs(
        tmp_path / "initramfs.cpio",
        gen_init_cpio=image().gen_init_cpio,
        init=hang,
        modules={},
        programs={},
        work=tmp_path,
    )
    monkeypatch.setattr(vm, "SILENCE_S", 15.0)
    began = time.monotonic()
    with pytest.raises(ReamError, match=r"(?s)said nothing for 15 s.*Run /init as init process"):
        bind(BootableKernel(bootable.image, initramfs), MACHINE, tmp_path / "console.log")
    assert time.monotonic() - began < 120


def test_a_kernel_cut_short_does_not_boot_and_says_so(
    bootable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = bootable
    short = tmp_path / "bzImage"
    content = whole.image.read_bytes()
    short.write_bytes(content[: len(content) // 2])
    monkeypatch.setattr(vm, "SILENCE_S", 20.0)
    with pytest.raises(ReamError):
        bind(BootableKernel(short, whole.initramfs), MACHINE, tmp_path / "console.log")


def test_a_guest_with_too_little_memory_for_itself_says_what_it_died_of(
    bootable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The map of 64 GiB takes a GiB of a guest that has half of one; the kernel warns of that."""
    device = Device(64 * GIB, 0, "PRIVATE", altmap=False, in_namespace=False)
    machine = GuestMachine("tcg", icount=True, memory_bytes=GIB // 2)
    monkeypatch.setattr(vm, "SILENCE_S", 100.0)
    with pytest.raises(ReamError, match=r"(?s)alloc.*failure.*order:9.*memremap_pages"):
        bind(bootable, machine, tmp_path / "console.log", device)


def test_memory_that_the_host_does_not_have_is_refused(ream, tmp_path: Path) -> None:
    words = ("--stage", "vm", "--accel", "tcg", "--row", "private-first")
    answer = ream("run", *words, "--memory", "2GiB", "--output", str(tmp_path / "runs"))
    assert answer.code == BadUsage.exit_code
    assert "a guest of 2 GiB cannot hold private: it needs 6 GiB" in answer.err


def test_a_missing_qemu_is_named(ream, tmp_path: Path) -> None:
    answer = ream("run", "--stage", "vm", "--accel", "tcg", PATH=str(tmp_path))
    assert answer.code == CannotRunHere.exit_code
    assert "not installed; `make setup` installs what ream drives" in answer.err


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGKILL, -9)])
def test_interrupting_a_run_leaves_no_qemu(
    bootable, ream_started, number: signal.Signals, code: int, tmp_path: Path
) -> None:
    assert bootable.image.is_file()
    process = ream_started(
        *(
            "run",
            "--stage",
            "vm",
            "--accel",
            "tcg",
            "--row",
            "fsdax-bind",
            "--set",
            "device_bytes=2GiB",
        ),
        *("--output", str(tmp_path / "runs")),
    )
    deadline = time.monotonic() + 600
    while not (guests := qemus_of(process.pid)):
        assert process.poll() is None, "it ended before a guest came up"
        assert time.monotonic() < deadline
        time.sleep(0.2)
    process.send_signal(number)
    assert process.wait(60) == code
    for _ in range(50):
        if not any(map(is_qemu, guests)):
            break
        time.sleep(0.2)
    assert not any(map(is_qemu, guests))
