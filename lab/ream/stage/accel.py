# SPDX-License-Identifier: GPL-2.0-only
"""Whether guests run under KVM here. One is booted to tell: that /dev/kvm opens proves nothing."""

import os
import subprocess
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Literal

from ream.command import Command, last_words, require, run
from ream.errors import CannotRunHere
from ream.paths import CHECKOUT
from ream.stage.qemu import QEMU, Accel

PROBE_SOURCE = CHECKOUT / "guest" / "probe.S"
PROBE_MARK = b"ream\n"
PROBE_EXIT = 33
"""guest/probe.S: what it says, and what it makes QEMU exit with."""

PROBE_DEADLINE_S = 10.0
COMPILER_DEADLINE_S = 60.0

KVM = Path("/dev/kvm")
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")

NOT_IN_TIME = "a guest did not come up under"
"""Begins the one fault that another try may not have."""

WORKS = "works"
"""What the remembered answer holds when there is no fault."""


def choose_accel(
    asked: Literal["auto", "kvm", "tcg"], *, probe: Callable[[], str | None]
) -> tuple[Accel, str]:
    """The accelerator to use, and why.

    probe: why KVM cannot be used, or None; asked only if it matters.
    Raises CannotRunHere if KVM is asked for and cannot be used.
    """
    if asked == "tcg":
        return "tcg", "asked for"
    fault = probe()
    if fault is None:
        return "kvm", "asked for" if asked == "kvm" else "a guest boots under it"
    if asked == "kvm":
        raise CannotRunHere(f"--accel kvm: {fault}; --accel tcg needs no KVM, but emulates")
    return "tcg", fault


def kvm_fault(cache: Path) -> str | None:
    """Why KVM cannot be used, or None; asked once per boot of the host, and remembered in `cache`.

    Raises CannotRunHere if QEMU or the compiler is missing.
    """
    if not KVM.exists():
        return f"there is no {KVM}"
    if not os.access(KVM, os.R_OK | os.W_OK):
        return f"{KVM} may not be opened by this user"
    # Rights are the user's, and asked every time; what KVM can do is the host's.
    answer = cache / f"kvm-{BOOT_ID.read_text().strip()}"
    try:
        said = answer.read_text()
    except OSError:
        said = probe_guest("kvm") or WORKS
        if not said.startswith(NOT_IN_TIME):
            _remember(answer, said)
    return None if said == WORKS else said


def _remember(answer: Path, said: str) -> None:
    # Not being able to remember costs the next run ten seconds, and is no failure of this one.
    with suppress(OSError):
        _write(answer, said)


def _write(answer: Path, said: str) -> None:
    answer.parent.mkdir(parents=True, exist_ok=True)
    for old in answer.parent.glob("kvm-*"):
        old.unlink(missing_ok=True)
    with tempfile.NamedTemporaryFile("w", dir=answer.parent, delete=False) as partial:
        partial.write(said)
    Path(partial.name).rename(answer)


def probe_guest(accel: Accel) -> str | None:
    """Boot guest/probe.S, which needs no kernel; return why it did not come up, or None.

    Raises CannotRunHere if QEMU or the compiler is missing.
    """
    require(QEMU)
    require("setpriv")
    with tempfile.TemporaryDirectory(prefix="ream-probe-") as work:
        argv = _probe_command(accel, _build_probe(Path(work)))
        try:
            ended = subprocess.run(
                argv,
                cwd=work,
                env={**os.environ, "LC_ALL": "C"},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=PROBE_DEADLINE_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return f"{NOT_IN_TIME} {accel} within {PROBE_DEADLINE_S:g} s"
    if ended.returncode == PROBE_EXIT and PROBE_MARK in ended.stdout:
        return None
    words = last_words(ended.stderr.decode(errors="replace")).splitlines()[0]
    return f"a guest does not come up under {accel} ({words})"


def _build_probe(work: Path) -> Path:
    built, image = work / "probe.o", work / "probe.img"
    for argv in (
        ("gcc", "-c", str(PROBE_SOURCE), "-o", str(built)),
        ("objcopy", "-O", "binary", "--only-section=.text", str(built), str(image)),
    ):
        run(Command(argv, work, COMPILER_DEADLINE_S))
    return image


def _probe_command(accel: Accel, image: Path) -> tuple[str, ...]:
    return (
        *("setpriv", "--pdeathsig=KILL", QEMU, "-nodefaults", "-no-user-config"),
        *("-display", "none", "-no-reboot", "-serial", "stdio", "-machine", "pc", "-m", "256M"),
        *("-accel", accel, *(("-cpu", "host") if accel == "kvm" else ())),
        *("-drive", f"file={image.name},format=raw,if=ide,snapshot=on"),
        *("-device", "isa-debug-exit,iobase=0xf4,iosize=1"),
    )
