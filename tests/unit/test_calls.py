# SPDX-License-Identifier: GPL-2.0-only
"""Calls that leave no trace in memory are counted case by case, against the tree of a series."""

from collections.abc import Mapping
from types import MappingProxyType

import pytest

from ream.errors import WrongVariant
from ream.experiment import named
from ream.stage.calls import Calls
from ream.stage.hosted import programs_of
from ream.stage.native import Round

NOTHING: Mapping[str, int] = MappingProxyType({})


def a_round(
    row: str,
    freed: Mapping[str, int] = NOTHING,
    allocated: Mapping[str, int] = NOTHING,
    mapped: Mapping[str, int] = NOTHING,
    moved: Mapping[str, int] = NOTHING,
    **calls: int,
) -> Round:
    """What a runner says after a row: all calls of this launch so far."""
    by_name = {
        "__cond_resched": calls,
        "free_pages_and_swap_cache": freed,
        "vma_alloc_folio_noprof": allocated,
        "dma_map_page_attrs": mapped,
        "set_cpus_allowed_ptr": moved,
    }
    return Round(
        row,
        tuple(
            {"variant": variant, "name": name, "honesty": "stubbed", "calls": nr}
            for name, of in by_name.items()
            for variant, nr in of.items()
        ),
        1.0,
    )


def heard(*rounds: Round) -> Calls:
    calls = Calls({"mine": "base"}, programs_of(named("migrate"))[0].elsewhere)
    assert list(calls.counted(rounds, ("base", "mine"))) == list(rounds)
    return calls


def test_as_many_calls_as_the_tree_makes_or_more_are_right() -> None:
    heard(a_round("first", base=2, mine=2), a_round("second", base=3, mine=9)).check()


def test_one_call_less_in_one_case_is_wrong_however_many_there_are_in_others() -> None:
    calls = heard(a_round("first", base=2, mine=9), a_round("second", base=5, mine=11))
    with pytest.raises(WrongVariant, match=r"^second: mine: __cond_resched\(\) is called 2 times"):
        calls.check()


def test_a_series_that_makes_none_at_all_is_wrong() -> None:
    with pytest.raises(WrongVariant, match="is called 0 times, by base 2 times"):
        heard(a_round("only", base=2)).check()


def test_who_frees_in_fewer_calls_owes_two_less_for_each_and_no_more() -> None:
    freed = {"base": 3, "mine": 1}
    heard(a_round("row", freed, base=6, mine=2)).check()
    with pytest.raises(WrongVariant, match="is called 1 times, by base 6 times"):
        heard(a_round("row", freed, base=6, mine=1)).check()
    with pytest.raises(WrongVariant, match="is called 5 times, by base 6 times"):
        heard(a_round("row", {"base": 1, "mine": 3}, base=6, mine=5)).check()


def test_who_breaks_off_less_often_to_allocate_a_page_owes_one_less_for_each() -> None:
    allocated = {"base": 5, "mine": 2}
    heard(a_round("row", allocated=allocated, base=6, mine=3)).check()
    with pytest.raises(WrongVariant, match="is called 2 times, by base 6 times"):
        heard(a_round("row", allocated=allocated, base=6, mine=2)).check()


def test_who_gives_work_away_owes_no_cond_resched_in_that_case_and_all_else() -> None:
    heard(a_round("row", mapped={"mine": 1}, base=6)).check()
    with pytest.raises(WrongVariant, match=r"^next: mine: __cond_resched\(\) is called 5 times"):
        heard(
            a_round("row", mapped={"mine": 1}, base=6),
            a_round("next", mapped={"mine": 1}, base=12, mine=5),
        ).check()
    with pytest.raises(WrongVariant, match="is called 5 times, by base 6 times"):
        heard(a_round("row", mapped={"base": 1, "mine": 1}, base=6, mine=5)).check()
    with pytest.raises(WrongVariant, match=r"set_cpus_allowed_ptr\(\) is called 0 times"):
        heard(a_round("row", mapped={"mine": 1}, moved={"base": 1})).check()


def test_launches_count_from_nothing_and_trees_owe_no_calls_to_anybody() -> None:
    calls = Calls({"mine": "base"})
    both = ("base", "mine")
    for _ in range(2):
        list(calls.counted([a_round("row", base=4, mine=4), a_round("next", base=6, mine=6)], both))
    list(calls.counted([a_round("row", before=1)], ("before",)))
    calls.check()


def test_a_series_owes_nothing_where_it_is_not_linked() -> None:
    calls = Calls({"mine": "base", "left-out": "base"})
    list(calls.counted([a_round("row", base=4, mine=4)], ("base", "mine")))
    list(calls.counted([a_round("row", base=4)], ("base",)))  # a program of others
    calls.check()


def test_a_series_in_another_program_is_held_against_the_launch_of_its_tree() -> None:
    calls = Calls({"mine": "base"})
    list(calls.counted([a_round("row", mine=3)], ("mine",)))
    list(calls.counted([a_round("row", base=4)], ("base",)))
    with pytest.raises(WrongVariant, match="is called 3 times, by base 4 times"):
        calls.check()
