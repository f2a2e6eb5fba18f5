# SPDX-License-Identifier: GPL-2.0-only
"""Calls of migrate_pages() as lists and counters go: which folio gets where, and when.

Folios are numbers here: those of the migration, then pages of those that were split.
Source of all: mm/migrate.c of Linux 6.12.
"""

from collections import Counter
from dataclasses import dataclass, field

from .folios import Folio, Migration, Mode
from .images import Member, Side

NR_PASSES = 10
NR_ASYNC_PASSES = 3
NR_SYNC_PASSES = NR_PASSES - NR_ASYNC_PASSES
"""NR_MAX_MIGRATE_PAGES_RETRY, _ASYNC_RETRY and _SYNC_RETRY."""

ENOMEM = 12

EVENTS = {
    "PGMIGRATE_SUCCESS": "nr_succeeded",
    "PGMIGRATE_FAIL": "nr_failed_pages",
    "THP_MIGRATION_SUCCESS": "nr_thp_succeeded",
    "THP_MIGRATION_FAIL": "nr_thp_failed",
    "THP_MIGRATION_SPLIT": "nr_thp_split",
}
"""Each vm_event, and which member of struct migrate_pages_stats is added to it."""


@dataclass
class Batch:
    """migrate_pages_batch() under way.

    listed: not dealt with yet; in the end, what may be tried again. failed: for good, or not
    moved in the end. unmapped: locked and without entries. pieces: pages of what was split.
    """

    listed: list[int]
    failed: list[int]
    mode: Mode
    nr_pass: int
    stats: Counter[str]
    unmapped: list[int] = field(default_factory=list)
    pieces: list[int] = field(default_factory=list)
    nr_failed: int = 0
    no_memory: bool = False


