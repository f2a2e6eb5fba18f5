# SPDX-License-Identifier: GPL-2.0-only
"""What compaction gives beside its time, and the tables that show it next to the published one."""

from collections.abc import Callable, Iterator, Mapping

from ream.experiment.columns import (
    OF_ROW,
    Amount,
    Better,
    Column,
    Columns,
    Numbers,
    Part,
    PrintedSource,
    Shown,
    ShownColumn,
)
from ream.measure.sample import Sample
from ream.values import Value

GIB_BYTES = 1 << 30
NS_PER_MS = 1e6
NS_PER_S = 1e9
MILLION = 1e6

ASKED, ALLOCATED = "asked", "allocated"
_MACHINE = "machine_"


class CpuTimes(Value):
    """What all CPUs of a machine did in some time, as /proc/stat has it, in ns."""

    user_ns: int
    """User time, including that of niced processes."""
    system_ns: int
    """System time, including that of interrupts."""
    idle_ns: int
    """Idle time, including that of waiting for I/O."""
    steal_ns: int
    """Stolen time: the host ran other guests or programs."""

    @property
    def busy_ns(self) -> int:
        """CPU time that was used."""
        return self.user_ns + self.system_ns

    def beside(self) -> Iterator[tuple[str, int]]:
        """What a sample has of them."""
        for name in type(self).model_fields:
            yield f"{_MACHINE}{name}", getattr(self, name)


def known(numbers: Mapping[str, int | None]) -> dict[str, int]:
    """Those that are known: what is not is never 0."""
    return {name: value for name, value in numbers.items() if value is not None}


def unknown(numbers: Mapping[str, int | None]) -> dict[str, None]:
    """Those that are not: a line of samples.jsonl has null for them."""
    return {name: None for name, value in numbers.items() if value is None}


# --- Columns of samples ------------------------------------------------------------------


def _number(name: str) -> Callable[[Sample, bool], float | None]:
    return lambda sample, _: sample.beside.get(name)


def _of_huge(nr: float | None, sample: Sample) -> float | None:
    allocated = sample.beside.get(ALLOCATED)
    return nr / allocated if nr is not None and allocated else None


def _migrated_per_huge(sample: Sample, _: bool) -> float | None:
    return _of_huge(sample.beside.get("pgmigrate_success"), sample)


def _per_huge(sample: Sample, _: bool) -> float | None:
    return _of_huge(sample.time_ns, sample)


def _hog_per_s(sample: Sample, _: bool) -> float | None:
    hog = sample.beside.get("hog_iterations")
    return None if hog is None else hog / sample.time_ns * NS_PER_S


def _without_copies(sample: Sample, counted: bool) -> float | None:
    """The share of the copies; None if it is not known, or if copies would take longer than all.

    A count includes all copies. A time does not include those that an engine makes meanwhile. With
    a hog on the CPU, a copy takes longer than was measured without it.
    """
    beside = sample.beside
    migrated, page_copy = beside.get("pgmigrate_success"), beside.get("page_copy_ns")
    meanwhile = not counted and bool(beside.get("dcbm_folios_migrated"))
    if migrated is None or page_copy is None or meanwhile or "hog_iterations" in beside:
        return None
    rest = sample.time_ns - page_copy * migrated
    return _of_huge(rest, sample) if rest > 0 else None


def _share(name: str) -> Callable[[Sample, bool], float | None]:
    """Per cent of what the CPU did meanwhile; where its idling is not known, of the time."""

    def share(sample: Sample, _: bool) -> float | None:
        parts = [sample.beside.get(part) for part in ("user_ns", "system_ns", "idle_ns")]
        whole = sample.time_ns if None in parts else sum(part or 0 for part in parts)
        value = sample.beside.get(name)
        return None if value is None or not whole else min(100.0, 100 * value / whole)

    return share


