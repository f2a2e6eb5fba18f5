# SPDX-License-Identifier: GPL-2.0-only
"""One boot of zone-device: a device made, bound and bound again; its map checked every time.

The guest says which calls of memmap_init_zone_device() it saw, with their arguments and times;
the memory that holds the map is read, that range alone; the oracle predicts every byte of it from
the numbers of that kernel's own build.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from ream.count.guest import Counted, together
from ream.counted import counted
from ream.errors import ReamError, VerificationFailed
from ream.experiment import PAGE_BYTES
from ream.oracle.memmap import DeviceRange, Facts, MapPlace, first_difference
from ream.stage.guest import Guest
from ream.stage.pmem import PMEM_SYSTEM_BYTES, pmem_word
from ream.stage.qemu import GuestMachine
from ream.stage.vm import BootableKernel, Start, boot_command
from ream.values import Value, faults

from .rows import ZoneDeviceRow

SILENCE_S = 180.0
"""The longest thing a guest does without a word is one bind under TCG."""

DEADLINE_S = 3600.0


@dataclass(frozen=True)
class Device:
    """What a boot binds; rows of the same device share their boots."""

    size_bytes: int
    order: int
    type: str
    altmap: bool
    in_namespace: bool
    config: tuple[str, ...] = ()
    cmdline: tuple[str, ...] = ()
    chunk_bytes: int | None = None
    also: tuple[str, ...] = ()
    node: str = "own"

    @classmethod
    def of(cls, row: ZoneDeviceRow) -> "Device":
        return cls(
            row.device_bytes,
            row.order,
            row.type,
            row.altmap,
            row.in_namespace,
            row.config,
            row.cmdline,
            row.chunk_bytes,
            row.also,
            row.node,
        )

    @property
    def nr_calls(self) -> int:
        """Calls of memmap_init_zone_device() in a bind."""
        return self.size_bytes // (self.chunk_bytes or self.size_bytes)

    @property
    def name(self) -> str:
        """Name for use in a file name: fsdax, devdax-ram, private-chunks-list."""
        words = [self._kind, *self.config, *(word.partition("=")[0] for word in self.cmdline)]
        words += ["chunks"] if self.chunk_bytes else []
        words += [*self.also, *(["no-node"] if self.node == "none" else [])]
        return "-".join(words)

    @property
    def _kind(self) -> str:
        if not self.in_namespace:
            return self.type.lower().replace("_", "-")
        if self.type == "FS_DAX":
            return "fsdax"
        return "devdax" if self.altmap else "devdax-ram"

    @property
    def least_bytes(self) -> int:
        """Memory that a guest with it needs; where it has none of its own, only for its map."""
        return PMEM_SYSTEM_BYTES + (self.size_bytes if self.in_namespace else 0)

    def kernel_words(self) -> tuple[str, ...]:
        """What the kernel must be told: where the emulated pmem is, and what a row wants."""
        pmem = (pmem_word(self.size_bytes),) if self.in_namespace else ()
        return (*pmem, *self.cmdline)

    def init_words(self, binds: int) -> tuple[str, ...]:
        """What PID 1 is told; guest/init.c reads it."""
        words = {"experiment": "zone-device", "size": str(self.size_bytes), "binds": str(binds)}
        if self.in_namespace:
            words["device"] = "fsdax" if self.type == "FS_DAX" else "devdax"
            words["map"] = "dev" if self.altmap else "mem"
            # fsdax has base pages whatever its alignment; 2 MiB is ndctl's own choice.
            words["align"] = str((PAGE_BYTES << self.order) if self.type == "GENERIC" else 2 << 20)
        else:
            words |= {"device": "memremap", "type": self.type, "order": str(self.order)}
            words |= {"chunk": str(self.chunk_bytes or 0), "list": str(int("list" in self.also))}
            words |= {"own_node": str(int(self.node == "own"))}
        return tuple(f"{name}={value}" for name, value in words.items())


class Call(Value):
    """One call of memmap_init_zone_device(): its arguments, what they lead to, and its time."""

    start_pfn: int
    nr_pages: int
    nid: int
    pgmap: int
    type: int
    order: int
    altmap: bool
    altmap_base_pfn: int
    altmap_reserve: int
    altmap_free: int
    map: int
    early: bool
    time_ns: int
    window: int = 0
    """The name by which a plugin that counts knows the call."""

    @property
    def skip_pages(self) -> int:
        """Pages at the start that the call leaves alone: they hold the map itself."""
        if not self.altmap:
            return 0
        return self.altmap_base_pfn + self.altmap_reserve + self.altmap_free - self.start_pfn

    @property
    def reserve(self) -> int:
        """Skipped pages whose descriptors nothing writes: the altmap's reserve."""
        return self.altmap_base_pfn + self.altmap_reserve - self.start_pfn if self.altmap else 0


