# SPDX-License-Identifier: GPL-2.0-only
"""A row of migrate, or of another experiment that moves folios, for native runner and oracle."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from ream.errors import ReamError
from ream.experiment.shape import PAGE_BYTES, STRUCT_PAGE_BYTES
from ream.oracle.memmap import Facts
from ream.stage.hosted import Planned
from ream.stage.memory import Sized
from ream.stage.native import Build, Suited
from ream.stage.runner_plan import Memory, Value, line, plan_file
from ream.stage.suit import suit_rows

from .engine import EngineModel, EngineRow
from .oracle.folios import (
    PAGE_PROT,
    REASONS,
    STOCK_LIMIT,
    BatchLimit,
    Migration,
    Place,
)
from .oracle.images import LIST_BYTES, State, before
from .oracle.migrate import After, deferrable, migrate
from .oracle.uniform import Kind, uniform, uniform_migration
from .rows import PMD_BYTES, MigrateRow

FOLDER = Path(__file__).parent / "native"
"""This experiment's glue and runner."""

SHUFFLE_SEED = 0x5EED
"""Seed for the order of folios in cold rows: the same for every variant, launch and run."""

LIMITS = (
    STOCK_LIMIT,
    BatchLimit(1 << 18),
    BatchLimit(512, folios=128, most_pages=4096),
)
"""Limits of a batch: stock; the published series' (HPAGE_PUD_NR); ours while a provider copies
(migrate_batch_is_full()). Where they make a difference, the plan has an answer for each."""

REASON = "SYSCALL"
"""Migrate reason of timed rows: move_pages(2)."""

VM_FLAGS = ("READ", "WRITE", "MAYREAD", "MAYWRITE", "MAYEXEC", "ACCOUNT", "SOFTDIRTY")
"""VM flags of private writable memory, without the prefix VM_."""

EVENTS = (
    *("PGMIGRATE_SUCCESS", "PGMIGRATE_FAIL"),
    *("THP_MIGRATION_SUCCESS", "THP_MIGRATION_FAIL", "THP_MIGRATION_SPLIT"),
)
"""VM events that are checked, in the order of enum migrate_event; native/migrate.h."""

STATS = ("NR_ISOLATED_ANON", "NR_ISOLATED_FILE", "NR_ANON_MAPPED", "NR_ANON_THPS")
"""Statistics that are checked, in the order of enum migrate_stat."""

FAULTS = (
    "fail_at",
    "short_at",
    "stall_at",
    "vanish_at",
    "stall_ms",
    "reorder",
    "timeout_ms",
    "keeps_writing",
    "max_seg_bytes",
    "no_results",
)
"""Faults of an engine, in the order of enum offload_fault."""

LRU_OFFSET = 8
"""Offset of folio->lru in the first descriptor; native/expect.c."""

QUEUE_OFFSET = 16
"""Offset of _deferred_list in the third descriptor; native/queue.c."""

MOST_MAPPINGS = 2
"""MIGRATE_MOST_MAPPINGS; native/migrate.h."""

Engine = Literal["serial", "threads", "dma"]


@dataclass(frozen=True)
class Case:
    """Calls of migrate_pages(), mostly one, and all that must come of it.

    after: what a kernel may answer, by its limit of a batch, as in LIMITS, or one answer where
    that makes no difference. deferrable: heads that a kernel may or may not leave to be split.
    heads: where each folio begins, in the order of the list, for plain copies
    of them; None: they are not measured. copies: whether pages are copied at all. reads: whether
    the clock stops only when all of it has been read in its new place. faults: what the software
    engine does wrong, by parameter. watched: whether it is looked at that nothing is copied before
    a flush of its entries, and folios may be split; its time says nothing then.
    """

    name: str
    migration: Migration
    before: State
    after: tuple[After, ...]
    deferrable: NDArray[np.uint32]
    engine: Engine = "serial"
    channels: int = 0
    faults: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    pre_state: str = "warm"
    rounds: int = 1
    copies: bool = True
    reads: bool = False
    flush: bool = False
    watched: bool = False
    folio_bytes: int = PAGE_BYTES
    heads: NDArray[np.uint64] | None = None
    model: EngineModel | None = None


