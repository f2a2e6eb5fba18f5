# SPDX-License-Identifier: GPL-2.0-only
"""Fork and unmap leave what the oracle says, in every variant; and a wrong one never passes.

Only what is in memory in the end is compared. A plain store where another CPU may be at the same
word shows in nothing here, such as PG_anon_exclusive cleared by the byte in the first two pages
of a folio, whose flags others change at any time.
"""

import json
import random
from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import islice, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from experiments.fork.cases import story
from experiments.fork.oracle.cases import ANON_ORDERS, correctness_mappings
from experiments.fork.oracle.mixture import random_mapping
from experiments.fork.plan import Case, plan_of, written_plan
from experiments.fork.rows import PMD_BYTES, ForkRow
from ream.errors import VerificationFailed
from ream.experiment.shape import PAGE_BYTES
from ream.oracle.mapping import Mapping
from ream.stage.differences import RSS

# One worker has them all, so that one program of each kind is linked.
pytestmark = pytest.mark.xdist_group("fork-images")

PATCHES = Path(__file__).parent / "patches"

OPERATIONS = ("fork", "refork", "munmap", "munmap-shared", "exit")

BUILDS = pytest.mark.vm
"""A kernel's objects of its own each: all but a few of each kind are for `make test-vm`."""

NR_MIXTURES = 60
MAPPINGS_PER_LAUNCH = 12
"""Their arrays are files that a runner has open: some sixty of each mapping."""

BATCHED = ("published", "ream")
SINGLE = ("before",)


def nr_acts(mapping: Mapping) -> int:
    """Number of acts on a mapping. An anonymous one has one less: it is never truncated."""
    return 16 if mapping.anonymous else 17


def in_one_way(case: Case, *, batched: bool) -> Case:
    """The case with one answer only: of a kernel that takes batches, or of one that does not."""
    return replace(case, after=case.after if batched else case.single, single=None)


def check(rig, cases: Iterable[Case]) -> int:
    """Run cases in one launch; how many samples were as they must be."""
    with written_plan(cases, rig.bench.work) as (plan, descriptors):
        samples, _ = rig.run_plan(plan, descriptors)
    assert all(sample.verified for sample in samples)
    return len(samples)


def check_mappings(rig, mappings: Iterable[tuple[str, Mapping]], *, batched: bool) -> int:
    rest, nr = iter(mappings), 0
    while some := dict(islice(rest, MAPPINGS_PER_LAUNCH)):
        nr += check(
            rig,
            (
                in_one_way(case, batched=batched)
                for name, mapping in some.items()
                for case in story(name, mapping, rig.build)
            ),
        )
    return nr


def check_rows(rig, rows: Iterable[ForkRow]) -> int:
    with plan_of(tuple(rows), None, rig.build, rig.bench.work) as (plan, descriptors):
        samples, _ = rig.run_plan(plan, descriptors)
    assert all(sample.verified for sample in samples)
    return len(samples)


def row(operation: str, order: int, pre_state: str = "warm", mm_users: int = 1) -> ForkRow:
    return ForkRow(
        name=f"{operation}-{order}-{pre_state}",
        folio_bytes=PAGE_BYTES << order,
        mapping_bytes=4 * PMD_BYTES,
        operation=operation,
        pre_state=pre_state,
        mm_users=mm_users,
        rounds=1,
    )


@pytest.fixture(scope="module")
def batched_rig(fork_rig):
    return fork_rig.only(*BATCHED)


@pytest.fixture(scope="module")
def single_rig(fork_rig):
    return fork_rig.only(*SINGLE)


def mappings_of(rig) -> dict[str, Mapping]:
    """Those whose every entry the build has."""
    return {
        name: mapping
        for name, mapping in correctness_mappings().items()
        if not mapping.missing_facts(rig.build.facts)
    }


