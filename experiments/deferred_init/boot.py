# SPDX-License-Identifier: GPL-2.0-only
"""One boot of the deferred-init experiment: what is measured is the boot itself.

The guest stands twice: before the threads that initialise its deferred pages are started, where
memblock tells what is free; and when they are through, before anything else is done. The oracle
predicts from the first what there must be at the second: every descriptor, every free list, every
counter. Then PID 1 hands on the kernel's log, whose messages have the times.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from ream.errors import ReamError
from ream.experiment import format_size
from ream.kernel.build import BUILD
from ream.kernel.image import Image
from ream.stage.guest import Guest
from ream.stage.initramfs import guest_initramfs
from ream.stage.module_facts import read_facts
from ream.stage.qemu import Accel, GuestMachine, GuestNode
from ream.stage.vm import BootableKernel, Start, boot_command
from ream.values import Value, faults

from .state import State, check, check_freed
from .zones import Layout, Zones, read_symbols

BEFORE = "page_alloc_init_late"
"""What starts a thread for each node and waits for them; mm/mm_init.c."""

AFTER = ("files_maxfiles_init", "buffer_init")
"""What it calls next; the second, should a zone be in use at the first."""

SILENCE_S = 300.0
"""The deferred pages of 64 GiB are initialised without a word, emulated."""

DEADLINE_S = 1800.0

INIT_WORDS = ("experiment=deferred-init",)

_BEGINS = re.compile(r"smpboot: Total of \d+ processors? activated")
_NODE = re.compile(r"node (?P<nid>\d+) (?:deferred pages )?initialised.* in (?P<ms>\d+)ms$")
_INIT = re.compile(r"Run /init as init process")


@dataclass(frozen=True)
class Shape:
    """What a guest is given; rows of one shape share their boots."""

    memory_bytes: int
    nodes: int = 1
    cpus: int = 1
    """That are brought up; each node's threads are as many as its CPUs."""
    present: int = 1
    """That there are: what boot reserves of memory depends on them."""

    @property
    def name(self) -> str:
        """Name for use in a file name: 16GiB-2-nodes-4-cpus."""
        words = [format_size(self.memory_bytes).replace(" ", "")]
        words += [f"{self.nodes}-nodes"] if self.nodes > 1 else []
        words += [f"{self.cpus}-of-{self.present}-cpus"] if self.present > 1 else []
        return "-".join(words)

    def machine(self, accel: Accel, *, icount: bool, options: Sequence[str]) -> GuestMachine:
        """The guest's machine: memory and CPUs in equal parts, as far as they go round."""
        return GuestMachine(
            accel=accel,
            icount=icount,
            cpus=self.present,
            memory_bytes=self.memory_bytes,
            nodes=self._machine_nodes() if self.nodes > 1 else (),
            options=tuple(options),
        )

    def _machine_nodes(self) -> tuple[GuestNode, ...]:
        # In turns, so that the CPUs that are brought up, the first ones, are in all nodes.
        cpus = [range(number, self.present, self.nodes) for number in range(self.nodes)]
        return tuple(
            GuestNode(self.memory_bytes // self.nodes, ",".join(map(str, its))) for its in cpus
        )

    def kernel_words(self) -> tuple[str, ...]:
        """What the kernel is told.

        A kernel that knows no deferred_init_threads= hands it to PID 1, which does not mind.
        """
        words = ["nokaslr"]  # symbols are where System.map has them
        if self.present > 1:
            words += [f"maxcpus={self.cpus}", f"deferred_init_threads={self.cpus}"]
        return tuple(words)


class Record(Value):
    """A message of the kernel's log."""

    time_us: int
    text: str


@dataclass(frozen=True)
class Times:
    """What the kernel's log says of a boot; the clock is the guest's."""

    init_ns: int
    """From the end of starting CPUs to the last node's message."""
    boot_ns: int
    """From the first reading of the clock to PID 1."""
    message_ms: int
    """The most that any node's own message says; its clock is jiffies."""


@dataclass(frozen=True)
class Booted:
    """What came of one boot."""

    times: Times
    states: tuple[State, ...]

    @property
    def nr_pages(self) -> int:
        return sum(state.nr_pages for state in self.states)


def layout_of(image: Image, work: Path) -> Layout:
    """Where this kernel has what; raises what reading its files raises."""
    symbols = read_symbols(image.tree / BUILD / "System.map")
    return Layout(symbols, read_facts(image.modules["memmap"], work))


def deferred_initramfs(image: Image, *, init: Path, work: Path) -> Path:
    """What a guest of this experiment boots into: PID 1, and nothing else.

    Raises what packing raises.
    """
    return guest_initramfs(image, "deferred", init=init, work=work)


def plan_deferred_boot(
    machine: GuestMachine,
    kernel: BootableKernel,
    shape: Shape,
    *,
    append: Sequence[str],
    work: Path,
) -> tuple[str, ...]:
    """The QEMU command of one boot; append: the user's words for the kernel."""
    append = (*shape.kernel_words(), *append)
    return boot_command(machine, kernel, INIT_WORDS, append=append, work=work, debugged=True)


def run_deferred_boot(start: Start, shape: Shape, layout: Layout) -> Iterator[Booted]:
    """Boot once; yield what came of it. Nothing of QEMU outlives this iterator.

    Raises VerificationFailed if memory is not as predicted, ReamError if the guest fails, says
    what it must not, or goes silent.
    """
    with start.guest(
        INIT_WORDS,
        kernel_words=shape.kernel_words(),
        deadline_s=DEADLINE_S,
        silence_s=SILENCE_S,
        debugged=True,
    ) as guest:
        states = _states(guest, layout, start.log)
        guest.leave()
        records = [_record(message["kmsg"]) for message in guest.messages() if "kmsg" in message]
    yield Booted(read_times(records, {state.node.nid for state in states}), states)


def _states(guest: Guest, layout: Layout, log: Path) -> tuple[State, ...]:
    """Let the guest run through page_alloc_init_late(); what it has left there."""
    zones = Zones(guest, layout)
    guest.run_to(layout.symbol(BEFORE))
    nodes = zones.deferred_nodes()
    if not nodes:
        raise ReamError(f"{log.name}: no node has deferred pages; give the guest more memory")
    nr_freed = zones.nr_freed()
    for place in AFTER:
        guest.run_to(layout.symbol(place))
        if all(zones.at_rest(node) for node in nodes):
            check_freed(zones, nodes, nr_freed)
            return tuple(check(zones, node) for node in nodes)
    raise ReamError(f"{log.name}: a zone was in use whenever the guest stood")


def _record(value: Any) -> Record:
    try:
        return Record.model_validate(value)
    except ValidationError as cause:
        raise ReamError(f"the guest said what is no message: {faults('kmsg', cause)}") from cause


def read_times(records: Iterable[Record], nids: set[int]) -> Times:
    """The times of a boot whose nodes `nids` have deferred pages, from the kernel's log.

    Raises ReamError if a message is missing.
    """
    begins = init = None
    done: dict[int, tuple[int, int]] = {}
    for record in records:
        if _BEGINS.match(record.text):
            begins = record.time_us
        elif found := _NODE.match(record.text):
            done[int(found["nid"])] = record.time_us, int(found["ms"])
        elif _INIT.match(record.text):
            init = record.time_us
    if begins is None or init is None or not nids <= done.keys():
        raise ReamError(
            "the kernel's log lacks a message: that all CPUs are up, that each node's deferred"
            f" pages are initialised ({sorted(nids - done.keys())}), or that init is run"
        )
    lasts_us, messages_ms = zip(*(done[nid] for nid in nids), strict=True)
    return Times(
        init_ns=(max(lasts_us) - begins) * 1000,
        boot_ns=init * 1000,
        message_ms=max(messages_ms),
    )
