# SPDX-License-Identifier: GPL-2.0-only
"""A deferred-init row, as the native runner and the oracle need it."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ream.counted import counted
from ream.errors import BadUsage
from ream.experiment.section import SECTION_BYTES
from ream.experiment.shape import PAGE_BYTES
from ream.oracle.memmap import Facts, page_links
from ream.stage.hosted import Planned
from ream.stage.memory import Sized
from ream.stage.native import Build, Suited
from ream.stage.runner_plan import Memory, Value, plan_file
from ream.stage.suit import nr_cpus, nr_nodes, suit_rows

from .buddy import (
    DeferredNode,
    Range,
    blocks,
    grown,
    image_chunks,
    managed_pages,
    page_dtype,
    usage_bytes,
)
from .layout import NodeLayout, make_nodes
from .rows import LEAST_SECTIONS, DeferredInitRow

FOLDER = Path(__file__).parent / "native"
"""This experiment's glue and runner."""

MOST_NODES = 2
"""DEFERRED_MOST_NODES; native/deferred_init.h."""

SUBSECTION_MAP_BYTES = 8
"""A bit for each 2 MiB of a section; the map lies before the bits of pageblocks."""

NO_GROWTH = 255
"""In a plan, where an order would be."""

# --- Rows ------------------------------------------------------------------------------


@dataclass(frozen=True)
class NativeRow:
    """One row as the runner does it; threads: of each node."""

    name: str
    nodes: tuple[NodeLayout, ...]
    threads: int
    rounds: int
    pre_state: str = "evicted"
    grow_order: int | None = None
    limits: bool = True
    watched: bool = False
    """Whether each lock taken is looked at, which takes time."""
    boot: bool = False
    """Whether all of a boot is run, and not the threads alone."""
    init_on_free: bool = False
    """Whether free pages are zeroed; there is memory behind all frames then."""

    @property
    def map_pfn(self) -> int:
        return self.nodes[0].first_deferred_pfn

    @property
    def nr_map_pages(self) -> int:
        return self.nodes[-1].map_end_pfn - self.map_pfn

    @property
    def cpus(self) -> int:
        """CPUs of the hosted machine that it needs."""
        return len(self.nodes) * self.threads


def threads_of(
    row: DeferredInitRow,
    most: int | None = None,
    *,
    cpus: int | None = None,
    nodes: int | None = None,
) -> int:
    """Threads of each node; a percentage is rounded, as in the published tables.

    most: no more than these in any row. cpus, nodes: of a machine, instead of this one's.
    """
    nodes = nodes or (1 if cpus else nr_nodes())
    of_node = (cpus or nr_cpus()) // max(row.nodes, nodes)
    threads = row.threads or of_node
    if row.node_pct is not None:
        threads = round(row.node_pct * of_node / 100)
    return max(1, min(threads, most or threads))