def _counters() -> Iterator[Column]:
    for name, counter, means in (
        (ASKED, ASKED, "huge pages that were asked for"),
        (ALLOCATED, ALLOCATED, "huge pages that were had"),
        ("migrated", "pgmigrate_success", "pages that compaction moved"),
        ("failed", "pgmigrate_fail", "pages that it could not move"),
        ("dma_copies", "dcbm_folios_migrated", "folios that dcbm copied"),
        ("migrate_scanned", "compact_migrate_scanned", "pages looked at to be moved"),
        ("free_scanned", "compact_free_scanned", "pages looked at to be filled"),
        ("stalls", "compact_stall", "allocations that had to compact"),
        ("tlb_flushes", "tlb_flushes", "times that other CPUs had to forget entries"),
    ):
        yield Column(name, means, _number(counter))


_BETTER: Mapping[str, Better] = {"user": "higher", "sys": "lower", "idle": "higher"}


def _shares() -> Iterator[Column]:
    for (what, better), part in zip(
        _BETTER.items(), ("user_ns", "system_ns", "idle_ns"), strict=True
    ):
        means = f"{what} time of the CPU that allocates"
        yield Column(f"{what}_pct", means, _share(part), "%", "real", better, published=True)


COLUMNS = (
    *_counters(),
    Column("migrated_per_huge", "migrated for each huge page", _migrated_per_huge, "", "real"),
    *_shares(),
    Column(
        "hog_iterations",
        "iterations of the hog on the same CPU",
        _number("hog_iterations"),
        better="higher",
        published=True,
    ),
    Column("hog_per_s", "the same in a second", _hog_per_s, "1/s", "real", "higher"),
    Column("hog_over_before", "a ratio of it", _hog_per_s, "", "ratio", "higher"),
    Column("per_huge", "time of a huge page", _per_huge, OF_ROW, "real", "lower"),
    Column("per_huge_without_copies", "that without copies", _without_copies, OF_ROW, "real"),
    Column("without_copies_over_before", "a ratio of it", _without_copies, "", "ratio", "lower"),
    Column("page_copy", "of one page", _number("page_copy_ns"), OF_ROW, "real", "lower"),
    Column("longest", "of one allocation", _number("longest_ns"), OF_ROW, "whole", "lower"),
    *(
        Column(f"machine.{name}", "of all CPUs meanwhile", _number(f"{_MACHINE}{name}"), OF_ROW)
        for name in CpuTimes.model_fields
    ),
)


# --- Tables ------------------------------------------------------------------------------


def _named(name: str, scale: float = 1.0) -> Callable[[Numbers], float | None]:
    def value(numbers: Numbers) -> float | None:
        return None if (found := numbers.get(name)) is None else found / scale

    return value


def _of(name: str, by: str, scale: float = 1.0) -> Callable[[Numbers], float | None]:
    """One number over another; None where one is not known, or the second is 0."""

    def value(numbers: Numbers) -> float | None:
        over, under = numbers.get(name), numbers.get(by)
        return None if over is None or not under else over * scale / under

    return value


def _used_per_gib(numbers: Numbers) -> float | None:
    used = [numbers.get(f"machine.{name}") for name in ("user_ns", "system_ns")]
    if None in used or not numbers.get("nr_bytes"):
        return None
    return sum(one or 0 for one in used) / numbers["nr_bytes"] * GIB_BYTES


def _above_lines(table: PrintedSource) -> str | None:
    return f"in {table.id}, from {table.nr_huge:,} huge pages" if table.nr_huge else None


