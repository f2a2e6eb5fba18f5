# SPDX-License-Identifier: GPL-2.0-only
"""All of mm/ boots in a process and runs programs, and its checks find nothing in the base."""

import hashlib
import os
from errno import ENOMEM
from pathlib import Path

import pytest

from ream.kernel.source import Tree, base_named, fetch_tree
from ream.measure.plan import drawn_order
from ream.paths import CHECKOUT, EXPERIMENTS, NATIVE
from ream.program.ran import Rig
from ream.program.text import parse
from ream.stage.computer import Checks, Computer, Parts, build_parts
from ream.stage.confine import build_confinement

pytestmark = pytest.mark.xdist_group("computer")

FOLDER = NATIVE / "libmm"

WRONG = CHECKOUT / "tests" / "native" / "computer_wrong.txt"
"""The wrong patches of experiments that change what the computer hosts: all of five experiments.

None is left out. Those whose path has an even SHA-256 are the blind half: programs and checks are
made without looking at them.
"""

OK, USAGE, ALARM = 0, 2, 5

PROGRAM = """\
0 memory 131072 65536 0 0
0 cpus 2
1 swapon 49152 1
2 mmap 0 0 512 3 34 -1 0
3 write 0 0 512 0
4 fork 0 1
5 munmap 1 0 100
6 write 1 100 100 0
7 read 0 0 512
8 open 0 0 64
9 mmap 0 1024 64 3 1 0 0
10 write 0 1024 64 0
11 open 1 1 64
12 pwrite 1 0 64 0
13 mmap 0 2048 64 3 1 1 0
14 write 0 2048 32 0
15 fsync 1
16 reclaim 600
17 read 0 0 512
18 mremap 0 0 512 512 3 4096
19 read 0 4096 512
20 madvise 0 4096 256 4
21 read 0 4096 512
22 pread 1 0 64 0
23 wait 11000
24 exit 1
25 compact
26 vmalloc 40
27 move_pages 0 4352 256 1 2
28 swapoff
"""
"""Anonymous memory, files in memory and on the disk, a fork, swap, and the kernel's own threads."""


@pytest.fixture(scope="module", params=["6.12", pytest.param("7.3", marks=pytest.mark.vm)])
def parts(
    request: pytest.FixtureRequest, cache: Path, tmp_path_factory: pytest.TempPathFactory
) -> Parts:
    work = tmp_path_factory.mktemp("computer")
    tree = fetch_tree(base_named(request.param), cache=cache, step=print)
    return build_parts(tree, [], FOLDER, cache=cache, work=work, step=print)


@pytest.fixture(scope="module")
def computer(parts: Parts, tmp_path_factory: pytest.TempPathFactory) -> Computer:
    work = tmp_path_factory.mktemp("linked")
    return parts.link(work, confinement=build_confinement(work, [work]))


def test_it_boots_and_takes_every_step_of_a_program(computer: Computer) -> None:
    code, said = computer.report(PROGRAM)
    steps = {one["line"]: one["returned"] for one in said if "returned" in one}
    assert (code, said[-1]["alarms"]) == (OK, 0), said[-3:]
    assert [steps[line] for line in (2, 4, 5, 18, 20, 28)] == [0] * 6
    assert [steps[line] for line in (3, 7, 19, 21)] == [512] * 4
    assert (steps[6], steps[12], steps[22], steps[27]) == (100, 64, 64, 256)
    assert steps[16] >= 600


def test_an_allocation_of_the_next_step_fails_when_it_is_asked_for(computer: Computer) -> None:
    text = "0 cpus 1\n1 memory 65536 0 0 0\n2 mmap 0 0 64 3 34 -1 0\n3 write 0 0 64 0\n"
    for line, (nr, step) in enumerate(
        ((1, "fork 0 1"), (5, "fork 0 2"), (1, "mprotect 0 3 6 1"), (1, "write 0 3 1 0")), 2
    ):
        text += f"{2 * line} fail {nr} 0 1\n{2 * line + 1} {step}\n"
    text += "20 fork 0 3\n21 read 0 0 64\n"
    code, said = computer.report(text)
    steps = {one["line"]: one["returned"] for one in said if "returned" in one}
    assert (code, said[-1]["alarms"]) == (OK, 0), said[-3:]
    assert {line: steps[line] for line in (5, 7, 9, 20, 21)} == {
        5: -ENOMEM, 7: -ENOMEM, 9: -ENOMEM, 20: 0, 21: 64,
    }  # fmt: skip