def case_of(
    name: str,
    migration: Migration,
    facts: Facts,
    place: Place,
    *,
    engine: Engine = "serial",
    channels: int = 0,
    faults: Mapping[str, int] = MappingProxyType({}),
    rounds: int = 1,
) -> Case:
    """A case of any migration."""
    asked = [replace(migration, limit=limit) for limit in LIMITS]
    return Case(
        name=name,
        migration=migration,
        before=before(migration, facts, place),
        after=_answers(*(migrate(one, facts, place) for one in asked)),
        deferrable=deferrable(migration),
        engine=engine,
        channels=channels,
        faults=faults,
        rounds=rounds,
        watched=True,
    )


def _answers(*by_limit: After) -> tuple[After, ...]:
    """What kernels with each limit of a batch may leave; one answer where they are alike."""
    least, most = zip(*(after.batch_flushes for after in by_limit), strict=True)
    first, *others = (replace(after, batch_flushes=(min(least), max(most))) for after in by_limit)
    return (first,) if all(_are_alike(first, other) for other in others) else by_limit


def _are_alike(one: After, other: After) -> bool:
    pairs = zip(_files_of(one), _files_of(other), strict=True)
    return all(np.array_equal(a, b) for a, b in pairs) and list(_numbers_of(one)) == list(
        _numbers_of(other)
    )


def _files_of(after: After) -> tuple[NDArray[Any], ...]:
    state = after.state
    return (state.src, state.dst, *state.entries, *state.pmds, after.contents)


def _numbers_of(after: After) -> Iterator[int]:
    """Numbers that the runner compares, in the order of enum number; native/expect.c."""
    yield from (after.ret, after.nr_succeeded)
    yield from (after.events[name] for name in EVENTS)
    for name in STATS:
        yield from after.node_stats[name]
    yield from (*after.rss_after, 0)[:2]
    yield from (int(space in after.noted) for space in range(2))
    yield from after.nr_anon
    yield from (after.nr_allocated, after.nr_put, after.nr_freed, after.nr_added)
    yield from (after.nr_drained, after.nr_poison_reports)
    yield from (*after.batch_flushes, *after.single_flushes)


# --- What the runner is given ----------------------------------------------------------


def _list_words(head: int, links: Sequence[int]) -> list[int]:
    """Pairs of address and word of a list's head, whose members' links lie there."""
    first, last = (links[0], links[-1]) if links else (head, head)
    return [head, first, head + 8, last]


def _queue_links(pages: Sequence[int], map_address: int, facts: Facts) -> list[int]:
    offset = facts["folio._deferred_list"]
    return [map_address + page * facts["sizeof.page"] + offset for page in pages]


