# SPDX-License-Identifier: GPL-2.0-only
"""A guest of the vm stage: its kernel, its command line and its messages."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from ream.count.guest import Counted, KernelCounter
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
    counter: KernelCounter | None = None
    """Counter of its functions in guests that count instructions; None: nothing is counted."""


def boot_command(
    machine: GuestMachine,
    kernel: BootableKernel,
    words: Sequence[str],
    *,
    append: Sequence[str],
    work: Path,
    debugged: bool = False,
    more: Sequence[str] = (),
) -> tuple[str, ...]:
    """Return the QEMU command of one boot, with its sockets in work.

    words: arguments of PID 1. append: the user's kernel parameters. debugged: the guest is stopped
    until a debugger lets it run. more: options of QEMU, before the user's.
    """
    return qemu_command(
        machine,
        kernel=kernel.image,
        initramfs=kernel.initramfs,
        append=append,
        init=words,
        port=work / "port",
        qmp=work / "qmp",
        gdb=work / "gdb" if debugged else None,
        more=more,
    )


@dataclass(frozen=True)
class Start:
    """How one guest is started."""

    machine: GuestMachine
    kernel: BootableKernel
    log: Path
    """The file that receives the guest's console."""
    append: tuple[str, ...] = ()
    """The user's kernel parameters."""
    begun: Callable[[Guest], None] = lambda _guest: None
    """A function that is called with the guest as soon as it exists."""

    @contextmanager
    def guest(
        self,
        words: Sequence[str],
        *,
        kernel_words: Sequence[str] = (),
        deadline_s: float,
        silence_s: float,
        debugged: bool = False,
    ) -> Iterator[Guest]:
        """Boot once. Nothing of QEMU outlives the `with` block.

        words: arguments of PID 1. kernel_words: kernel parameters before the user's. Others are
        those of boot_command() and boot_in_private(). Raises what boot_in_private() raises.
        """
        append = (*kernel_words, *self.append)
        counter = self._counter
        more = () if counter is None else counter.words(self._counts)
        with boot_in_private(
            lambda work: boot_command(
                *(self.machine, self.kernel, words),
                append=append,
                work=work,
                debugged=debugged,
                more=more,
            ),
            log=self.log,
            deadline_s=deadline_s,
            silence_s=silence_s,
            debugged=debugged,
        ) as guest:
            self.begun(guest)
            yield guest

    def messages(
        self, words: Sequence[str], *, deadline_s: float, silence_s: float
    ) -> Iterator[Message]:
        """Boot once and yield the guest's messages as they come; raises what guest() raises."""
        with self.guest(words, deadline_s=deadline_s, silence_s=silence_s) as guest:
            yield from guest.messages()

    @property
    def _counter(self) -> KernelCounter | None:
        return self.kernel.counter if self.machine.icount else None

    @property
    def _counts(self) -> Path:
        return self.log.with_suffix(".counts")

    def counted(self, window: int) -> Counted | None:
        """Return the counts of the sample that a program named; None if nothing is counted.

        Raises ReamError if the plugin has no such sample.
        """
        counter = self._counter
        return None if counter is None else counter.counted(self._counts, window)


def said_as(kind: type[Said], said: Any, name: str) -> Said:
    """Validate a guest's message as a value of a kind; raises ReamError with all its faults."""
    try:
        return kind.model_validate(said)
    except ValidationError as cause:
        raise ReamError(
            f"the guest said something that is no sample: {faults(name, cause)}"
        ) from cause