def test_an_allocation_that_is_tried_again_fails_if_several_in_a_row_do(computer: Computer) -> None:
    text = "p0 mmap a 4 anon private rw populate\nfail {}\np0 munmap a[1:2]\n"

    def returned(words: str) -> int:
        return Rig(computer).run(parse(text.format(words))).returned[3]

    for nr in range(2, 8):
        if returned(str(nr)) == -ENOMEM:
            assert returned(f"{nr - 1} times=2") == -ENOMEM
    assert returned("99 times=2") == 0


@pytest.mark.parametrize(
    ("step", "place", "is_interrupted"),
    [
        ("p0 move_pages a all node=1", 9, True),  # of which there are three for each page
        ("reclaim 64", 4, True),
        ("p0 mprotect a r", 999, False),  # which has fewer
    ],
)
def test_a_step_is_interrupted_by_the_next_one(
    computer: Computer, step: str, place: int, is_interrupted: bool
) -> None:
    text = "memory 512M 128M\ncpus 2\np0 mmap a 16 anon shared rw\np0 write a\np0 fork p1\n"
    text += f"p1 run_on cpu=1\np1 read a\ninterrupt {place}\n{step}\np1 write a\np0 exit\n"
    ran = Rig(computer).run(parse(text), shows=True)
    assert not ran.alarms
    assert ran.returned[10] == 16
    met = {one["line"]: one["interrupted_by"] for one in ran.said if "interrupted_by" in one}
    assert met == ({9: 10} if is_interrupted else {})
    assert 9 in ran.returned


def test_a_step_goes_on_if_the_one_that_interrupts_it_waits_for_it(computer: Computer) -> None:
    text = "p0 mmap a 512 anon private rw\np0 write a\ninterrupt 1\np0 fork p1\np0 munmap a\n"
    ran = Rig(computer).run(parse(text))
    assert (ran.alarms, ran.returned[4], ran.returned[5]) == ((), 0, 0)


def test_what_files_say_is_returned_where_it_is_one_number(computer: Computer) -> None:
    text = "p0 mmap a 4 anon private rw\np0 write a[0:3]\np0 mmap b 4 anon private rw populate\n"
    for asked in ("p0 call proc a x=1 y=1", "p0 call proc a x=1 y=2", "p0 call proc b x=1 y=3",
                  "show /proc/sys/vm/swappiness", "show /proc/vmstat"):  # fmt: skip
        text += f"{asked}\n"
    ran = Rig(computer).run(parse(text))
    assert not ran.alarms
    assert [ran.returned[line] for line in range(4, 9)] == [12, 0, 16, 60, 0]


@pytest.mark.parametrize(("fails", "nr_present"), [("", 1), ("fail 1 order=4\n", 0)])
def test_only_large_allocations_fail(computer: Computer, fails: str, nr_present: int) -> None:
    text = f"mthp 64K\np0 mmap a 512 anon private rw\n{fails}p0 write a[0]\n"
    ran = Rig(computer).run(parse(f"{text}p0 call pagemap_scan a[5] x=8\n"))
    assert not ran.alarms
    assert ran.returned[max(ran.returned)] == nr_present


def test_two_runs_of_a_program_end_in_the_same_state(computer: Computer) -> None:
    digests = {computer.report(PROGRAM)[1][-1]["digest"] for _ in range(3)}
    assert len(digests) == 1


