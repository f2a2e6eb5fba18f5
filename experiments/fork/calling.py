# SPDX-License-Identifier: GPL-2.0-only
"""A row that is a fork as a call: all that fork() does of memory, of a process as real ones are.

VMAs, their counters and what is promised are predicted (oracle/address_space.py). Which frame is
where is the allocator's choice, so the runner compares all of the node with the rules, as where
pages are freed; calling/verify.c.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ream.experiment.shape import PAGE_BYTES, STRUCT_PAGE_BYTES
from ream.stage.hosted import Batch, Hosted, Planned, drawn
from ream.stage.memory import Sized
from ream.stage.native import Build
from ream.stage.runner_plan import Memory, Value, plan_file

from .address_spaces import Vma, layout
from .oracle.address_space import (
    child_counters,
    committed,
    file_vmas,
    fitting,
    images,
    parent_counters,
    placed,
)
from .rows import ForkRow

FOLDER = Path(__file__).parent / "calling"

NODE_STEP = 4 << 20
"""Unit of a node's size: a block of the allocator's largest order."""

SPARE_BYTES = 64 << 20
"""Memory of a node besides anonymous pages: slabs, page tables of two processes, reserves."""

COPIES = 2
"""Frames for each anonymous page: the parent writes to its own while the child has the old one."""

RUNNER_BYTES = STRUCT_PAGE_BYTES + 5 * 8 + 1
"""What descriptors and the runner take for each page; calling/row.h."""

CPUS = 2
"""CPUs that have the address space loaded."""

OPERATIONS = {"dup-mm": "fork", "dup-mm-faults": "faults", "dup-mm-exit": "exit"}
"""The runner's name for each operation of a row."""


@dataclass(frozen=True)
class Called:
    """One operation of one process. vma_bytes: of a VMA's object; 0: no limit is measured."""

    name: str
    operation: str
    vmas: tuple[Vma, ...]
    rounds: int = 2
    cold: bool = False
    vma_bytes: int = 0

    @property
    def nr_anon(self) -> int:
        return sum(one.nr_anon for one in fitting(self.vmas))

    @property
    def node_bytes(self) -> int:
        wanted = COPIES * self.nr_anon * PAGE_BYTES + SPARE_BYTES
        return (wanted + NODE_STEP - 1) // NODE_STEP * NODE_STEP

    def words(self, memory: Memory) -> Mapping[str, Value]:
        its = placed(fitting(self.vmas))
        return {
            "name": self.name,
            "rounds": self.rounds,
            "operation": self.operation,
            "pre_state": "cold" if self.cold else "warm",
            **{name: memory.array(words) for name, words in images(its).items()},
            "parent_counters": parent_counters(its),
            "child_counters": child_counters(its),
            "committed": committed(its),
            "file_vmas": file_vmas(its),
            "vma_bytes": self.vma_bytes,
            "nr_pages": self.node_bytes // PAGE_BYTES,
            "nr_anon": self.nr_anon,
        }


def _called(row: ForkRow, vma_bytes: int = 0) -> Called:
    assert row.layout is not None
    return Called(
        row.name,
        OPERATIONS[row.operation],
        layout(row.layout),
        row.rounds,
        cold=row.pre_state == "cold",
        vma_bytes=vma_bytes,
    )


def planned(asked: Iterable[Called], work: Path) -> Planned:
    """The plan of some operations."""
    return plan_file(FOLDER / "row.def", work, lambda memory: (one.words(memory) for one in asked))


def plan_of(rows: Sequence[ForkRow], threads: int | None, build: Build, work: Path) -> Planned:
    """The plan of an experiment's rows. threads: nothing here depends on them."""
    del threads
    vma_bytes = build.facts["sizeof.vm_area_struct"]
    return planned((_called(row, vma_bytes) for row in rows), work)


_FIRST = 0x10000
"""Page that the first VMA of an edge lies behind."""

_ANON = ("rd", "wr", "mr", "mw", "me", "ac")
_TEXT = ("rd", "ex", "mr", "mw", "me")


def _edge(*vmas: Vma) -> tuple[Vma, ...]:
    return (replace(vmas[0], gap=_FIRST), *vmas[1:])


