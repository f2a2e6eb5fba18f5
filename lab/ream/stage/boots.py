# SPDX-License-Identifier: GPL-2.0-only
"""Many boots, a few of them at a time: what counts instructions does not mind a neighbour."""

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

from ream.errors import ReamError
from ream.stage.guest import Guest
from ream.stage.qemu import Machine
from ream.stage.vm import Checked, Device, Kernel, run_boot


@dataclass(frozen=True)
class Boot:
    """One boot, as planned."""

    variant: str
    launch: int
    device: Device
    binds: int
    machine: Machine
    kernel: Kernel
    append: tuple[str, ...]
    log: Path


Event = tuple[Boot, Checked | BaseException | None]


def run_boots(boots: Sequence[Boot], *, at_once: int) -> Iterator[tuple[Boot, Checked | None]]:
    """Every bind of every boot as it is checked, and None when a boot has come to its end.

    Boots begin in the order given. The first failure ends the others; so does leaving the
    iterator, and then no guest is left. Raises what run_boot() raises, with the boot's name.
    """
    crew = _Crew(boots)
    threads = [threading.Thread(target=crew.work, daemon=True) for _ in range(at_once)]
    for thread in threads:
        thread.start()
    try:
        left = len(boots)
        while left:
            boot, event = crew.events.get()
            if isinstance(event, ReamError):
                raise type(event)(f"{boot.variant}, {boot.device.name}: {event}") from event
            if isinstance(event, BaseException):
                raise event
            left -= event is None
            yield boot, event
    finally:
        crew.end()
        for thread in threads:
            thread.join()


class _Crew:
    """What the threads share. Only `events` leads back to the thread that began them."""

    def __init__(self, boots: Sequence[Boot]) -> None:
        self.events: SimpleQueue[Event] = SimpleQueue()
        self._waiting = iter(boots)
        self._guests: set[Guest] = set()
        self._ended = False
        self._lock = threading.Lock()  # of the three above

    def work(self) -> None:
        while (boot := self._next()) is not None:
            try:
                self._run(boot)
            except BaseException as error:  # noqa: BLE001 (it goes to the thread that waits)
                self.events.put((boot, error))
                return
            self.events.put((boot, None))

    def end(self) -> None:
        """Kill every guest; no other begins."""
        with self._lock:
            self._ended = True
            for guest in self._guests:
                guest.kill()

    def _next(self) -> Boot | None:
        with self._lock:
            return None if self._ended else next(self._waiting, None)

    def _run(self, boot: Boot) -> None:
        running = run_boot(
            boot.machine,
            boot.kernel,
            boot.device,
            boot.binds,
            append=boot.append,
            log=boot.log,
            begun=self._begun,
        )
        for checked in running:
            self.events.put((boot, checked))

    def _begun(self, guest: Guest) -> None:
        with self._lock:
            self._guests.add(guest)
            if self._ended:  # meanwhile: end() has not seen this one
                guest.kill()