class Call:
    """migrate_pages(), from the caller's list to what is left on it, once for each list."""

    def __init__(self, migration: Migration, *, shared_queue: bool, batched: bool) -> None:
        self.units = list(migration.units)
        self.split: list[int] = []
        self.moved: list[int] = []
        self.freed: list[int] = []
        self.unmapped_once: set[int] = set()
        self.stats: Counter[str] = Counter()
        self.nr_allocated = 0
        self.nr_put = 0
        self.nr_poison_reports = 0
        self.least_batch_flushes = 0
        self.nr_batch_flushes = 0
        self.least_single_flushes = 0
        self.most_single_flushes = 0
        self.noted: set[int] = set()
        queue: list[Member] = [("src", page) for page in migration.waiting]
        self.queues: dict[Side, list[Member]] = {
            "src": queue,
            "dst": queue if shared_queue else [],
        }
        self._migration = migration
        self._batched = batched
        self._batch_has_entries = self._call_has_entries = False

    def events(self) -> dict[str, int]:
        """vm_event counters."""
        return {event: self.stats[name] for event, name in EVENTS.items()}

    def queued(self, side: Side) -> tuple[int, ...]:
        """Heads, by page, of one side's folios in the queues, in order."""
        return tuple(page for where, page in self.queues[side] if where == side)

    def run(self) -> tuple[int, list[int]]:
        """What migrate_pages() returned in all, and what is left; of several calls nothing is."""
        result, left = 0, list[int]()
        for listed in self._migration.calls:
            ret, rest = self._one(list(listed))
            result, left = result + ret, left + rest
            # However many folios a kernel unmaps before it moves them, it does so in each call.
            self.least_batch_flushes += self._call_has_entries
            self._call_has_entries = False
        return result, left

    def _one(self, rest: list[int]) -> tuple[int, list[int]]:
        """What one call returned, and its caller's list."""
        failed = list[int]()
        result = 0
        while rest and result >= 0:
            cut = self._prefix(rest)
            listed, rest = rest[:cut], rest[cut:]
            pieces: list[int] = []
            if self._migration.mode == "async":
                ret = self._batch(
                    Batch(listed, failed, "async", NR_PASSES, self.stats, pieces=pieces)
                )
            else:
                ret = self._sync(listed, failed, pieces)
            failed += listed
            result = ret if ret < 0 else result + ret
            if result >= 0 and pieces:
                # One try without waiting; each folio that was split has been counted once.
                self._batch(Batch(pieces, failed, "async", 1, self.stats))
            failed += pieces
        left = failed + rest
        return (result if left else 0), left

    def _prefix(self, rest: list[int]) -> int:
        """How many folios a batch takes: the one that fills it is the last."""
        nr_pages = 0
        for nr_folios, number in enumerate(rest, 1):
            nr_pages += self._folio(number).nr_pages
            if self._migration.limit.is_full(nr_folios, nr_pages):
                return nr_folios
        return len(rest)

    def _folio(self, number: int) -> Folio:
        return self.units[number].folio

    def _sync(self, listed: list[int], failed: list[int], pieces: list[int]) -> int:
        """All at once without waiting, then one by one; source: migrate_pages_sync()."""
        first = Batch(listed, [], "async", NR_ASYNC_PASSES, Counter(), pieces=pieces)
        ret = self._batch(first)
        counted = ["nr_succeeded", "nr_thp_succeeded", "nr_thp_split"]
        if ret < 0:
            counted += ["nr_failed_pages", "nr_thp_failed"]
        self.stats.update({name: first.stats[name] for name in counted})
        if ret < 0:
            failed += first.failed
            return ret
        # All are tried again, so that only what was split has failed by now.
        self.stats["nr_thp_failed"] += first.stats["nr_thp_split"]
        nr_failed = first.stats["nr_split"]
        listed += first.failed
        while listed:
            # Nothing without a target gets here: it ended the call above.
            one = Batch([listed.pop(0)], failed, self._migration.mode, NR_SYNC_PASSES, self.stats)
            nr_failed += self._batch(one)
            failed += one.listed
        return nr_failed

    def _batch(self, batch: Batch) -> int:
        """Unmap all, flush once, move all; source: migrate_pages_batch()."""
        again: list[int] = []
        for _ in range(batch.nr_pass):
            again = self._unmap_all(batch)
            if not again or batch.no_memory:
                break
        for number in again:
            _fail(self._folio(number), batch, nr_failed=not batch.no_memory)
        # Not if all of it was split, each time with a flush for what was unmapped so far.
        self.nr_batch_flushes += self._batch_has_entries
        self._batch_has_entries = False
        self._move_all(batch)
        # Folios with an extra reference get their entries back.
        batch.failed += batch.unmapped
        self.nr_put += len(batch.unmapped)
        return -ENOMEM if batch.no_memory else batch.nr_failed

    def _unmap_all(self, batch: Batch) -> list[int]:
        """One pass; returns what is to be tried once more."""
        again: list[int] = []
        for number in list(batch.listed):
            folio = self._folio(number)
            if folio.fault == "partially-mapped":
                self._split(number, batch)
                continue
            if folio.fault == "freed":
                self.freed.append(number)
                _succeed(folio, batch)
                batch.listed.remove(number)
                continue
            self.nr_allocated += 1
            if folio.fault == "no-target" and self._migration.splits(folio):
                self._split(number, batch)
                continue
            if folio.fault == "no-target":
                _fail(folio, batch)
                batch.no_memory = True
                break
            if folio.fault in {"locked", "pinned"}:
                self.nr_put += 1
                again.append(number)
                self._try_to_unmap(folio, batch.mode)
                continue
            batch.listed.remove(number)
            if folio.fault == "writeback":
                self._give_up(number, batch)
            else:
                self._unmap(number, batch.mode)
                batch.unmapped.append(number)
        return again

    def _move_all(self, batch: Batch) -> None:
        """All passes. A folio with an extra reference stays, however often it is tried."""
        held = []
        for number in batch.unmapped:
            folio = self._folio(number)
            if folio.fault == "extra-ref":
                held.append(number)
                _fail(folio, batch)
            elif folio.poisoned_page is not None:
                self.nr_poison_reports += 1
                self._give_up(number, batch)
            else:
                self._move(number)
                _succeed(folio, batch)
        batch.unmapped = held

    def _give_up(self, number: int, batch: Batch) -> None:
        """It fails for good, and its target is not needed."""
        self.nr_put += 1
        batch.failed.append(number)
        _fail(self._folio(number), batch)

    def _split(self, number: int, batch: Batch) -> None:
        """Split a folio into one-page folios, to be migrated later; source: try_split_folio().

        For that they lose their entries for a while, which are flushed at once, with all others.
        A kernel that has unmapped the others elsewhere flushes them apart.
        """
        folio = self._folio(number)
        batch.listed.remove(number)
        self.split.append(number)
        member: Member = ("src", self.units[number].first_page)
        if member in self.queues["src"]:
            self.queues["src"].remove(member)
        self.nr_batch_flushes += 1 + self._batch_has_entries
        self._call_has_entries = True
        self.noted.update(filter(folio.nr_entries_in, range(folio.nr_mappings)))
        pieces = self.units[number].pieces()
        batch.pieces += range(len(self.units), len(self.units) + len(pieces))
        self.units += pieces
        batch.nr_failed += 1
        batch.stats["nr_split"] += 1
        batch.stats["nr_thp_split"] += folio.is_huge
        batch.stats["nr_thp_failed"] += folio.is_huge

    def _try_to_unmap(self, folio: Folio, mode: Mode) -> None:
        """An entry of a pinned folio comes back at once; each try may be flushed, or none.

        Source: folio_try_share_anon_rmap_pte() and its callers.
        """
        if folio.fault == "pinned" and (folio.nr_huge or mode != "async"):
            self.most_single_flushes += folio.nr_entries
        elif folio.fault == "pinned":
            self._batch_has_entries = True
            self.nr_batch_flushes += 1

    def _unmap(self, number: int, mode: Mode) -> None:
        """Source: try_to_migrate_one(), mm/rmap.c; set_pmd_migration_entry(), huge_memory.c."""
        folio = self._folio(number)
        self.unmapped_once.add(number)
        for space in range(folio.nr_mappings * (folio.mapped != "unmapped")):
            if folio.is_huge_in(space) or mode != "async":
                self.least_single_flushes += 1
                self.most_single_flushes += folio.nr_entries_in(space)
            else:
                self._batch_has_entries = self._call_has_entries = True
                self.noted.add(space)
        member: Member = ("src", self.units[number].first_page)
        if folio.queues and (folio.holes or not self._batched) and member not in self.queues["src"]:
            self.queues["src"].append(member)

    def _move(self, number: int) -> None:
        """The target takes the source's place in the queue, or rather in its own node's.

        Source: migrate_folio_move(), __folio_migrate_mapping().
        """
        self.moved.append(number)
        page = self.units[number].first_page
        if ("src", page) in self.queues["src"]:
            self.queues["src"].remove(("src", page))
            self.queues["dst"].append(("dst", page))


def _succeed(folio: Folio, batch: Batch) -> None:
    batch.stats["nr_succeeded"] += folio.nr_pages
    batch.stats["nr_thp_succeeded"] += folio.is_huge


def _fail(folio: Folio, batch: Batch, *, nr_failed: bool = True) -> None:
    batch.nr_failed += nr_failed
    batch.stats["nr_failed_pages"] += folio.nr_pages
    batch.stats["nr_thp_failed"] += folio.is_huge
