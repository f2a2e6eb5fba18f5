# SPDX-License-Identifier: GPL-2.0-only
"""Series that are not what their tree's facts predict: other layouts, and what is left open."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from ream.errors import UnhostedVariant, WrongVariant
from ream.experiment import IMPLIED, PATCHED, named
from ream.judge.question import Question
from ream.kernel.series import Patch, Series
from ream.measure.plan import Launch
from ream.progress import Reporter
from ream.record.journal import Journal
from ream.session import builds
from ream.session.builds import by_facts, check_pages
from ream.session.failing import (
    WRONG,
    failures,
    otherwise,
    otherwise_words,
    try_otherwise,
)
from ream.session.request import Request
from ream.stage.bench import Bench
from ream.stage.hosted import Otherwise, programs_of
from ream.stage.link import Kernel, Program
from ream.stage.native import Build
from ream.variants import Variant

SERIES = Series("mine", (Patch("1.patch", "change", b"1"),))
QUIET = Reporter(quiet=True)
WAY = Otherwise("LAST", 1, "does it last")


def program_of(_bench: Bench, launch: Launch) -> Program:
    return Program(Path("runner"), launch.link_order, Path("forbidden"))


def sorted_by(
    facts: Mapping[str, Mapping[str, int]],
    monkeypatch: pytest.MonkeyPatch,
    ways: Mapping[str, Otherwise],
) -> tuple[Mapping[str, int], list[Mapping[str, int]]]:
    """The kinds of kernels that have these facts, in two programs that both have the first."""
    kernels = {name: Kernel(name, (), (), (), ()) for name in facts}
    bench = Bench(Path(), kernels, {}, (), "")
    first, *others = facts
    launches = [Launch(n, 1, 0, (name, first)) for n, name in enumerate(others)]
    monkeypatch.setattr(Bench, "link", program_of)
    monkeypatch.setattr(
        builds, "read_facts", lambda its: ({"map": 4096}, {name: facts[name] for name in its.order})
    )
    found, kinds = by_facts(bench, launches, ways)
    assert all(one.addresses == {"map": 4096} for one in kinds)
    return found.tree_of, [one.facts for one in kinds]


def test_kernels_of_one_layout_are_of_one_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    facts = {key: {"sizeof.zone": 1472} for key in ("before", "again", "mine")}
    assert sorted_by(facts, monkeypatch, {}) == ({}, [{"sizeof.zone": 1472}])


def test_a_series_that_grows_a_structure_is_of_another_kind(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    old, new = {"sizeof.zone": 1472}, {"sizeof.zone": 1536}
    facts = {"before": old, "again": old, "mine": new, "other": old, "like": new}
    assert sorted_by(facts, monkeypatch, {}) == ({"mine": 1, "like": 1}, [old, new])


def test_what_is_open_takes_the_place_of_a_trees_fact(monkeypatch: pytest.MonkeyPatch) -> None:
    old = {"LAST": 0, "sizeof.page": 64}
    facts = {"before": old, "mine": old}
    found = sorted_by(facts, monkeypatch, {"mine": WAY})
    assert found == ({"mine": 1}, [old, {**old, "LAST": 1}])


def test_a_program_without_the_fact_is_as_its_tree(monkeypatch: pytest.MonkeyPatch) -> None:
    facts = {"before": {"a": 1}, "mine": {"a": 1}}
    assert sorted_by(facts, monkeypatch, {"mine": WAY}) == ({}, [{"a": 1}])


def test_a_page_of_another_size_is_told() -> None:
    bench = Bench(Path(), {}, {}, (), "", {"mine": 1})
    check_pages(bench, [Build({}, {"sizeof.page": 64}), Build({}, {"sizeof.page": 64, "a": 1})])
    with pytest.raises(UnhostedVariant, match="struct page has 80 bytes; .* written for 64"):
        check_pages(bench, [Build({}, {"sizeof.page": 64}), Build({}, {"sizeof.page": 80})])


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    opened = Journal(tmp_path / "journal")
    yield opened
    opened.close()


@pytest.fixture
def request_of(tmp_path: Path) -> Request:
    variants = (*(Variant(name, ()) for name in IMPLIED), Variant(PATCHED, (SERIES,), "before"))
    asked = Question(SERIES, None, tmp_path / "runs", tmp_path, 1)
    return asked.request(named("zone-device").at("native"), variants)


def test_the_other_way_is_tried_once_and_told(request_of: Request, journal: Journal) -> None:
    its, *_ = programs_of(request_of.experiment)
    (way,) = its.otherwise
    assert try_otherwise(WrongVariant("as the tree", PATCHED), request_of, journal, QUIET)
    assert otherwise(request_of, journal) == {PATCHED: way}
    (said,) = otherwise_words(request_of, journal, ())
    assert said == f"{PATCHED}: it {way.words}, which its tree does not"


def test_what_is_wrong_either_way_is_wrong_as_at_first(
    request_of: Request, journal: Journal
) -> None:
    assert try_otherwise(WrongVariant("as the tree", PATCHED), request_of, journal, QUIET)
    with pytest.raises(WrongVariant, match="as the tree"):
        try_otherwise(WrongVariant("otherwise", PATCHED), request_of, journal, QUIET)
    assert otherwise(request_of, journal) == {}


def test_where_another_is_left_the_wrong_one_is_left_out(
    request_of: Request, journal: Journal
) -> None:
    more = (*request_of.variants, Variant("other", (SERIES,), "before"))
    its = Request(**{**vars(request_of), "variants": more})
    for said in ("as the tree", "otherwise"):
        assert try_otherwise(WrongVariant(said, PATCHED), its, journal, QUIET)
    assert failures(journal, WRONG) == {PATCHED: "as the tree"}
    assert not try_otherwise(WrongVariant("again", PATCHED), its, journal, QUIET)


@pytest.mark.parametrize(
    "error", [UnhostedVariant("it reaches x()", PATCHED), WrongVariant("it is ours", "before")]
)
def test_nothing_is_open_for_others(
    request_of: Request, journal: Journal, error: WrongVariant
) -> None:
    assert not try_otherwise(error, request_of, journal, QUIET)
    assert otherwise(request_of, journal) == {}


def test_a_newer_kernel_has_no_way_back() -> None:
    """A series that undoes what a newer kernel promises has to stay wrong."""
    ways = [
        way
        for name in ("zone-device", "deferred-init")
        for way in programs_of(named(name))[0].otherwise
    ]
    assert [way.fact for way in ways] == ["HEADS_COME_LAST", "FREES_BY_RANGE"]
    assert all(way.over({way.fact: way.value}) == {way.fact: way.value} for way in ways)
