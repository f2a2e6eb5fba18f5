# SPDX-License-Identifier: GPL-2.0-only
"""Finds out whether guests run under KVM here, and with which CPU model.

A guest is booted for this, since a /dev/kvm that opens proves nothing.
"""

import os
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ream.command import Command, finished, last_words, require, run
from ream.errors import CannotRunHere, ReamError
from ream.kernel.arch import X86_64, Arch
from ream.paths import CHECKOUT
from ream.stage.qemu import HOST_CPU, QEMU, TCG_CPU, Accel

PROBE_SOURCE = CHECKOUT / "guest" / "probe.S"
PROBE_MARK = "ream\n"
PROBE_EXIT = 33
"""Text that guest/probe.S prints, and QEMU's exit status after it."""

PROBE_DEADLINE_S = 10.0
COMPILER_DEADLINE_S = 60.0

KVM = Path("/dev/kvm")
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")

MODULES = Path("/sys/module")
HOST_MODULES = ("kvm_intel", "kvm_amd", "kvm_pvm")
"""Modules of the host's kernel that run KVM's guests, each in another way."""

PVM = "kvm_pvm"
"""This module runs guests in ring 3 without CPU support, where stock kernels do not work."""

KVM_CPUS = (
    HOST_CPU,
    f"{HOST_CPU},-arch-capabilities",
    *(f"{name},enforce" for name in ("EPYC-v1", "Skylake-Server-v1", "Nehalem-v1")),
)
"""Values of -cpu, the best first. Some hosts refuse an MSR that belongs to the host CPU's features.
A named model is used only if KVM supports all of it, which `enforce` checks."""

NOT_IN_TIME = "no sign of life within"
"""Start of the only fault that a second attempt may not have."""

WORKS = "works with -cpu "
"""Start of the cached answer if there is no fault; the value of -cpu follows."""


@dataclass(frozen=True)
class Kvm:
    """What KVM can do on this machine. Exactly one of the fields is None."""

    cpu: str | None
    """Value of -cpu with which a guest boots."""
    fault: str | None
    """Why no guest boots."""


ASKED_FOR = "asked for"
GUESTS_OF = "guests of "


def is_of_kvm(reason: str) -> bool:
    """Whether a reason of `choose_accel` is about KVM, which means that KVM was tried."""
    return not reason.startswith((ASKED_FOR, GUESTS_OF))


def choose_accel(
    asked: Literal["auto", "kvm", "tcg"],
    *,
    probe: Callable[[], Kvm],
    arch: Arch = X86_64,
    cpu: str | None = None,
) -> tuple[Accel, str | None, str]:
    """Return the accelerator to use, the value of -cpu, and the reason.

    probe: returns what KVM can do; called only if it matters. arch, cpu: of the guest; None: the
    default CPU model. Raises CannotRunHere if KVM is requested and cannot be used.
    """
    if asked == "kvm" and (arch != X86_64 or cpu is not None):
        what = f"guests of {arch.name}" if arch != X86_64 else f"--cpu {cpu}"
        raise CannotRunHere(f"--accel kvm: {what}: emulated alone")
    if asked == "tcg" or cpu is not None:
        return "tcg", cpu, ASKED_FOR
    if arch != X86_64:
        return "tcg", None, f"{GUESTS_OF}{arch.name} are emulated"
    found = probe()
    if found.cpu is not None:
        why = ASKED_FOR if asked == "kvm" else "a guest boots under it"
        return "kvm", found.cpu, why if found.cpu == HOST_CPU else f"{why}, with -cpu {found.cpu}"
    if asked == "kvm":
        raise CannotRunHere(f"--accel kvm: {found.fault}; --accel tcg needs no KVM, but emulates")
    return "tcg", None, str(found.fault)


def kvm_fault(cache: Path) -> str | None:
    """Return why KVM cannot be used, or None; see `ask_kvm`."""
    return ask_kvm(cache).fault


