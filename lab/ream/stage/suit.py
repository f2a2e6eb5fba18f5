# SPDX-License-Identifier: GPL-2.0-only
"""Selects rows by this machine's CPUs, for rows that differ in their parallel workers."""

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
"""The most workers per real CPU; with more, times depend on the scheduler above all."""


_ANOTHER: ContextVar[int | None] = ContextVar("another", default=None)


@contextmanager
def on_cpus(number: int) -> Iterator[None]:
    """Within the block, select and plan rows for a machine with this number of CPUs."""
    token = _ANOTHER.set(number)
    try:
        yield
    finally:
        _ANOTHER.reset(token)


def nr_cpus() -> int:
    """Return the CPUs that this process, and so a runner, may use, or those set by on_cpus()."""
    return _ANOTHER.get() or len(os.sched_getaffinity(0))


def nr_nodes(root: Path = Path("/")) -> int:
    """Return the number of nodes with a CPU that this process may use; 1 if the kernel names none.

    For another machine, see on_cpus(), it is 1 as well: all of its CPUs count as one node.
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
    """Select the rows that are run here, with remarks on their parallel workers.

    workers: returns the number of workers of a row; what: the word for one, as "thread". most: the
    most workers of any row. cpus: replaces nr_cpus(). needless: why a row is not run although it
    could be, by name. remarks: further remarks on a row, by name. A row with more than SHARED_CPUS
    workers per CPU is not run. One whose workers share CPUs gets no verdict, since published values
    are for a CPU, or a channel, per worker.
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