def test_the_build_can_hold_every_entry_but_those_of_later_kernels(fork_rig) -> None:
    missing = {
        fact
        for mapping in correctness_mappings().values()
        for fact in mapping.missing_facts(fork_rig.build.facts)
    }
    assert missing == {"SWP_DEVICE_EXCLUSIVE"}


def test_batches_do_what_the_oracle_says_at_every_edge(batched_rig) -> None:
    mappings = mappings_of(batched_rig)
    nr = check_mappings(batched_rig, mappings.items(), batched=True)
    assert nr == len(BATCHED) * sum(map(nr_acts, mappings.values()))


def test_one_entry_at_a_time_does_what_the_oracle_says_at_every_edge(single_rig) -> None:
    mappings = mappings_of(single_rig)
    nr = check_mappings(single_rig, mappings.items(), batched=False)
    assert nr == len(SINGLE) * sum(map(nr_acts, mappings.values()))


@pytest.mark.vm
def test_batches_do_what_the_oracle_says_of_mixtures(batched_rig) -> None:
    mixtures = ((f"mixture-{seed}", random_mapping(seed)) for seed in range(NR_MIXTURES))
    check_mappings(batched_rig, mixtures, batched=True)


def test_one_entry_at_a_time_does_what_the_oracle_says_of_mixtures(single_rig) -> None:
    mixtures = ((f"mixture-{seed}", random_mapping(seed)) for seed in range(NR_MIXTURES // 2))
    check_mappings(single_rig, mixtures, batched=False)


def test_a_kernel_without_batches_does_not_pass_for_one_with_them(single_rig, batched_rig) -> None:
    mappings = mappings_of(single_rig)
    for name in ("soft-dirty-untracked", "soft-dirty-untracked-first-not", "anon-order-2"):
        some = [(name, mappings[name])]
        with pytest.raises(VerificationFailed, match=f"{name}/.*: before: "):
            check_mappings(single_rig, some, batched=True)
        with pytest.raises(VerificationFailed, match=f"{name}/.*: (published|ream): "):
            check_mappings(batched_rig, some, batched=False)


def test_where_both_answers_are_allowed_a_kernel_keeps_to_one(fork_rig) -> None:
    mapping = correctness_mappings()["soft-dirty-untracked"]
    build = fork_rig.build
    first = next(story("first", mapping, build))
    then = next(story("then", mapping, build))
    check(fork_rig, (first, first))
    with pytest.raises(VerificationFailed, match="then/fork: .*: the child's entry "):
        check(fork_rig, (first, replace(then, after=then.single, single=then.after)))


@pytest.mark.parametrize("operation", OPERATIONS)
def test_what_is_timed_is_right_for_every_size_warm_and_cold(fork_rig, operation: str) -> None:
    rows = [row(operation, *how) for how in product(ANON_ORDERS, ("warm", "cold"), (1, 2))]
    nr = check_rows(fork_rig, rows)
    limits = 2
    assert nr == len(rows) * (len(fork_rig.launch.link_order) + limits)


def _flipped(words: NDArray[Any], at: int, bit: int) -> NDArray[Any]:
    changed = words.copy()
    changed.reshape(-1).view(np.uint8)[at] ^= 1 << bit
    return changed


def _one_more(rss: tuple[int, ...], at: int) -> tuple[int, ...]:
    return tuple(value + (number == at) for number, value in enumerate(rss))


@pytest.mark.parametrize("seed", range(12))
def test_one_flipped_bit_of_the_prediction_is_found_wherever_it_is(batched_rig, seed: int) -> None:
    # What a kernel did and its prediction are compared, so a bit of either is the same test.
    draw = random.Random(seed)
    mapping = correctness_mappings()["pinned-among-others"]
    some = [case for case in story("case", mapping, batched_rig.build) if not case.overlapped]
    case = in_one_way(draw.choice(some), batched=True)
    check(batched_rig, [case])
    part, words = draw.choice(
        [
            ("parent", "the parent's entry"),
            ("descriptors", r"page->.+ of descriptor"),
            *([("child", "the child's entry")] if case.after.child is not None else []),
        ]
    )
    held = getattr(case.after, part)
    at = draw.randrange(held.nbytes)
    wrong = replace(case.after, **{part: _flipped(held, at, draw.randrange(8))})
    unit = 64 if part == "descriptors" else 8
    with pytest.raises(VerificationFailed, match=f"{case.name}: .*: {words} {at // unit} is "):
        check(batched_rig, [replace(case, after=wrong)])


@pytest.mark.parametrize("at", range(4))
@pytest.mark.parametrize("whose", ["parent", "child"])
def test_a_counter_of_either_process_that_is_one_off_is_found(
    batched_rig, whose: str, at: int
) -> None:
    mapping = correctness_mappings()["pinned-among-others"]
    case = in_one_way(next(story("case", mapping, batched_rig.build)), batched=True)
    name = f"{whose}_rss"
    wrong = replace(case.after, **{name: _one_more(getattr(case.after, name), at)})
    with pytest.raises(VerificationFailed, match=f"the {whose}'s {RSS[at]} is "):
        check(batched_rig, [replace(case, after=wrong)])


@pytest.mark.parametrize(
    ("calls", "said"),
    [
        ("freed", "folios freed"),
        ("deferred", r"calls of deferred_split_folio\(\)"),
        ("swap_duplicates", r"calls of swap_duplicate\(\)"),
        ("swap_frees", r"calls of free_swap_and_cache\(\)"),
        ("dirtied", r"calls of folio_mark_dirty\(\)"),
        ("accessed", r"calls of folio_mark_accessed\(\)"),
    ],
)
def test_a_call_too_few_is_found(batched_rig, calls: str, said: str) -> None:
    mapping = correctness_mappings()["private-file-written-in-part"]
    case = in_one_way(list(story("case", mapping, batched_rig.build))[-1], batched=True)
    made = getattr(case.after.calls, calls)
    more = made + 1 if isinstance(made, int) else _one_call_more(made)
    wrong = replace(case.after, calls=replace(case.after.calls, **{calls: more}))
    with pytest.raises(VerificationFailed, match=rf"case/.*: {said} is \d+, and \d+ is right"):
        check(batched_rig, [replace(case, after=wrong)])


def _one_call_more(by_folio: NDArray[Any]) -> NDArray[Any]:
    more = by_folio.copy()
    more[0] += 1
    return more


def test_a_copy_that_does_not_hold_what_the_page_held_is_found(batched_rig) -> None:
    mapping = correctness_mappings()["pinned-small"]
    case = in_one_way(next(story("case", mapping, batched_rig.build)), batched=True)
    ((source, copy),) = case.after.calls.copies
    elsewhere = ((source + 1, copy),)
    said = (
        f"case/fork: .*: frame {copy} is not the copy of frame {source + 1} that it must be\n"
        r".*case/fork: .*: its byte 0 is [0-9a-fx]+, and [0-9a-fx]+ is right"
    )
    wrong = replace(case.after, calls=replace(case.after.calls, copies=elsewhere))
    with pytest.raises(VerificationFailed, match=said):
        check(batched_rig, [replace(case, after=wrong)])


@pytest.mark.parametrize(
    ("patch", "series", "operation", "said"),
    [
        (
            *("fork-child-young", (), "fork"),
            r"the child's entry 0 is accessed, and must not be: .* \(0x\w+25, where 0x\w+05 is",
        ),
        pytest.param(
            "fork-exclusive-kept", (), "fork", r"page->\S+ of descriptor 9 is ", marks=BUILDS
        ),
        pytest.param(
            "fork-reference-missing", (), "fork", r"page->\S+ of descriptor 0 is ", marks=BUILDS
        ),
        pytest.param(
            "fork-mapcount-missing", (), "refork", r"page->\S+ of descriptor 9 is ", marks=BUILDS
        ),
        pytest.param("fork-parent-writable", (), "fork", "the parent's entry 15 is ", marks=BUILDS),
        pytest.param(
            "fork-unmap-entry-left", (), "munmap-shared", "the parent's entry 15 is ", marks=BUILDS
        ),
        pytest.param(
            "fork-dirty-not-moved",
            ("rmap-exclusive", "pte-hw-done", "fork"),
            "fork",
            "the parent's entry 0 is ",
            marks=BUILDS,
        ),
    ],
)
def test_one_wrong_word_of_a_timed_row_stops_the_run(
    wrong_fork: Callable, patch: str, series: tuple[str, ...], operation: str, said: str
) -> None:
    wrong = wrong_fork(patch, series)
    with pytest.raises(VerificationFailed, match=f"{operation}-4-warm: {patch}: {said}"):
        check_rows(wrong, [row(operation, 4)])


@pytest.mark.parametrize(
    ("patch", "mapping", "said"),
    [
        pytest.param(
            "fork-clean-taken-for-dirty",
            "one-clean-private",
            "fork: .*: the parent's entry 7 is ",
            marks=BUILDS,
        ),
        pytest.param(
            "fork-fourth-entry-unasked",
            "alike-but-3-clean",
            "fork: .*: the child's entry 3 is ",
            marks=BUILDS,
        ),
        pytest.param(
            "fork-file-taken-for-anonymous",
            "private-file-mapped-to-disk-order-4",
            r"parent-first-unmap: .*: page->\S+ of descriptor ",
            marks=BUILDS,
        ),
        pytest.param(
            "fork-mapcount-unasked",
            "anon-order-4",
            r"second-child: .*: page->\S+ of descriptor 0 ",
            marks=BUILDS,
        ),
        ("fork-last-mapping-dropped", "anon-order-0", "never-forked-exit: .*: folios freed"),
        pytest.param(
            "fork-last-tail-dropped",
            "pinned-last-exclusive",
            r"parent-first-exit: .*: calls of deferred_split_folio\(\) is ",
            marks=BUILDS,
        ),
    ],
)
def test_what_timed_rows_cannot_tell_is_found_where_the_edge_is(
    wrong_fork: Callable, patch: str, mapping: str, said: str
) -> None:
    wrong = wrong_fork(patch, ("rmap-exclusive", "pte-hw-done", "fork"))
    check_rows(wrong, [row(operation, 4) for operation in OPERATIONS])
    some = [("case", correctness_mappings()[mapping])]
    with pytest.raises(VerificationFailed, match=f"case/{said}"):
        check_mappings(wrong, some, batched=True)


EXPERIMENT = """
name = "fork"
question = "Is a small one measured?"
launches = 1
boots = 1

[variants]
before = ["before/large-mapcount", "before/fork"]
published = ["before/large-mapcount"]
base = []
ream = ["rmap-exclusive", "pte-hw-done", "fork"]

[[rows]]
name = "small"
folio_bytes = "64KiB"
mapping_bytes = "8MiB"
rounds = 1
"""


def test_a_run_measures_all_four_and_says_so(ream, tmp_path: Path) -> None:
    file = tmp_path / "small.toml"
    file.write_text(EXPERIMENT)
    ran = ream("run", str(file), "--json")
    assert ran.code == 0, ran.err
    said = json.loads(ran.out)
    (measured,) = said["rows"]
    assert (said["experiment"], measured["row"]) == ("fork", "small")
    assert measured["params"]["nr_ptes"] == 2048
    assert set(measured["variants"]) == {"before", "before-again", "published", "base", "ream"}
    assert all(variant["verified"] for variant in measured["variants"].values())


def test_a_wrong_series_ends_with_exit_5_and_no_record(ream, tmp_path: Path) -> None:
    file = tmp_path / "small.toml"
    file.write_text(EXPERIMENT)
    ran = ream("run", str(file), "--series", str(PATCHES / "fork-child-young.patch"))
    assert (ran.code, ran.out) == (5, "")
    assert ": fork-child-young: the child's entry 0 is " in ran.err
    assert not list((tmp_path / "data/ream/runs").iterdir())