def test_a_computer_is_the_same_to_the_byte_wherever_it_is_linked(
    kernel: Tree, cache: Path, tmp_path: Path
) -> None:
    """So what its programs execute need not be found again."""

    def linked(work: Path) -> bytes:
        parts = build_parts(kernel, [], FOLDER, cache=cache, work=work, step=print)
        return parts.link(work).program.read_bytes()

    assert linked(tmp_path / "one" / "base") == linked(tmp_path / "another" / "base")


def test_the_state_depends_neither_on_the_layout_nor_on_what_ram_held(
    computer: Computer, parts: Parts, tmp_path: Path
) -> None:
    order = drawn_order(range(len(parts.objects)), 1, "order")
    other = parts.link(tmp_path, order=order, pad_bytes=1984)
    ram = os.memfd_create("ram")
    digests = {
        one.report(PROGRAM, checks=Checks.LAST, ram=file)[1][-1]["digest"]
        for one, file in ((computer, None), (other, ram), (computer, ram))
    }
    os.close(ram)
    assert len(digests) == 1


def test_only_the_step_behind_measure_is_timed_by_its_calls_into_the_kernel(
    computer: Computer,
) -> None:
    lines = "1 mmap 0 0 64 3 34 -1 0\n2 measure\n2 write 0 0 64 0\n3 munmap 0 0 64\n"
    code, said = computer.report(lines)
    (timed,) = (one for one in said if "timed_ns" in one)
    whole = next(one for one in said if one.get("step") == "write")
    assert (code, timed["line"], timed["nr_timed"]) == (OK, 2, 64)
    assert 0 < timed["timed_ns"] < whole["ns"]


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("frob 1", "no such step"),
        ("munmap 0 0", "missing"),
        ("munmap 0 0 many", "no number"),
        ("munmap 0 0 1 2", "more arguments"),
    ],
)
def test_a_line_that_is_no_step_is_refused(computer: Computer, line: str, why: str) -> None:
    code, said = computer.report(f"1 {line}\n")
    assert code == USAGE
    assert why in said[-1]["why"]


def test_steps_that_mean_nothing_end_in_order(computer: Computer) -> None:
    lines = ("munmap 0 -1 1", "write 3 0 1 0", "mremap 0 5 1 1 3 5", "truncate 7 1", "unpin 0 0 9")
    code, said = computer.report("".join(f"{at} {line}\n" for at, line in enumerate(lines, 1)))
    assert code == OK
    assert said[-1]["alarms"] == 0


ADVISED = """\
1 mmap 0 0 8 3 34 -1 0
2 write 0 0 8 0
3 madvise 0 0 4 18
4 mmap 0 512 8 3 33 -1 0
5 write 0 512 8 0
6 fork 0 1
7 read 1 0 8
8 madvise 0 512 4 9
9 read 0 512 8
10 read 1 512 8
"""
"""MADV_WIPEONFORK, and MADV_REMOVE of memory that a child shares."""


def test_it_is_known_what_advice_does_to_contents(computer: Computer) -> None:
    code, said = computer.report(ADVISED)
    assert (code, said[-1]["alarms"]) == (OK, 0), said[-3:]
    returned = {one["line"]: one["returned"] for one in said if "returned" in one}
    assert [returned[line] for line in (7, 9, 10)] == [8, 8, 8]


def test_any_step_of_userfaultfd_may_be_the_first(computer: Computer) -> None:
    code, said = computer.report("1 mmap 0 0 8 3 34 -1 0\n2 uffd_unregister 0 0 8\n")
    returned = [one["returned"] for one in said if "returned" in one]
    assert (code, returned) == (OK, [0, 0]), said


