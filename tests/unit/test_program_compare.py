# SPDX-License-Identifier: GPL-2.0-only
"""What two kernels did with the same program, compared."""

from ream.program.compare import Difference, differences
from ream.program.rules import Kernel
from ream.program.text import parse

SWAPS = parse("""\
swap 64M
p0 mmap a 4 anon private rw
p0 write a
p0 madvise a pageout
p0 mincore a
p0 munmap a
""")
SAME = Kernel((6, 12), has_swap=True)


def step(line: int, returned: int, *vmas: str, **rss: int) -> list[dict]:
    """What a kernel reports of a step of p0."""
    its = [{"line": line, "process": 0, "vma": [0, 4, "rw-p", 0, flags]} for flags in vmas]
    kinds = [rss.get(kind, 0) for kind in ("anon", "file", "shmem", "swap")]
    return [{"line": line, "returned": returned}, *its, {"line": line, "process": 0, "rss": kinds}]


HOSTED = [
    *step(1, 0),
    *step(2, 0, "ac"),
    *step(3, 4, "ac", anon=4),
    *step(4, 0, "ac", swap=4),
    *step(5, 0, "ac", swap=4),
    *step(6, 0),
]


def found(elsewhere: list[dict], kernel: Kernel = SAME) -> list[Difference]:
    return differences(SWAPS, HOSTED, elsewhere, kernel)


def test_kernels_that_do_the_same_differ_in_nothing() -> None:
    assert found(HOSTED) == []


def test_words_of_a_vma_that_follow_from_others_and_their_order_do_not_matter() -> None:
    twice = step(2, 0, "ac nh")
    others = step(2, 0, "rd wr mr nh mw me ac sd")
    assert differences(SWAPS, twice, others, SAME) == []
    (one,) = differences(SWAPS, twice, step(2, 0, "rd ac"), SAME)
    assert str(one) == (
        "line 2: p0 mmap a 4 anon private rw: VMAs of p0: 0-4 rw-p 0 ac, hosted 0-4 rw-p 0 ac nh"
    )


def test_a_step_that_one_kernel_skipped_is_not_compared() -> None:
    skipped = {"line": 1, "skipped": "swapon"}
    assert found([skipped, *HOSTED[2:]]) == []


def test_another_result_is_a_difference_without_a_rule() -> None:
    (one,) = found([*HOSTED[:-2], *step(6, -22)])
    assert (one.line, one.what, one.hosted, one.elsewhere, one.why) == (6, "returned", 0, -22, None)


def test_a_process_that_dies_is_a_difference() -> None:
    (one,) = found([*HOSTED[:-2], *step(6, 0), {"line": 6, "died": 0}])
    assert (one.what, one.elsewhere, one.why) == ("died", 0, None)


WITHOUT_SWAP = [
    *HOSTED[:5],
    *step(4, 0, "ac", anon=4),
    *step(5, 4, "ac", anon=4),
    *step(6, 0),
]


def test_a_rule_explains_what_begins_at_its_step_and_what_follows_in_the_same_respects() -> None:
    its = found(WITHOUT_SWAP, Kernel((6, 12), has_swap=False))
    assert [(one.line, one.what) for one in its] == [
        *((4, "anon of p0"), (4, "swap of p0"), (5, "anon of p0"), (5, "returned")),
        (5, "swap of p0"),
    ]
    assert {one.why for one in its} == {"it has no swap"}


def test_a_rule_about_another_kernel_explains_nothing() -> None:
    assert {one.why for one in found(WITHOUT_SWAP)} == {None}


def test_a_rule_does_not_explain_what_begins_at_another_step() -> None:
    early = [*HOSTED[:5], *step(3, 4, "ac", anon=3), *HOSTED[8:]]
    (one,) = found(early, Kernel((6, 12), has_swap=False))
    assert (one.line, one.why) == (3, None)


HUGE = parse("p0 mmap a 512 anon private rw thp=always\np0 write a[0]\n")


def test_another_kernel_has_small_pages_where_a_huge_one_was_asked_for() -> None:
    hosted = [*step(1, 0, "hg"), *step(2, 1, "hg", anon=512)]
    (one,) = differences(
        HUGE, hosted, [*hosted[:3], *step(2, 1, "hg", anon=16)], Kernel((6, 12), is_shared=True)
    )
    assert one.why == "its settings and its free memory decide how large a huge page is"


def test_a_kernel_that_only_this_program_uses_has_a_huge_page_where_it_was_asked_for() -> None:
    hosted = [*step(1, 0, "hg"), *step(2, 1, "hg", anon=512)]
    (one,) = differences(HUGE, hosted, [*hosted[:3], *step(2, 1, "hg", anon=16)], SAME)
    assert one.why is None