class _Writer:
    """What the lines of a plan say."""

    def __init__(self, memory: Memory, facts: Facts, place: Place) -> None:
        self._memory = memory
        self._facts = facts
        self._place = place
        self._lists: dict[tuple[int, ...], NDArray[np.uint64]] = {}

    def words(self, case: Case) -> Mapping[str, Value]:
        """The words of a case's line."""
        migration, facts, array = case.migration, self._facts, self._memory.array
        ends = ((listed[0], listed[-1]) for listed in migration.calls)
        answers = (line(FOLDER / "answer.def", self._answer(case, one)) for one in case.after)
        after = self._memory.write("answers", ("".join(answers).encode(),))
        return {
            "name": case.name,
            "rounds": case.rounds,
            "limits": case.heads is not None,
            "moved_bytes": sum(folio.nr_pages for folio in migration.folios) * PAGE_BYTES,
            "folio_bytes": case.folio_bytes,
            "lists": self._numbers(
                migration.first_page(number) for pair in ends for number in pair
            ),
            "heads": array(case.heads),
            "pre_state": case.pre_state,
            "reads": case.reads,
            "flush": case.flush,
            "mode": facts[f"MIGRATE_{migration.mode.upper()}"],
            "reason": REASONS.index(migration.reason),
            "nr_pages": len(case.before.src),
            "nr_pmds": len(case.before.pmds[0]),
            "vm_flags": sum(facts[f"VM_{flag}"] for flag in VM_FLAGS)
            + facts["VM_LOCKED"] * migration.mlocked,
            "page_prot": PAGE_PROT,
            "rss": (*case.after[0].rss, 0)[:MOST_MAPPINGS],
            "nr_mappings": migration.nr_mappings,
            "no_copy": not case.copies,
            "watched": case.watched,
            "engine": case.engine,
            "channels": case.channels,
            "setup_ns": case.model.setup_ns if case.model else 0,
            "mb_per_s": case.model.mb_per_s if case.model else 0,
            "faults": [case.faults.get(name, 0) for name in FAULTS],
            "src": array(case.before.src),
            "dst": array(case.before.dst),
            **self._tables(case.before),
            "no_target": self._numbers(migration.no_target),
            "no_large_target": self._numbers(migration.no_large_target),
            "queued": self._numbers(migration.waiting),
            "poisoned": self._numbers(migration.poisoned_pages),
            "deferrable": array(case.deferrable),
            "deferrable_flag": 1 << facts["PG_partially_mapped"],
            "after": str(after),
        }

    def _answer(self, case: Case, after: After) -> Mapping[str, Value]:
        facts, place, array = self._facts, self._place, self._memory.array
        lru = [
            place.src_map + page * facts["sizeof.page"] + facts["page.lru"] for page in after.left
        ]
        heads = range(place.list, place.list + len(case.migration.calls) * LIST_BYTES, LIST_BYTES)
        # Of several calls only the first leaves something: see Migration.
        lists = [
            word for head in heads for word in _list_words(head, lru if head == place.list else ())
        ]
        queues = [
            *_list_words(place.src_queue, _queue_links(after.src_queued, place.src_map, facts)),
            *_list_words(place.dst_queue, _queue_links(after.dst_queued, place.dst_map, facts)),
        ]
        return {
            "numbers": list(_numbers_of(after)),
            "src": array(after.state.src),
            "dst": array(after.state.dst),
            **self._tables(after.state),
            "left": self._numbers(after.left),
            "words": self._numbers(lists),
            "queue_words": self._numbers(queues),
            "contents": array(after.contents) if case.copies else None,
        }

    def _tables(self, state: State) -> Mapping[str, Value]:
        none = [None] * (MOST_MAPPINGS - len(state.entries))
        array = self._memory.array
        return {
            "ptes": [*map(array, state.entries), *none],
            "pmds": [*map(array, state.pmds), *none],
        }

    def _numbers(self, numbers: Iterable[int]) -> Path | None:
        key = tuple(numbers)
        return self._memory.array(self._lists.setdefault(key, np.array(key, np.uint64)))


def written_plan(cases: Iterable[Case], facts: Facts, place: Place, work: Path) -> Planned:
    """The plan of some cases."""
    _check(facts)

    def words(memory: Memory) -> Iterator[Mapping[str, Value]]:
        writer = _Writer(memory, facts, place)
        return map(writer.words, cases)

    return plan_file(FOLDER / "row.def", work, words)


def _check(facts: Facts) -> None:
    """What native/expect.c, queue.c and memory.c have as constants. Raises ReamError."""
    known = {
        "page.lru": (facts["page.lru"], LRU_OFFSET),
        "sizeof.page": (facts["sizeof.page"], STRUCT_PAGE_BYTES),
        "folio._deferred_list": (
            facts["folio._deferred_list"],
            2 * STRUCT_PAGE_BYTES + QUEUE_OFFSET,
        ),
    }
    for name, (value, expected) in known.items():
        if value != expected:
            raise ReamError(f"{name} is {value}; native is written for {expected}")


def place_of(build: Build) -> Place:
    """Addresses at which the runner lays out memory and lists."""
    at = build.addresses
    src_queue = at["nodes"] + build.facts["queue"]
    return Place(
        src_map=at["src_map"],
        dst_map=at["dst_map"],
        src_pfn=at["src_pfn"],
        dst_pfn=at["dst_pfn"],
        anon_vma=at["anon_vma"],
        list=at["list"],
        src_queue=src_queue,
        dst_queue=src_queue + build.facts["queue_stride"],
        address=at["vma"],
    )


# --- Rows --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Timed:
    """A buffer that is moved again and again; words as Case has them."""

    name: str
    kind: Kind
    rounds: int
    engine: Engine = "serial"
    channels: int = 0
    pre_state: str = "warm"
    copies: bool = True
    reads: bool = False
    flush: bool = False
    model: EngineModel | None = None


