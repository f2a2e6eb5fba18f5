# SPDX-License-Identifier: GPL-2.0-only
"""For each oracle of the computer there is a wrong patch that no other oracle catches."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from ream.kernel.source import Tree
from ream.paths import EXPERIMENTS, NATIVE
from ream.program.ran import Rig, difference, shortest
from ream.program.text import parse
from wrong import wrong_patches

pytestmark = pytest.mark.xdist_group("computer")

FOLDER = NATIVE / "libmm"
OURS = Path(__file__).parent / "patches"

MAPPED = "p0 mmap a 512 anon private rw\np0 write a\n"
HUGE = "memory 512M 256M\np0 mmap a 512 anon private rw thp=always\np0 write a\n"
ON_DISK = "file d 64K disk\np0 mmap a 16 d shared rw\np0 write a\n"
FEW = "p0 mmap a 3 anon private rw\np0 write a\n"
CLEARED = "swap 64M\n" + MAPPED + "p0 call clear_refs x=4\np0 write a[3:9]\n"
POOL = "boot hugepages 4\n"
MOVED = ("memory 512M 128M\ncpus 2\np0 mmap a 16 anon private rw\np0 write a\np0 fork p1\n"
         "p0 run_on cpu=1\np0 read a\n")  # fmt: skip
FREED = "set /proc/sys/vm/drop_caches 2"

ORACLES = {
    "tlb": (EXPERIMENTS / "mremap" / "wrong" / "07-flush-of-nothing.patch",
            MAPPED + "p0 mremap a[0:8] b 8", "a flush is missing"),
    "interrupted": (EXPERIMENTS / "mprotect" / "wrong" / "17-pending-flush-ignored.patch",
                    MOVED + "interrupt 12\np1 move_pages a node=1 all\np0 mprotect a none",
                    "which its VMA does not allow"),
    "tables": (EXPERIMENTS / "fork" / "wrong" / "41-page-table-bytes.patch",
               MAPPED, "its tables are counted as"),
    "free": (OURS / "computer-free.patch", MAPPED, "nr_free of order"),
    "cache": (OURS / "computer-cache.patch",
              ON_DISK + "fsync d\np0 munmap a\nfadvise d dontneed", "nrpages is"),
    "frames": (EXPERIMENTS / "fork" / "wrong" / "48-references-of-a-batch-in-bytes.patch",
               HUGE + "p0 mprotect a[0] r\np0 munmap a", "references are known"),
    "swap": (OURS / "computer-swap.patch",
             "swap 64M\n" + MAPPED + "p0 madvise a pageout\np0 munmap a",
             "swap slots are counted as used"),
    "clusters": (OURS / "computer-clusters.patch", "swap 64M\n", "slots as taken"),
    "paid": (OURS / "computer-paid.patch",
             "group g\nswap 64M device\np0 join g\nmthp 64K\n" + MAPPED
             + "p0 madvise a pageout\np0 munmap a", "is charged for .* swap slots"),
    "expected": (OURS / "computer-expected.patch",
                 "swap 64M\n" + MAPPED + "p0 madvise a pageout", "cannot be moved"),
    "blocks": (OURS / "computer-blocks.patch",
               "file f 64K shmem\np0 mmap a 16 f shared rw\np0 write a\ntruncate f 3",
               "blocks, and"),
    "lists": (OURS / "computer-lists.patch", HUGE + "p0 munmap a[0]\np0 munmap a[1:512]",
              "are counted as to be split"),
    "counters": (EXPERIMENTS / "migrate" / "wrong" / "36-nr-anon-of-mthp.patch",
                 HUGE + "p0 move_pages a node=1", "nr_anon of order"),
    "open": (OURS / "computer-open.patch", "p0 mmap a 1 anon shared rw",
             "filp: 1 objects are left"),
    "waiting": (OURS / "computer-waiting.patch",
                "p0 call uffd_events\n" + MAPPED + "p0 uffd_register a wp\np0 mremap a b 512",
                "waits for . changes of mappings"),
    "migratable": (OURS / "computer-migratable.patch",
                   POOL + "p0 mmap a 512 anon private rw hugetlb\np0 write a[0]\np0 fork p1\n"
                   "p0 write a[0]", "says that it cannot be migrated"),
    "dirty": (EXPERIMENTS / "migrate" / "wrong" / "03-dirty-moved-once.patch",
              "memory 512M 256M\n" + MAPPED
              + "p0 madvise a free\np0 write a\np0 move_pages a node=1",
              "which reclaim may drop"),
    "contents": (OURS / "computer-contents.patch", MAPPED + "p0 madvise a dontneed",
                 "reads .* where"),
    "protected": (OURS / "computer-protected.patch",
                  "swap 64M\n" + MAPPED + "p0 uffd_register a wp\np0 uffd_wp a on\n"
                  "p0 madvise a pageout\np0 read a",
                  "was protected by userfaultfd"),
    "pinned": (EXPERIMENTS / "fork" / "wrong" / "01-pinned-first-page-for-all.patch",
               HUGE + "p0 mprotect a[0] r\np0 mprotect a rw\np0 madvise a[5:9] dontfork\n"
               "p0 fork p1\np0 madvise a[5:9] dofork\np0 pin a[6] write\np0 fork p2",
               "is pinned and mapped, and exclusive to no process"),
    "private": (OURS / "computer-private.patch", FEW + "p0 call to_device a\np0 mprotect a r",
                "names a page of a device as writable in a VMA that is not"),
    "device": (EXPERIMENTS / "fork" / "wrong" / "21-notifier-with-threads-only.patch",
               "p0 device\n" + MAPPED + "p0 fork p1", "a device still translates"),
    "soft-dirty": (OURS / "computer-soft-dirty.patch", CLEARED + "p0 madvise a pageout",
                   "since clear_refs, which is not soft-dirty"),
    "clear-refs": (OURS / "computer-clear-refs.patch", CLEARED,
                   "since clear_refs, which is not soft-dirty"),
    "pagemap": (OURS / "computer-pagemap.patch",
                CLEARED + "p0 madvise a pageout\np0 call pagemap a", "pagemap says"),
    "pagemap-scan": (OURS / "computer-pagemap-scan.patch",
                     CLEARED + "p0 madvise a pageout\np0 call pagemap_scan a",
                     "PAGEMAP_SCAN says"),
    "maps": (OURS / "computer-maps.patch",
             "p0 mmap a 512 anon private r\np0 call proc", "PID/maps says"),
    "smaps": (OURS / "computer-smaps.patch",
              "swap 64M\n" + MAPPED + "p0 madvise a pageout\np0 call proc x=1",
              "smaps says Swap"),
    "numa-maps": (OURS / "computer-numa-maps.patch", HUGE + "p0 call proc x=3",
                  "numa_maps says"),
    "status": (OURS / "computer-status.patch", FEW + "p0 call proc x=4",
               "status says (RssAnon|VmRSS)"),
    "statm": (OURS / "computer-statm.patch", FEW + "p0 call proc x=5", "statm says"),
    "ksm": (OURS / "computer-ksm.patch",
            FEW + "p0 write a same=7\np0 madvise a mergeable\nset /sys/kernel/mm/ksm/run 1\n"
            "wait 2s\np0 exit\nwait 2s", "KSM has .* rmap_items"),
    "group": (OURS / "computer-group.patch",
              "group g 64M\nswap 64M\np0 join g\n" + MAPPED + "p0 madvise a pageout",
              "NR_SWAPCACHE of group 1"),
    "zone": (OURS / "computer-zone.patch", "swap 64M\n" + MAPPED + "p0 madvise a pageout",
             "nr_zone_write_pending of a zone"),
    "memmap": (OURS / "computer-memmap.patch", "p0 call offline x=2 y=1", "nr_memmap_boot_pages"),
    "slab": (OURS / "computer-slab.patch",
             "file f 64M shmem\npwrite f[0:16000]\ntruncate f 0\n" + FREED,
             "NR_SLAB_(UN)?RECLAIMABLE_B of node"),
    "fault-in": (OURS / "computer-fault-in.patch",
                 FEW + "p0 mprotect a[2] r\np0 call fixup_fault a x=1", "not to be faulted in"),
    "charge": (OURS / "computer-charge.patch",
               "group g 64M\np0 join g\np0 call charge x=65536 y=10", "of slabs, and has"),
    "vmas": (OURS / "computer-vmas.patch", MAPPED + "p0 mprotect a r", "data_vm is"),
    "anon-vmas": (OURS / "computer-anon-vmas.patch",
                  MAPPED + "p0 fork p1\np1 write a\np1 exit", "num_children of an anon_vma is"),
    "committed": (OURS / "computer-committed.patch", MAPPED + "p0 munmap a[3]",
                  "Committed_AS is"),
    "left": (OURS / "computer-left.patch", MAPPED, "anon_vma: .* objects are left"),
    "mincore": (OURS / "computer-mincore.patch",
                "p0 mmap a 4 anon private rw populate\np0 fork p1\np0 mincore a",
                "is not in memory"),
    "mincore-unmapped": (OURS / "computer-mincore-unmapped.patch",
                         "file f 64K shmem\npwrite f[0]\np0 mmap a 16 f shared r\np0 mincore a",
                         r"mincore\(\) says that page 0x[1-9a-f] is in memory"),
    "lost": (OURS / "computer-lost.patch",
             "p0 mmap a 4 anon private rw populate\np0 uffd_register a missing\np0 uffd_copy a",
             "nothing has it: it is lost"),
    "percpu-left": (OURS / "computer-percpu-left.patch", MAPPED,
                    "a process that has ended leaves .* bytes for each CPU"),
    "zoneinfo": (OURS / "computer-zoneinfo.patch", "show /proc/zoneinfo", "zoneinfo says numa_"),
    "area": (OURS / "computer-area.patch", "p0 call percpu x=32768 y=128", "there is no area of"),
    "large": (OURS / "computer-large.patch",
               "file b 64K blocks\npwrite b[0:4]\ntruncate b 2\ntruncate b 4\npread b[0:4]",
               "file 0 holds"),
    "split-queue": (OURS / "computer-split-queue.patch",
                    "mthp 64K\n" + FEW.replace("3", "16") + "p0 munmap a[3]",
                    "15 of 16 pages mapped"),
    "underused": (OURS / "computer-underused.patch",
                  "p0 mmap a 512 anon private rw\np0 write a\np0 madvise a collapse",
                  "huge page .* was not looked at"),
    "uffd-result": (OURS / "computer-uffd-result.patch",
                    "p0 call uffd_events\n" + MAPPED + "p0 uffd_register a missing,wp\n"
                    "p0 madvise a dontneed", "does not say how far it came"),
    "slot-index": (OURS / "computer-slot-index.patch",
                   "swap 64M\n" + MAPPED + "p0 mmap b 512 anon private rw\n"
                   "p0 uffd_register b missing\np0 madvise a pageout\n"
                   "p0 uffd_move b from=a", "in the swap cache has page"),
    "broken": (OURS / "computer-broken.patch",
               HUGE + "p0 pin a[3] get\np0 madvise a[3] hwpoison", "is broken, and its"),
    "pool": (OURS / "computer-pool.patch",
             POOL + "p0 mmap a 1024 anon private rw hugetlb\np0 write a[0]\np0 munmap a",
             "resv_huge_pages of hugepages-2048kB is"),
    "pool-free": (OURS / "computer-pool-free.patch", POOL, "free.* of hugepages-2048kB is"),
    "pool-mapped": (OURS / "computer-pool-mapped.patch",
                    POOL + "p0 mmap a 512 anon private rw hugetlb\np0 write a[0]\np0 fork p1\n"
                    "p0 madvise a dontneed", "is mapped, and its reservation is given back"),
    "pool-regions": (OURS / "computer-pool-regions.patch",
                     POOL + "file t 8M hugetlb\np0 mmap a 3072 t shared rw",
                     "additions to a map of promised"),
    "pool-files": (OURS / "computer-pool-files.patch",
                   POOL + "file t 4M hugetlb\np0 mmap a 1024 t shared rw\np0 munmap a",
                   "resv_huge_pages of hugepages-2048kB is"),
    "subpool": (OURS / "computer-subpool.patch",
                POOL + "file q 4M limited\np0 mmap a 1024 q shared rw\np0 write a\n"
                "p0 madvise a[0:512] remove", "a mount of hugetlbfs"),
    "usage": (OURS / "computer-usage.patch",
              POOL + "p0 mmap a 1024 anon shared rw hugetlb\np0 write a[0]\np0 munmap a",
              "hugetlb_usage is"),
    "shared-table": (OURS / "computer-shared-table.patch",
                     POOL + "file u 1G hugetlb\np0 mmap v 262144 u shared rw noreserve\n"
                     "p0 write v[0]\np0 fork p1\np1 read v[0]",
                     "a table that 2 mappings share, and counts 2 others"),
    "by-frame": (OURS / "computer-by-frame.patch",
                 "file i 64K frames\np0 mmap a 16 i shared rw", "of a device, which is not its"),
    "kernel": (OURS / "computer-warns.patch", MAPPED + "p0 mprotect a r",
               "the kernel warns at"),
}  # fmt: skip
"""For each oracle: a wrong patch, a program that shows it, and what the oracle says of it."""

QUICK = {"tlb", "tables"}

Build = Callable[[Path | None], Rig]


@pytest.fixture
def build(kernel: Tree, cache: Path, tmp_path: Path) -> Build:
    def built(patch: Path | None) -> Rig:
        work = tmp_path / (patch.stem if patch else "base")
        patches = wrong_patches(patch) if patch else ()
        return Rig.of(kernel, patches, cache=cache, work=work, step=print)

    return built


@pytest.mark.parametrize(
    "oracle",
    [pytest.param(one, marks=() if one in QUICK else pytest.mark.vm) for one in ORACLES],
)
def test_a_wrong_patch_is_caught_by_one_oracle_alone(build: Build, oracle: str) -> None:
    patch, text, says = ORACLES[oracle]
    alarms = build(patch).run(parse(text)).alarms
    assert alarms
    assert [alarm for _, alarm in alarms if not re.search(says, alarm)] == []


def test_after_an_alarm_a_program_goes_on_if_that_is_asked_for(build: Build) -> None:
    patch, _, says = ORACLES["tables"]
    program = parse(MAPPED + "p0 munmap a\np0 mmap b 512 anon private rw\np0 write b\n")
    rig = build(patch)
    ended, went_on = (rig.run(program, goes_on=one) for one in (False, True))
    assert len(ended.returned) < len(went_on.returned)
    assert len(went_on.alarms) == 1
    assert re.search(says, went_on.alarms[0][1])


def test_a_program_gets_as_short_as_the_fault_allows(build: Build) -> None:
    patch, _, _ = ORACLES["tlb"]
    text = """\
p0 mmap a 37 anon private rw
p0 mremap a b 37
p0 mmap c 37 anon private rw at=b
p0 write b[3:37]
p0 call numa_hint b[3:37]
p0 mremap b[4:37] d 33
p0 mprotect d[1:33] r
"""
    rig, program = build(patch), parse(text)
    short = shortest(rig, program, rig.run(program), within_s=60)
    assert [step.verb for step in short] == ["mmap", "write", "mremap"]
    assert short.steps[0].number("nr") == 2  # of a whole area the flush is not missing


def test_what_no_rule_forbids_is_a_difference_from_the_base(build: Build) -> None:
    program = parse(HUGE + "p0 move_pages a node=1")
    patch = EXPERIMENTS / "migrate" / "wrong" / "16-copy-without-resched.patch"
    base, series = (build(one).run(program) for one in (None, patch))
    assert (base.alarms, series.alarms) == ((), ())
    assert difference(base, series) == (4, "reschedules")
    assert difference(base, base) is None