class Bind(Value):
    """What the guest says after it has bound the device, with the map in place."""

    number: int
    calls: tuple[Call, ...]
    message: str | None
    bind_ns: int
    unbind_ns: int | None


@dataclass(frozen=True)
class Checked:
    """One bind whose map was compared with the oracle's, all bytes."""

    bind: Bind
    nr_bytes: int
    """Bytes of map that its calls wrote."""
    counted: Counted | None = None
    """What the kernel did in its calls; None if it was not counted."""

    @property
    def init_ns(self) -> int:
        """That all its calls took."""
        return sum(call.time_ns for call in self.bind.calls)


def plan_boot(
    machine: GuestMachine,
    kernel: BootableKernel,
    device: Device,
    binds: int,
    *,
    append: Sequence[str],
    work: Path,
) -> tuple[str, ...]:
    """The QEMU command of one boot; append: the user's words for the kernel."""
    append = (*device.kernel_words(), *append)
    return boot_command(machine, kernel, device.init_words(binds), append=append, work=work)


def run_boot(start: Start, device: Device, binds: int) -> Iterator[Checked]:
    """Boot once; yield every bind as it is checked. Nothing of QEMU outlives this iterator.

    Raises VerificationFailed if memory is not as predicted, ReamError if the guest fails, says
    what it must not, or goes silent.
    """
    facts: Facts = {}
    seen = 0
    with start.guest(
        device.init_words(binds),
        kernel_words=device.kernel_words(),
        deadline_s=DEADLINE_S,
        silence_s=SILENCE_S,
    ) as guest:
        for message in guest.messages():
            if "facts" in message:
                facts = _facts(message["facts"])
            elif "bind" in message:
                checked = _check(guest, _bind(message["bind"]), device, facts)
                calls = (start.counted(call.window) for call in checked.bind.calls)
                yield replace(checked, counted=together(calls))
                seen += 1
                guest.answer("next")
    if seen != binds:
        raise ReamError(
            f"{start.log.name}: the guest bound the device {counted(seen, 'time')}, not {binds}"
        )


def _facts(value: object) -> Facts:
    if not isinstance(value, Mapping) or not all(type(n) is int for n in value.values()):
        raise ReamError(f"the guest's facts are no numbers: {value!r:.80}")
    return dict(value)


def _bind(value: Any) -> Bind:
    try:
        return Bind.model_validate({**value, "calls": tuple(value["calls"])})
    except (ValidationError, TypeError, KeyError) as cause:
        said = faults("bind", cause) if isinstance(cause, ValidationError) else cause
        raise ReamError(f"the guest said something that is no bind: {said}") from cause


def _check(guest: Guest, bind: Bind, device: Device, facts: Facts) -> Checked:
    """Compare the map of one bind with the oracle's, all bytes."""
    if len(bind.calls) != device.nr_calls:
        raise ReamError(
            f"bind {bind.number}: memmap_init_zone_device() was called"
            f" {counted(len(bind.calls), 'time')}, not {device.nr_calls}"
        )
    nr_bytes = sum(_check_call(guest, bind.number, call, device, facts) for call in bind.calls)
    return Checked(bind, nr_bytes)


def _check_call(guest: Guest, number: int, call: Call, device: Device, facts: Facts) -> int:
    """Compare what one call has written; how many bytes that is."""
    asked = (device.order, facts[f"MEMORY_DEVICE_{device.type}"], device.altmap)
    if (call.order, call.type, call.altmap) != asked:
        raise ReamError(
            f"bind {number}: the kernel made a pagemap of order {call.order}, type "
            f"{call.type}, altmap {call.altmap}; asked was for {asked}"
        )
    pages = DeviceRange(
        start_pfn=call.start_pfn,
        nr_pages=call.nr_pages,
        skip_pages=call.skip_pages,
        order=call.order,
        type=device.type,
        early_pages=call.nr_pages if call.early else 0,
        nid=call.nid,
    )
    place = MapPlace(map=call.map, pgmap=call.pgmap, poison=0, aliased=True)
    with guest.memory(call.map, pages.map_bytes(facts), facts.get("TTBR1_EL1")) as image:
        wrong = first_difference(image, pages, facts, place, reserve=call.reserve)
    if wrong is not None:
        size = facts["sizeof.page"]
        raise VerificationFailed(
            f"bind {number} of {device.name}: byte {wrong % size} of the struct page of pfn "
            f"{call.start_pfn + wrong // size:#x} is not as predicted"
        )
    return pages.nr_compounds * pages.written_per_compound(facts) * facts["sizeof.page"]
