# SPDX-License-Identifier: GPL-2.0-only
"""Runs many boots, several at a time if they count instructions, as load does not change counts."""

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Any, ClassVar, Generic, TypeVar

from ream.errors import ReamError
from ream.stage.guest import Guest
from ream.stage.qemu import GuestMachine
from ream.stage.vm import BootableKernel, Start


@dataclass(frozen=True)
class Boot(ABC):
    """One planned boot; each experiment adds what its guests do."""

    variant: str
    launch: int
    machine: GuestMachine
    kernel: BootableKernel
    append: tuple[str, ...]
    log: Path

    says: ClassVar[Any] = Any
    """The type of the events of run(), so that they can be stored and read again."""

    @property
    def weight(self) -> float:
        """The weight of each event, and of the end, in the run's progress."""
        return 1.0

    @property
    def nr_events(self) -> int:
        """The number of events that run() yields."""
        return 1

    @property
    def what(self) -> str:
        """What distinguishes this boot in its launch."""
        return self.variant

    @property
    def title(self) -> str:
        """The boot's name in messages."""
        return f"{self.what}, launch {self.launch + 1}"

    def start(self, begun: Callable[[Guest], None]) -> Start:
        """Return how the guest is started; begun is called with the guest as soon as it exists."""
        return Start(self.machine, self.kernel, self.log, self.append, begun)

    @abstractmethod
    def run(self, start: Start) -> Iterator[object]:
        """Boot once and yield the events."""


B = TypeVar("B", bound=Boot)


def run_boots(boots: Sequence[B], *, at_once: int) -> Iterator[tuple[B, object]]:
    """Yield each boot's events as they arrive, and None when a boot has ended.

    Boots begin in the given order. The first failure, or leaving the iterator, ends all guests.
    Raises what run() raises, with the boot's title.
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
                raise type(event)(f"{boot.title}: {event}") from event
            if isinstance(event, BaseException):
                raise event
            left -= event is None
            yield boot, event
    finally:
        crew.end()
        for thread in threads:
            thread.join()


class _Crew(Generic[B]):
    """State that the threads share. Only `events` leads back to the thread that started them."""

    def __init__(self, boots: Sequence[B]) -> None:
        self.events: SimpleQueue[tuple[B, object]] = SimpleQueue()
        self._waiting = iter(boots)
        self._guests: set[Guest] = set()
        self._ended = False
        self._lock = threading.Lock()  # of the three above

    def work(self) -> None:
        while (boot := self._next()) is not None:
            try:
                for event in boot.run(boot.start(self._begun)):
                    self.events.put((boot, event))
            except BaseException as error:  # noqa: BLE001 (it goes to the thread that waits)
                self.events.put((boot, error))
                return
            self.events.put((boot, None))

    def end(self) -> None:
        """Kill every guest, and start no others."""
        with self._lock:
            self._ended = True
            for guest in self._guests:
                guest.kill()

    def _next(self) -> B | None:
        with self._lock:
            return None if self._ended else next(self._waiting, None)

    def _begun(self, guest: Guest) -> None:
        with self._lock:
            self._guests.add(guest)
            if self._ended:  # end() ran meanwhile and did not see this guest
                guest.kill()
