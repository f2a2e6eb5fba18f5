# SPDX-License-Identifier: GPL-2.0-only
"""A variant booted for a person to look around in."""

import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from ream.errors import BadUsage, CannotRunHere
from ream.experiment import format_size, parse_size
from ream.kernel.cache import disk_faults, scratch
from ream.kernel.source import fetch_tree
from ream.progress import Reporter
from ream.record.record import new_run_id
from ream.session.guests import GuestSetting, build_kernels, choose_setting
from ream.session.request import Request
from ream.session.vm import guests_of
from ream.stage.initramfs import guest_initramfs, namespace_programs, shell_programs
from ream.stage.pmem import PMEM_DRIVERS, PMEM_START_BYTES, PMEM_SYSTEM_BYTES, pmem_word
from ream.stage.qemu import qemu_command
from ream.stage.vm import BootableKernel

PMEM = parse_size("16GiB")
"""Of emulated pmem, to make namespaces on with ndctl."""


def run_shell(request: Request, reporter: Reporter) -> int:
    """Boot the request's only variant on this terminal; return QEMU's exit code.

    The kernel, its modules and ndctl are those of a run; what is typed changes nothing of ours.
    Raises BadUsage without a terminal, CannotRunHere without a shell to put into the guest.
    """
    if not sys.stdin.isatty():
        raise BadUsage("a shell is for a person: standard input is no terminal")
    programs = shell_programs()
    if not programs:
        raise CannotRunHere("busybox: not installed, and the guest needs a shell; install busybox")
    modules = guests_of(request.experiment).modules
    setting = choose_setting(replace(request.guest, icount=False), request.cache)
    memory_bytes = _memory_bytes(setting)
    run_id = new_run_id(request.experiment.name, "shell")
    with (
        disk_faults(request.cache, "a shell"),
        scratch(request.cache / "run" / run_id, reporter.step) as work,
    ):
        tree = fetch_tree(request.tree, cache=request.cache, step=reporter.step)
        kernels = build_kernels(
            request.variants,
            tree,
            folder=request.experiment.folder,
            cache=request.cache,
            initramfs=lambda image, init, place: guest_initramfs(
                image,
                "shell",
                init=init,
                work=place,
                modules=(*modules, *PMEM_DRIVERS),
                programs={**namespace_programs(), **programs},
            ),
            modules=modules,
            work=work,
            reporter=reporter,
        )
        ((_, kernel),) = kernels.values()
        argv = _command(request, setting, memory_bytes, kernel)
        reporter.step("exit or Ctrl-A X leaves; modules are in /modules, ndctl in /usr/bin")
        return subprocess.run(argv, check=False).returncode


def shown_shell(request: Request) -> str:
    """QEMU's command line of such a boot, for people: files without their directories."""
    setting = choose_setting(replace(request.guest, icount=False), request.cache)
    kernel = BootableKernel(Path("bzImage"), Path("shell.cpio"))
    return shlex.join(_command(request, setting, _memory_bytes(setting), kernel))


def _memory_bytes(setting: GuestSetting) -> int:
    """The guest's memory; raises BadUsage if the user gave it too little."""
    given = setting.given_bytes
    if given and given < PMEM_START_BYTES + PMEM:
        raise BadUsage(
            f"a guest of {format_size(given)} has no room for {format_size(PMEM)} of pmem"
            f" from {format_size(PMEM_START_BYTES)} on"
        )
    return given or PMEM + PMEM_SYSTEM_BYTES


def _command(
    request: Request, setting: GuestSetting, memory_bytes: int, kernel: BootableKernel
) -> tuple[str, ...]:
    return qemu_command(
        setting.machine_of(memory_bytes),
        kernel=kernel.image,
        initramfs=kernel.initramfs,
        append=(pmem_word(PMEM), *request.guest.append),
        init=("experiment=shell",),
        port=None,
        qmp=None,
    )