RIGHT = {
    "a pin gives a page that is never written": """
p0 mmap a 1 anon private r
p0 call get_pages a x=7
p0 fork p1
p1 madvise a free
p0 read a
""",
    "all objects of a cache are given back": "p0 call slab x=257 y=2\n",
    "a step that is interrupted and the last one has not flushed yet": """
p0 mmap a 1 anon private rw
p0 write a
interrupt 1
p0 mprotect a r
""",
    "memory is checked while a step is interrupted that has not flushed yet": """
cpus 2
p0 mmap a 1 anon private rw
p0 write a
p0 fork p1
p0 run_on cpu=1
p0 write a
interrupt 1
p0 mprotect a r
p1 read a
""",
    "what was moved stays mapped if memory is short": """
p0 mmap a 2 anon shared rw
fail 4
p0 mremap a[0] b 1
p0 write a[0]
""",
    "a huge page that could not be split is freed with its broken page": """
p0 mmap a 512 anon private rw thp=always
p0 write a[0]
p0 pin a[342]
p0 madvise a[0] hwpoison
p0 unpin a[342]
p0 munmap a
set /proc/sys/vm/nr_hugepages 8
""",
    "a mapping of a part of a large entry says all of it": """
file h 2M huge
swap 6M device
p0 mmap a 1 h shared rw
p0 mmap b 512 h shared rw
p0 write b[0]
p0 madvise b pageout
p0 call proc x=1
""",
    "merged-page-in-swap": """\
swap 64M
p0 mmap a 2 anon private rw thp=never
p0 madvise a mergeable
p0 write a same=20480
set /sys/kernel/mm/ksm/run 1
wait 5s
reclaim 4000
reclaim 4000
reclaim 4000
p0 write a[0]
""",
    "path-of-a-file": """\
file f 1M shmem
p0 mmap a 1 f shared rw
p0 call proc
""",
    "poison of shared memory is not inherited": """
p0 mmap a 1 anon shared rw
p0 uffd_register a minor
p0 uffd_poison a
p0 fork p1
p1 write a
""",
    "poison of shared memory is discarded": """
p0 mmap a 1 anon shared rw
p0 uffd_register a minor
p0 uffd_poison a
p0 madvise a dontneed
p0 write a
""",
    "a hole in a file of huge pages takes private copies, too": """
file f 2M hugetlb
set /proc/sys/vm/nr_hugepages 2
p0 mmap a 512 f private rw
p0 write a[0]
fallocate f[0:512] punch
p0 read a[0]
""",
    "a pinned page that is not mapped any more is not counted by its mount": """
file f 2M limited
set /proc/sys/vm/nr_hugepages 4
p0 mmap a 512 f private rw
p0 pin a[0]
p0 munmap a
""",
    "a page that KSM merged keeps its anon_vma and the root of it": """
p0 mmap a 1 anon private rw
p0 fork p1
p1 write a same=20480
p1 madvise a mergeable
set /sys/kernel/mm/ksm/run 1
p1 fork p2
p1 exit
p0 fork p1
p1 write a same=20480
p1 madvise a mergeable
wait 37ms
""",
    "a file that grows keeps to its part of the disk": """
memory 64M 32M
file l 4K large
file d 4K disk
pwrite l[512]
fsync l
pwrite d[0]
fsync d
""",
    "a writer waits until the flusher has written": """
file b 6032K blocks
hog 22502
p0 mmap a 512 b+512 shared rw populate
set /proc/sys/vm/dirty_ratio 2
p0 write a same=20481
""",
    "a file of huge pages grows when it is mapped": """
file t 2M hugetlb
set /proc/sys/vm/nr_hugepages 4
p0 mmap a 512 t+512 shared rw
p0 write a
""",
    "a folio of more pages than may be dirty is never written": """
memory 64M 32M
file l 4K large
pwrite l[1024:1536]
p0 mmap a 512 l+1024 shared rw populate
set /proc/sys/vm/dirty_ratio 1
p0 write a
""",
    "the flusher holds folios that it writes": """
memory 512M 256M
file l 6M large
hog 14764
p0 mmap a 1536 anon private rw populate thp=never
pwrite l[0:512]
p0 mmap b 512 l shared rw populate
p0 read b[0:512]
fsync l
p0 pin b[175:178] write get
""",
    "a section in two zones stays online": """
boot movablecore 400M
p0 call offline x=1
""",
    "the huge zero page is pinned, and given up by all": """
p0 mmap a 512 anon private rw thp=always
p0 pin a[0]
p0 exit
set /proc/sys/vm/drop_caches 2
""",
    "userfaultfd protects only the pages that are there": """
p0 call uffd_present
p0 mmap a 16 anon private rw
p0 uffd_register a wp
p0 write a[3]
p0 uffd_wp a on
p0 write a[2:5]
p0 read a
""",
    "a file has a least order of folios, and none is to be had": """
file b 4K blocks
p0 mmap a 1 b shared r
fail 1 order=1
p0 read a[0]
""",
    "frames without a page are in memory, or not": """
file i 4K frames
p0 mmap a 1 i shared rw
p0 mincore a[0]
""",
    "a page is mapped once, by a table that two mappings share": """
boot hugepages 4
file u 1G hugetlb
p0 mmap v 262144 u shared rw noreserve
p0 write v[0]
p0 fork p1
p1 call pagemap v[8:11]
p0 exit
p1 fork p2
p2 mincore v[0]
""",
    "pages are in the memory of a device, and come back by faults": """
p0 mmap a 16 anon private rw
p0 write a[0:12]
p0 call to_device a
p0 fork p1
p0 call proc x=1
p0 call pagemap a
p0 mincore a
p0 read a
p1 write a[3]
p1 mprotect a r
p1 move_pages a node=0
p0 call to_device a[2:9]
p0 mremap a b 16
p1 exit
p0 munmap b[4]
""",
    "a page that KSM merged does not come back where rmap does not find its mapping": """
p0 mmap a 4 anon private rw
p0 write a[2:4] same=1
p0 madvise a[2:4] mergeable
set /sys/kernel/mm/ksm/run 1
wait 1s
p0 call to_device a[3]
p0 mremap a[3] b 1
p0 read a[2]
""",
    "a write to a page that was in the memory of a device need not be noted": """
p0 mmap a 2 anon private rw
p0 write a[0]
p0 call clear_refs x=4
p0 call to_device a
p0 write a
p0 call to_device a
p0 call clear_refs x=4
p0 write a
""",
    "a broken page of the pool counts as resident, or not": """
boot hugepages 4
p0 mmap a 1 anon private rw hugetlb
p0 write a[0]
p0 madvise a[0] hwpoison
p0 call proc x=1
""",
    "a page that was freed while it was broken stays so": """
p0 mmap a 512 anon private rw populate thp=always
p0 pin a[313]
p0 madvise a[0] hwpoison
p0 unpin a[313]
p0 call split a[1]
p0 call unpoison
""",
}
"""Programs that once raised an alarm for what is right."""

