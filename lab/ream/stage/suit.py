# SPDX-License-Identifier: GPL-2.0-only
"""Which rows the CPUs of this machine can run, where rows differ in what works at once."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from types import MappingProxyType
from typing import TypeVar

from ream.counted import counted
from ream.experiment.shape import RowBase
from ream.stage.native import Suited

R = TypeVar("R", bound=RowBase)

SHARED_CPUS = 2
"""Most workers for each real CPU; with more, a time says more of the scheduler than of them."""


_ANOTHER: ContextVar[int | None] = ContextVar("another", default=None)


@contextmanager
def on_cpus(number: int) -> Iterator[None]:
    """As long as the block, what is suited and planned is for a machine of so many CPUs."""
    token = _ANOTHER.set(number)
    try:
        yield
    finally:
        _ANOTHER.reset(token)


def nr_cpus() -> int:
    """CPUs that this process, and so a runner, may use; or those of the machine that is meant."""
    return _ANOTHER.get() or len(os.sched_getaffinity(0))


def nr_nodes(root: Path = Path("/")) -> int:
    """Nodes that have a CPU which this process may use; 1 where the kernel names none.

    Of another machine than this one it is 1, too: all of its CPUs count as one node.
    """
    if _ANOTHER.get():
        return 1
    usable = os.sched_getaffinity(0)
    nodes = (root / "sys/devices/system/node").glob("node[0-9]*")
    return max(1, sum(any((node / f"cpu{n}").exists() for n in usable) for node in nodes))


def suit_rows(
    rows: Iterable[R],
    workers: Callable[[R], int],
    *,
    what: str,
    most: int | None = None,
    cpus: int | None = None,
    needless: Mapping[str, str] = MappingProxyType({}),
    remarks: Mapping[str, tuple[str, ...]] = MappingProxyType({}),
) -> Suited:
    """Which rows are run here, and what has to be said of what works at once in them.

    workers: how many do in a row; what: the word for one, as "thread". most: of them in any row.
    cpus: instead of nr_cpus(). needless: by name, why a row is not run though it could be.
    remarks: by name, what else there is to say of a row. A row with more than SHARED_CPUS workers
    for each CPU is not run; one whose workers share CPUs gets no verdict: what was published had
    a CPU, or a channel, for each.
    """
    cpus = cpus or nr_cpus()
    skipped: dict[str, str] = {}
    said: dict[str, tuple[str, ...]] = {}
    ran: dict[str, int] = {}
    fit: list[R] = []
    for row in rows:
        number = workers(row)
        shared = None
        if number > cpus:
            shared = f"oversubscribed: {counted(number, what)} shared {counted(cpus, 'CPU')}"
        if number > SHARED_CPUS * cpus:
            skipped[row.name] = f"{counted(number, what)} on {counted(cpus, 'CPU')}"
        elif row.name in needless:
            skipped[row.name] = needless[row.name]
        elif most is not None and number > most:
            skipped[row.name] = f"{counted(number, what)}, and --threads is {most}"
        else:
            ran[row.name] = number
            said[row.name] = (*remarks.get(row.name, ()), *((shared,) if shared else ()))
            fit.append(row if shared is None else _without_verdict(row, shared))
    crowded = [name for name, number in ran.items() if number > cpus]
    told = (
        f"{', '.join(crowded)}: several {what}s shared a CPU, so these times do not say what more"
        f" than {counted(cpus, 'CPU')} would do"
    )
    return Suited(
        rows=tuple(fit),
        cpus=max([cpus, *ran.values()]),
        skipped=skipped,
        remarks={name: texts for name, texts in said.items() if texts},
        warnings=(told,) if crowded else (),
    )


def _without_verdict(row: R, reason: str) -> R:
    if not row.published or row.no_verdict is not None:
        return row
    return row.model_copy(update={"no_verdict": reason})