def timed_plan(buffers: Sequence[Timed], build: Build, work: Path) -> Planned:
    """The plan of buffers; what is alike is predicted once."""
    facts, place = build.facts, place_of(build)

    @cache
    def predicted(kind: Kind) -> tuple[Migration, State, After, NDArray[np.uint64]]:
        there = place
        if kind.one_node:
            there = replace(place, dst_nid=place.src_nid, dst_queue=place.src_queue)
        was, after = uniform(kind, facts, there)
        migration = uniform_migration(kind)
        heads = np.array(migration.order_of_list, np.uint64) << np.uint64(kind.order)
        return migration, was, after, heads * np.uint64(kind.spread)

    def case(buffer: Timed) -> Case:
        migration, was, after, heads = predicted(buffer.kind)
        queues = buffer.kind.mapped == "ptes" and buffer.kind.order > 1
        return Case(
            name=buffer.name,
            migration=migration,
            before=was,
            after=(after,),
            deferrable=heads.astype(np.uint32) if queues else np.zeros(0, np.uint32),
            engine=buffer.engine,
            channels=buffer.channels,
            pre_state=buffer.pre_state,
            rounds=buffer.rounds,
            copies=buffer.copies,
            reads=buffer.reads,
            flush=buffer.flush,
            folio_bytes=PAGE_BYTES << buffer.kind.order,
            # What a CPU can copy is no limit of an engine that takes none.
            heads=heads if buffer.copies and buffer.model is None else None,
            model=buffer.model,
        )

    return written_plan(map(case, buffers), facts, place, work)


def memory_of(buffers: Sequence[Timed]) -> int:
    """Bytes that a run takes: sources and targets, and what is predicted of every kind."""
    kinds = {buffer.kind for buffer in buffers}
    largest = max(kind.nr_pages for kind in kinds)
    of_page = 4 * STRUCT_PAGE_BYTES + 2 * 2 * 8 + 2 * 8 + 8
    return 2 * largest * PAGE_BYTES + sum(kind.nr_pages for kind in kinds) * of_page


def _timed(row: MigrateRow) -> Timed:
    kind = Kind(
        order=row.order,
        total_bytes=row.buffer_bytes,
        mapped=row.mapped,
        nr_mappings=row.mappings,
        shuffled_seed=SHUFFLE_SEED if row.pre_state == "cold" else None,
        mode=row.mode,
        reason=REASON,
    )
    return Timed(
        name=row.name,
        kind=kind,
        rounds=row.rounds,
        engine=row.provider if row.channels else "serial",
        channels=row.channels,
        model=row.model,
        pre_state=row.pre_state,
        copies=row.measure != "metadata",
        reads=row.measure == "move-and-read",
        flush=row.tlb_flush == "measured",
    )


def plan_of(rows: Sequence[MigrateRow], threads: int | None, build: Build, work: Path) -> Planned:
    """The plan of an experiment's rows. threads: a row says how many channels copy."""
    del threads
    return timed_plan([_timed(row) for row in rows], build, work)


R = TypeVar("R", bound=EngineRow)
"""A row of this experiment or of another one that moves a buffer by channels."""


def suit(rows: Iterable[R], most: int | None = None, *, cpus: int | None = None) -> Suited:
    """Which rows are run here: those with few enough channels for its CPUs."""
    suited: Suited = suit_rows(rows, lambda row: row.workers, what="channel", most=most, cpus=cpus)
    # The thread that waits for the channels of a DMA engine is none of them. A kernel of one CPU
    # flushes no TLB of another, and the oracle expects such flushes.
    workers = max([1, *(row.workers for row in suited.rows)])
    return replace(suited, cpus=max(suited.cpus, workers + 1))


def needed_bytes(rows: Sequence[MigrateRow], build: Build) -> int:
    """Memory a run takes."""
    del build
    return memory_of([_timed(row) for row in rows])


def extent_bytes(row: R) -> int:
    """What makes a row large."""
    return row.buffer_bytes


def halved(row: R) -> R | None:
    """The row with half its buffer; None if that is no whole page table."""
    half = row.buffer_bytes // 2 // PMD_BYTES * PMD_BYTES
    return row.model_copy(update={"buffer_bytes": half}) if half else None


COUNTED_BYTES = 4 << 20
"""Buffer of a counted row: small, since pages are copied word by word there."""

SIZED: Sized[MigrateRow] = Sized(needed_bytes, extent_bytes, halved, COUNTED_BYTES)