def ask_kvm(cache: Path) -> Kvm:
    """Return what KVM can do here; found out once per boot of the host and stored in `cache`.

    Raises CannotRunHere if QEMU or the compiler is missing.
    """
    if not KVM.exists():
        return Kvm(None, f"there is no {KVM}")
    if not os.access(KVM, os.R_OK | os.W_OK):
        return Kvm(None, f"{KVM} may not be opened by this user")
    # Permissions depend on the user and are checked each time; KVM's abilities depend on the host.
    answer = cache / f"kvm-guests-{BOOT_ID.read_text().strip()}"
    try:
        said = answer.read_text()
    except OSError:
        said, final = _try_cpus()
        if final:
            _remember(answer, said)
    cpu = said.removeprefix(WORKS)
    return Kvm(None, said) if cpu == said else Kvm(cpu, None)


def host_module(modules: Path = MODULES) -> str | None:
    """Return the one of HOST_MODULES that is loaded on this host; None if none is."""
    return next((name for name in HOST_MODULES if (modules / name).exists()), None)


def _try_cpus() -> tuple[str, bool]:
    """Try KVM_CPUS in turn; return the answer to store, and whether it is final."""
    # Some versions run the probe, which has only a few instructions, and then fail for any kernel.
    if host_module() == PVM:
        return f"the host's module {PVM} runs no stock kernel", True
    faults: dict[str, list[str]] = {}
    for cpu in KVM_CPUS:
        fault = probe_guest("kvm", cpu)
        if fault is None:
            return f"{WORKS}{cpu}", True
        faults.setdefault(fault, []).append(cpu)
    late = any(fault.startswith(NOT_IN_TIME) for fault in faults)
    said = "; ".join(f"-cpu {' or '.join(cpus)}: {fault}" for fault, cpus in faults.items())
    return f"a guest does not come up under kvm ({said})", not late


def _remember(answer: Path, said: str) -> None:
    # If the answer cannot be stored, the next run takes ten seconds longer; this is no error.
    with suppress(OSError):
        _write(answer, said)


def _write(answer: Path, said: str) -> None:
    answer.parent.mkdir(parents=True, exist_ok=True)
    for old in answer.parent.glob("kvm-*"):
        old.unlink(missing_ok=True)
    with tempfile.NamedTemporaryFile("w", dir=answer.parent, delete=False) as partial:
        partial.write(said)
    Path(partial.name).rename(answer)


def probe_guest(accel: Accel, cpu: str = TCG_CPU) -> str | None:
    """Boot guest/probe.S, which needs no kernel; return why it did not boot, or None.

    cpu: the value of -cpu.

    Raises CannotRunHere if QEMU or the compiler is missing.
    """
    require(QEMU)
    with tempfile.TemporaryDirectory(prefix="ream-probe-") as work:
        argv = _probe_command(accel, cpu, _build_probe(Path(work)))
        try:
            code, out, err = finished(Command(argv, Path(work), PROBE_DEADLINE_S), tied=True)
        except CannotRunHere:
            raise
        except ReamError:
            return f"{NOT_IN_TIME} {PROBE_DEADLINE_S:g} s"
    if code == PROBE_EXIT and PROBE_MARK in out:
        return None
    errors = [line for line in err.splitlines() if ": warning: " not in line]
    return last_words("\n".join(errors)).splitlines()[0].removeprefix(f"{QEMU}: ")


def _build_probe(work: Path) -> Path:
    built, image = work / "probe.o", work / "probe.img"
    for argv in (
        ("gcc", "-c", str(PROBE_SOURCE), "-o", str(built)),
        ("objcopy", "-O", "binary", "--only-section=.text", str(built), str(image)),
    ):
        run(Command(argv, work, COMPILER_DEADLINE_S))
    return image


def _probe_command(accel: Accel, cpu: str, image: Path) -> tuple[str, ...]:
    return (
        *(QEMU, "-nodefaults", "-no-user-config"),
        *("-display", "none", "-no-reboot", "-serial", "stdio", "-machine", "pc", "-m", "256M"),
        *("-accel", accel, "-cpu", cpu),
        *("-drive", f"file={image.name},format=raw,if=ide,snapshot=on"),
        *("-device", "isa-debug-exit,iobase=0xf4,iosize=1"),
    )