EDGES: Mapping[str, tuple[Vma, ...]] = {
    "one": _edge(Vma(0, 16, 16, 0, 0, _ANON)),
    "untouched": _edge(Vma(0, 16, 0, 0, 0, _ANON), Vma(1, 4, 4, 0, 0, _ANON)),
    "apart": _edge(*(Vma(512 * 3, 700, 700, 0, 0, _ANON) for _ in range(6))),
    "tree": _edge(*(Vma(1, 1, at % 2, 0, 0, _ANON) for at in range(400))),
    "dontfork": _edge(
        Vma(0, 8, 8, 0, 0, _ANON), Vma(1, 8, 8, 0, 0, (*_ANON[:5], "dc", "ac")),
        Vma(1, 8, 8, 0, 0, _ANON),
    ),
    "dontfork-first-and-last": _edge(
        Vma(0, 4, 4, 0, 0, (*_ANON[:5], "dc", "ac")), Vma(1, 8, 8, 0, 0, _ANON),
        Vma(1, 4, 4, 0, 0, (*_ANON[:5], "dc", "ac")),
    ),
    "wiped": _edge(Vma(0, 8, 8, 0, 0, _ANON), Vma(1, 8, 8, 0, 0, (*_ANON, "wf"))),
    "read-only": _edge(Vma(0, 8, 8, 0, 0, ("rd", "mr", "mw", "me", "ac"))),
    "locked": _edge(Vma(0, 8, 8, 0, 0, (*_ANON[:5], "lo", "ac"))),
    "files": _edge(
        Vma(0, 40, 0, 1, 0, ("rd", "mr", "mw", "me")), Vma(0, 30, 0, 1, 40, _TEXT),
        Vma(0, 6, 6, 1, 70, ("rd", "mr", "mw", "me", "ac")), Vma(0, 9, 5, 1, 76, _ANON),
        Vma(3, 5, 0, 2, 0, ("rd", "wr", "sh", "mr", "mw", "me", "ms")),
        Vma(3, 5, 0, 2, 1, ("rd", "sh", "mr", "me", "ms")),
    ),
    "stack": _edge(Vma(0, 33, 7, 0, 0, ("rd", "wr", "mr", "mw", "me", "gd", "ac"))),
}  # fmt: skip
"""Processes that have what real ones have seldom, by name."""


def _mixed(seed: int) -> tuple[Vma, ...]:
    draw = drawn(seed)

    def vma() -> Vma:
        nr = draw.choice((1, 2, 9, draw.randint(1, 600)))
        file = draw.choice((0, 0, 1, 2, 3))
        flags = list(draw.choice((_ANON, _ANON, _TEXT, ("rd", "mr", "mw", "me", "ac"))))
        shared = file > 0 and draw.random() < 1 / 4
        if shared:
            flags = ["rd", "wr", "sh", "mr", "mw", "me", "ms"]
        flags += draw.choice(([], [], [], [], ["dc"], ["dd"]))
        if not file and not shared:
            flags += draw.choice(([], [], ["wf"]))
        nr_anon = 0 if shared or draw.random() < 1 / 3 else draw.randint(0, nr)
        offset = draw.randint(0, 50) if file else 0
        return Vma(draw.choice((1, 3, 600, 1 << 18)), nr, nr_anon, file, offset, tuple(flags))

    return tuple(vma() for _ in range(draw.choice((1, 3, 12, 40, 150))))


def _each(name: str, vmas: tuple[Vma, ...]) -> Iterator[Called]:
    for operation in OPERATIONS.values():
        yield Called(f"{name}/{operation}", operation, vmas)


def cases(build: Build, work: Path, seeds: Iterable[int], *, edges: bool) -> Iterator[Batch]:
    """Processes that have one thing each, and mixtures; of each, all that can be done."""
    del build
    named = dict(EDGES) if edges else {}
    named |= {f"mixture-{seed}": _mixed(seed) for seed in seeds}
    for name, vmas in named.items():
        yield planned(_each(name, vmas), work), CPUS


def _node_bytes(row: ForkRow) -> int:
    return _called(row).node_bytes


def needed_bytes(rows: Sequence[ForkRow], build: Build) -> int:
    """Memory a run takes: rows share the node, and each has its own notes."""
    del build
    largest = max(map(_node_bytes, rows))
    return largest + largest // PAGE_BYTES * RUNNER_BYTES


def as_it_is(row: ForkRow) -> None:
    """A recorded process has the size that it had."""
    del row


def is_call(row: ForkRow) -> bool:
    """Whether the row is a fork as a call, or what comes behind it."""
    return row.layout is not None


CALLING: Hosted[ForkRow] = Hosted(
    FOLDER,
    plan_of,
    Sized(needed_bytes, _node_bytes, as_it_is),
    cases,
    runs=is_call,
    label="calling",
)
