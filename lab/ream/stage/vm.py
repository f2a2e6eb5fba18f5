# SPDX-License-Identifier: GPL-2.0-only
"""A guest of the vm stage: its kernel, its command, and what it says."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from ream.errors import ReamError
from ream.stage.guest import Guest, Message, boot_in_private
from ream.stage.qemu import GuestMachine, qemu_command
from ream.values import Value, faults

Said = TypeVar("Said", bound=Value)


@dataclass(frozen=True)
class BootableKernel:
    """A bootable variant: its kernel and the initramfs with its modules."""

    image: Path
    initramfs: Path


def boot_command(
    machine: GuestMachine,
    kernel: BootableKernel,
    words: Sequence[str],
    *,
    append: Sequence[str],
    work: Path,
) -> tuple[str, ...]:
    """The QEMU command of one boot, its sockets in work.

    words: for PID 1. append: the user's words for the kernel.
    """
    return qemu_command(
        machine,
        kernel=kernel.image,
        initramfs=kernel.initramfs,
        append=append,
        init=words,
        port=work / "port",
        qmp=work / "qmp",
    )


def boot_messages(
    machine: GuestMachine,
    kernel: BootableKernel,
    words: Sequence[str],
    *,
    append: Sequence[str] = (),
    log: Path,
    deadline_s: float,
    silence_s: float,
    begun: Callable[[Guest], None] = lambda _guest: None,
) -> Iterator[Message]:
    """Boot once; yield what the guest says, as it says it. Nothing of QEMU outlives this iterator.

    Arguments of boot_command() and boot_in_private(). begun: told of the guest as soon as there is
    one. Raises what Guest.messages() raises.
    """
    with boot_in_private(
        lambda work: boot_command(machine, kernel, words, append=append, work=work),
        log=log,
        deadline_s=deadline_s,
        silence_s=silence_s,
    ) as guest:
        begun(guest)
        yield from guest.messages()


def said_as(kind: type[Said], said: Any, name: str) -> Said:
    """What a guest said, as a value of a kind; raises ReamError with every fault of it."""
    try:
        return kind.model_validate(said)
    except ValidationError as cause:
        raise ReamError(
            f"the guest said something that is no sample: {faults(name, cause)}"
        ) from cause