DID = Shown(
    read="what compaction did: pages migrated, those of them copied by DMA, millions of iterations"
    " of the hog a second, shares of the CPU that allocates",
    cells=(
        ShownColumn("asked", 0, _named(ASKED), digits=0),
        ShownColumn("got", 0, _named(ALLOCATED), digits=0),
        ShownColumn("took", 10, _named("median"), _named("wall_ms", 1 / NS_PER_MS)),
        ShownColumn("migrated", 10, _named("migrated"), _named("migrated"), digits=0),
        ShownColumn("DMA copies", 11, _named("dma_copies"), _named("dma_copies"), digits=0),
        ShownColumn(
            "hog M/s",
            9,
            _named("hog_per_s", MILLION),
            _of("hog_iterations", "wall_ms", 1e3 / MILLION),
            digits=1,
        ),
        ShownColumn("user%", 6, _named("user_pct"), _named("user_pct"), digits=2),
        ShownColumn("sys%", 6, _named("sys_pct"), _named("sys_pct"), digits=2),
        ShownColumn("idle%", 6, _named("idle_pct"), _named("idle_pct"), digits=2),
    ),
    published=lambda table: f"in {table.id} ({table.source}; {table.machine})",
)
EACH = Shown(
    read="of a huge page: pages moved (256 where half of memory is free), pages looked at to be"
    " moved and to be filled, what it took, that without copying pages, and the longest of any one",
    cells=(
        ShownColumn("moved", 8, _named("migrated_per_huge"), _of("migrated", "nr_huge"), digits=1),
        ShownColumn("scanned", 9, _of("migrate_scanned", ALLOCATED), digits=1),
        ShownColumn("for free", 9, _of("free_scanned", ALLOCATED), digits=1),
        ShownColumn("took", 10, _named("per_huge"), _of("wall_ms", "nr_huge", NS_PER_MS)),
        ShownColumn("not copying", 12, _named("per_huge_without_copies")),
        ShownColumn("longest", 10, _named("longest")),
    ),
    published=_above_lines,
)
MACHINE = Shown(
    read="CPU time of all CPUs meanwhile, the engine's and the hog's among it, and what was used"
    " of it (user and system) for each GiB of huge pages",
    cells=(
        ShownColumn("user", 10, _named("machine.user_ns")),
        ShownColumn("system", 10, _named("machine.system_ns")),
        ShownColumn("idle", 10, _named("machine.idle_ns")),
        ShownColumn("steal", 10, _named("machine.steal_ns")),
        ShownColumn("used a GiB", 12, _used_per_gib),
    ),
    sparse=True,
    on_page=False,
)
RATIOS = Shown(
    read="ratio to before: lower is better of what is not copying, higher of the hog",
    cells=(
        ShownColumn("not copying", 29, ratio="without_copies_over_before"),
        ShownColumn("hog iterations a second", 29, ratio="hog_over_before"),
    ),
    sparse=True,
)


# --- Batches -----------------------------------------------------------------------------

MOVE, METADATA, FLUSHED, DMA = "move", "metadata", "flushed", "dma"
KIND_OF: Mapping[tuple[str, str, str], str] = {
    ("baseline", "move", "none"): MOVE,
    ("baseline", "metadata", "none"): METADATA,
    ("baseline", "move", "measured"): FLUSHED,
    ("dma", "move", "none"): DMA,
}
"""Kinds of native rows by mode, measure and tlb_flush; others are in no difference."""

PARTS = (
    Part("page_ns", "a page", 9, (FLUSHED, MOVE)),
    Part("copy_ns", "copy", 9, (MOVE,), less=METADATA),
    Part("flush_ns", "flush", 9, (FLUSHED,), less=MOVE),
    Part("rest_ns", "rest", 9, (METADATA,)),
    # `before` has no engine: its row is the plain one again.
    Part("dma_page_ns", "by DMA", 9, (DMA,), without=("before",)),
    Part("call_ns", "a call, us", 12, (FLUSHED, MOVE), per_call=True, scale=1e3),
)

DECLARED = Columns(
    columns=COLUMNS,
    tables=(DID, EACH, MACHINE, RATIOS),
    parts=PARTS,
    read_parts="where the time of a page goes, in ns, by pages of a call: whole with flushes where"
    " these are measured; copying; flushing; the rest; whole by DMA without flushes. Of a call: how"
    " long its first page cannot be used at most",
    amount=Amount(ASKED, ALLOCATED, "huge page"),
)