MAY_BE_REFUSED = ("hwpoison", "offline", "pin b[175:178] write")
"""The last of these never ends where less may be dirty than one folio has, and is killed."""


@pytest.mark.parametrize("text", RIGHT.values(), ids=RIGHT)
def test_what_is_right_raises_no_alarm(computer: Computer, text: str) -> None:
    for checks in (Checks.SOME, Checks.EACH):
        ran = Rig(computer).run(parse(text), checks)
        assert not ran.alarms
    refused = {at for at, result in ran.returned.items() if result < 0}
    lines = enumerate(text.splitlines(), 1)
    assert refused <= {at for at, line in lines if any(word in line for word in MAY_BE_REFUSED)}


def test_every_wrong_patch_of_what_is_hosted_is_listed_in_its_half() -> None:
    named = ("compact", "fork", "migrate", "mprotect", "mremap")
    paths = [str(one.relative_to(CHECKOUT)) for name in named for one in _wrong(name)]
    assert WRONG.read_text().splitlines() == [f"{_half(path):5} {path}" for path in paths]


def _wrong(experiment: str) -> list[Path]:
    return sorted((EXPERIMENTS / experiment / "wrong").glob("*.patch"))


def _half(path: str) -> str:
    is_even = int(hashlib.sha256(path.encode()).hexdigest(), 16) % 2 == 0
    return "blind" if is_even else "open"