def native_row(row: DeferredInitRow, threads: int | None = None) -> NativeRow:
    """A row as the runner does it; threads caps the CPUs of each node."""
    nodes = make_nodes(row.nodes, row.memory_bytes // PAGE_BYTES, row.layout)
    boot = row.measure == "boot"
    if boot:
        nodes = booted(nodes)
    return NativeRow(
        name=row.name,
        nodes=nodes,
        threads=threads_of(row, threads),
        rounds=row.rounds,
        pre_state=row.pre_state,
        grow_order=row.grow_order,
        boot=boot,
    )


def booted(nodes: Iterable[NodeLayout]) -> tuple[NodeLayout, ...]:
    """The same, of which nothing is initialised: what threads find is what a boot leaves them."""
    return tuple(replace(one, first_deferred_pfn=one.start_pfn) for one in nodes)


def suit(
    rows: Iterable[DeferredInitRow],
    most: int | None = None,
    *,
    cpus: int | None = None,
    nodes: int | None = None,
) -> Suited:
    """Which rows are run here, and what has to be said of their threads.

    most: threads in any row. cpus, nodes: of a machine, instead of this one's. Rows that come to
    the same threads run once; what would have more than SHARED_CPUS threads for each CPU does not
    run at all. Rows whose threads share CPUs get no verdict: what was published had a CPU for each
    thread.
    """
    nodes = nodes or (1 if cpus else nr_nodes())
    cpus = cpus or nr_cpus()
    first: dict[DeferredInitRow, str] = {}
    needless: dict[str, str] = {}
    remarks: dict[str, tuple[str, ...]] = {}
    rows = tuple(rows)
    for row in rows:
        threads = threads_of(row, most, cpus=cpus, nodes=nodes)
        same = first.setdefault(_alike(row, threads), row.name)
        if same != row.name:
            needless[row.name] = f"here that is {counted(threads, 'thread')}, the same as {same}"
        elif threads != row.threads:
            each = " of each node" if row.nodes > 1 else ""
            remarks[row.name] = (f"{counted(threads, 'thread')}{each}",)
        elif threads > 1 and row.nodes > 1 and cpus <= row.nodes:
            taken = f"one thread for each of {row.nodes} nodes takes all of {counted(cpus, 'CPU')}"
            remarks[row.name] = (f"{taken} already: more of them have nothing to gain here",)
    return suit_rows(
        rows,
        lambda row: row.nodes * threads_of(row, most, cpus=cpus, nodes=nodes),
        what="thread",
        cpus=cpus,
        needless=needless,
        remarks=remarks,
    )


def _alike(row: DeferredInitRow, threads: int) -> DeferredInitRow:
    """The row without what makes no difference to a run."""
    alike = {"name": "_", "rounds": 1, "threads": threads, "node_pct": None}
    return row.model_copy(update={**alike, "published": None, "differs": (), "no_verdict": None})


# --- What the runner is given ----------------------------------------------------------


def held_descriptors(
    node: DeferredNode,
    facts: Facts,
    map_address: int,
    first_pfn: int,
    nr_pages: int,
    *,
    early: Iterable[tuple[int, int]] = (),
) -> NDArray[np.uint8]:
    """Reserved memory and holes, initialised before: plain pages that must not be allocated.

    early: first frame and order of blocks among them that are free. They are on no list here: code
    that wrongly takes one off a list changes it, and a count.
    Source: init_reserved_page(), reserve_bootmem_region() and init_unavailable_range(),
    mm/mm_init.c of 6.12.
    """
    pages = np.zeros(nr_pages, page_dtype(facts))
    pages["flags"] = page_links(facts, node.nid, node.zone_index(facts)) | 1 << facts["PG_reserved"]
    pfns = np.arange(first_pfn, first_pfn + nr_pages, dtype=np.uint64)
    pages["lru_next"] = pages["lru_prev"] = (
        map_address + pfns * facts["sizeof.page"] + facts["page.lru"]
    )
    pages["page_type"] = 0xFFFFFFFF
    pages["_refcount"] = 1
    for pfn, order in early:
        its = pages[max(pfn - first_pfn, 0) : max(pfn + (1 << order) - first_pfn, 0)]
        its["flags"] ^= its["flags"] & np.uint64(1 << facts["PG_reserved"])
        its["_refcount"] = 0
        if first_pfn <= pfn < first_pfn + nr_pages:
            its["page_type"][0], its["private"][0] = facts["PGTY_buddy"], order
    return pages.view(np.uint8)


def _held_ranges(node: DeferredNode, first: int, last: int) -> Iterator[Range]:
    edges = [first, *chain.from_iterable(node.free), last]
    return ((low, high) for low, high in zip(edges[::2], edges[1::2], strict=True) if low < high)


class _Files:
    """A geometry's predictions, made once and given to every row that has it."""

    def __init__(self, memory: Memory, build: Build) -> None:
        self._memory = memory
        self._build = build
        self._made: dict[tuple[NodeLayout, ...], Mapping[str, Value]] = {}

    def words(self, nodes: tuple[NodeLayout, ...]) -> Mapping[str, Value]:
        """What a plan's line says of these nodes."""
        if nodes not in self._made:
            self._made[nodes] = self._make(nodes, len(self._made) + 1)
        return self._made[nodes]

    def _make(self, layouts: tuple[NodeLayout, ...], number: int) -> Mapping[str, Value]:
        facts = self._build.facts
        nodes = [layout.node(nid, facts) for nid, layout in enumerate(layouts)]
        # Descriptors begin with what is deferred; those of later nodes, with the node.
        firsts = [layouts[0].first_deferred_pfn, *(one.start_pfn for one in layouts[1:])]
        lasts = [*firsts[1:], layouts[-1].map_end_pfn]
        parts = list(zip(nodes, firsts, lasts, strict=True))
        early = [block for one in layouts for block in one.early_blocks]
        return {
            "layout": number,
            "ranges": self._memory.write("ranges", (plan_ranges(layouts).tobytes(),)),
            "held": self._memory.write(
                "held",
                (
                    np.array(list(_held_ranges(node, first, last)), "<u8").tobytes()
                    for node, first, last in parts
                ),
            ),
            "blocks": self._memory.write(
                "blocks", (_blocks(node, facts).tobytes() for node in nodes)
            ),
            "image": self._memory.write("image", self._image(parts, early)),
            "usage": self._memory.write("usage", self._usage(parts)),
            "managed": _padded(map(managed_pages, nodes), MOST_NODES),
        }

    def _image(
        self, parts: Sequence[tuple[DeferredNode, int, int]], early: Sequence[tuple[int, int]]
    ) -> Iterator[memoryview]:
        facts = self._build.facts
        base = self._build.addresses["map"] - parts[0][1] * facts["sizeof.page"]
        for node, first, last in parts:
            held = partial(held_descriptors, node, facts, base, early=early)
            for chunk in image_chunks(node, facts, base, held, first=first, last=last):
                yield chunk.data

    def _usage(self, parts: Iterable[tuple[DeferredNode, int, int]]) -> Iterator[bytes]:
        facts = self._build.facts
        per_section = facts["PAGES_PER_SECTION"]
        for node, first, _ in parts:
            # One that two nodes share is the first one's.
            early = node.first_deferred_pfn // per_section - -(-first // per_section)
            yield bytes(early * facts["sizeof.usage"])
            usage = usage_bytes(node, facts)
            yield _with_subsections(usage, facts) if _is_booted(node) else usage


def _is_booted(node: DeferredNode) -> bool:
    return node.first_deferred_pfn == node.start_pfn


def _with_subsections(usage: bytes, facts: Facts) -> bytes:
    """The same areas of sections all of whose subsections are there.

    Source: sparse_init_subsection_map(), mm/sparse.c.
    """
    areas = np.frombuffer(usage, np.uint8).reshape(-1, facts["sizeof.usage"]).copy()
    end = facts["usage.pageblock_flags"]
    areas[:, end - SUBSECTION_MAP_BYTES : end] = 0xFF
    return areas.tobytes()


def _padded(numbers: Iterable[int], length: int) -> list[int]:
    given = list(numbers)
    return given + [0] * (length - len(given))


def plan_ranges(layouts: Iterable[NodeLayout]) -> NDArray[np.uint64]:
    """Every range as a struct deferred_range; native/deferred_init.h."""
    found = [
        (4 * nid + kind, start, end)
        for nid, layout in enumerate(layouts)
        for kind, start, end in (
            *_memory_kinds(layout.memory),
            *((1, start, end) for start, end in layout.reserved),
        )
    ]
    return np.array(found, "<u8")


def _memory_kinds(memory: Iterable[Range]) -> Iterator[tuple[int, int, int]]:
    """Give adjacent ranges different kinds, or memblock would merge them into one."""
    kind, at = 0, None
    for start, end in memory:
        kind = 2 - kind if start == at else 0
        yield kind, start, end
        at = end


def _blocks(node: DeferredNode, facts: Facts) -> NDArray[np.void]:
    """Every free block as a struct block; native/buddy.h."""
    wanted = np.dtype([("pfn", "<u8"), ("order", "<u4"), ("migratetype", "<u4")])
    return blocks(node, facts).astype(wanted)


def _words(row: NativeRow, facts: Facts, files: _Files) -> Mapping[str, Value]:
    spans = ((one.start_pfn, one.first_deferred_pfn, one.end_pfn) for one in row.nodes)
    first_pfn, grown_pages = 0, 0
    if row.grow_order is not None:
        after = grown(row.nodes[0].node(0, facts), row.grow_order, facts)
        first_pfn, grown_pages = after.first_deferred_pfn, managed_pages(after.freed)
    return {
        "name": row.name,
        "rounds": row.rounds,
        "pre_state": row.pre_state,
        "limits": row.limits,
        "nr_nodes": len(row.nodes),
        "nr_cpus": row.threads,
        "map_pfn": row.map_pfn,
        "nr_pages": row.nr_map_pages,
        "spans": _padded(chain.from_iterable(spans), 3 * MOST_NODES),
        "zone": row.nodes[0].node(0, facts).zone_index(facts),
        "is_boot": row.boot,
        "is_watched": row.watched,
        "init_on_free": row.init_on_free,
        "grow_order": NO_GROWTH if row.grow_order is None else row.grow_order,
        "grown_first_pfn": first_pfn,
        "grown_pages": grown_pages,
        **files.words(row.nodes),
    }


def predicted_plan(rows: Iterable[NativeRow], build: Build, work: Path) -> Planned:
    """The plan of rows, with what the oracle predicts of each geometry."""

    def words(memory: Memory) -> Iterator[Mapping[str, Value]]:
        files = _Files(memory, build)
        return (_words(row, build.facts, files) for row in rows)

    return plan_file(FOLDER / "row.def", work, words)


def _left_by_growing(row: NativeRow, facts: Facts) -> int:
    """Pages that growing does not initialise, of all nodes; only node 0 grows."""
    nodes = [layout.node(nid, facts) for nid, layout in enumerate(row.nodes)]
    gone = managed_pages(grown(nodes[0], row.grow_order or 0, facts).freed)
    return sum(map(managed_pages, nodes)) - gone


def plan_of(
    rows: Sequence[DeferredInitRow], threads: int | None, build: Build, work: Path
) -> Planned:
    """predicted_plan() of an experiment's rows.

    Raises BadUsage for a row that growing leaves nothing to time of.
    """
    native = [native_row(row, threads) for row in rows]
    for row in native:
        if row.grow_order is not None and not _left_by_growing(row, build.facts):
            raise BadUsage(
                f"row {row.name}: an allocation of order {row.grow_order} initialises all of its"
                " memory, and nothing is left to time; give it more memory_bytes"
            )
    return predicted_plan(native, build, work)


def needed_bytes(rows: Sequence[DeferredInitRow], build: Build) -> int:
    """Memory a run takes: the arena of the largest map, and every distinct predicted image."""
    size = build.facts["sizeof.page"]
    pages = {row.nodes: row.nr_map_pages for row in map(native_row, rows)}
    return size * (max(pages.values()) + sum(pages.values()))


def extent_bytes(row: DeferredInitRow) -> int:
    """What makes a row large."""
    return row.memory_bytes


COUNTED_BYTES = 512 << 20
"""Memory of a counted row. Early allocations leave most of it free."""


def halved(row: DeferredInitRow) -> DeferredInitRow | None:
    """The row with half its memory; None if no row may have so little."""
    nr_sections = row.memory_bytes // SECTION_BYTES // 2
    smaller = {"memory_bytes": nr_sections * SECTION_BYTES}
    return row.model_copy(update=smaller) if nr_sections >= LEAST_SECTIONS else None


SIZED: Sized[DeferredInitRow] = Sized(needed_bytes, extent_bytes, halved, COUNTED_BYTES)
