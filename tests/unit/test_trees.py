# SPDX-License-Identifier: GPL-2.0-only
"""Variants of several kernel sources: how they are asked for, and how their plans become one."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ream.errors import BadUsage, ReamError
from ream.experiment import named
from ream.kernel.base import base_named
from ream.kernel.source import Commit, at_commit, named_source
from ream.stage.runner_plan import plan_of_trees
from ream.variants import asked_variants, choose_variants, only_variants

FORK = named("fork")


def names(texts: list[str], **options: object) -> list[str]:
    return [one.name for one in asked_variants(FORK, texts, **options)[1]]  # type: ignore[arg-type]


def test_the_first_one_is_before_and_its_source_the_run_s() -> None:
    tree, variants = asked_variants(FORK, ["6.12", "7.3"])
    assert tree == base_named("6.12")
    assert [one.name for one in variants] == ["before", "before-again", "7.3"]
    assert [one.tree for one in variants] == [None, None, base_named("7.3")]
    assert not any(one.patches for one in variants)


def test_a_variant_has_series_of_ours_and_of_files(tmp_path: Path) -> None:
    patch = tmp_path / "mine.patch"
    patch.write_text("--- a/Makefile\n+++ b/Makefile\n@@ -1 +1 @@\n-a\n+b\n")
    _, variants = asked_variants(FORK, ["7.3", f"7.3+fork+{patch}", "new=latest"])
    ours, new = variants[2:]
    assert ours.name == "7.3+fork+mine"
    assert [one.name for one in ours.series] == ["7.3-fork", "mine"]  # ours as it is ported there
    assert ours.tree is None  # the run's own
    assert (new.name, new.tree) == ("new", base_named("latest"))


def test_an_experiment_s_own_variants_stand_on_the_run_s_source() -> None:
    tree, variants = asked_variants(FORK, ["before", "ream"], tree=base_named("7.2"))
    assert tree == base_named("7.2")
    assert [one.tree for one in variants] == [None] * 3
    assert [s.name for s in variants[0].series] == ["before-large-mapcount", "before-fork"]


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        (["6.13"], "6.13 is neither a kernel source nor one of"),
        (["6.12", "a=7.3", "a=7.2"], "two variants are called a"),
        (["6.12="], "nothing is neither"),
        (["6.12", "before"], "two variants are called before"),
        (["6.12+nowhere"], "nowhere"),
    ],
)
def test_what_there_is_not_is_said(texts: list[str], said: str) -> None:
    with pytest.raises(BadUsage, match=said):
        names(texts)


def test_the_run_s_source_is_named_once() -> None:
    with pytest.raises(BadUsage, match="leave --base or --tree out"):
        asked_variants(FORK, ["7.3"], tree=base_named("7.2"))


def test_only_some_variants_and_what_they_are_compared_with(tmp_path: Path) -> None:
    patch = tmp_path / "mine.patch"
    patch.write_text("--- a/Makefile\n+++ b/Makefile\n@@ -1 +1 @@\n-a\n+b\n")
    every = choose_variants(FORK, user_series=[patch])
    kept = [one.name for one in only_variants(every, ["before", "mine"])]
    assert kept == ["before", "before-again", "base", "mine", "base-again"]
    assert [one.name for one in only_variants(every, ["ream"])] == [
        "before",
        "before-again",
        "ream",
    ]
    with pytest.raises(BadUsage, match="--only raem: no variant.*ours"):
        only_variants(every, ["raem"])


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    place = tmp_path / "linux"
    place.mkdir()
    who = ("-c", "user.name=a", "-c", "user.email=a@b")
    for words in (("init", "--quiet"), ("commit", "--quiet", "--allow-empty", "-m", "one")):
        subprocess.run(("git", *who, *words), cwd=place, check=True)
    return place


def test_a_revision_of_a_work_tree_is_a_source(repository: Path) -> None:
    assert named_source(Path(f"{repository}@HEAD")) == Commit(repository, "HEAD")
    assert named_source(repository) == repository
    assert named_source(Path("nowhere@HEAD")) == Path("nowhere@HEAD")


def test_a_base_commit_is_taken_where_the_work_tree_has_it(repository: Path) -> None:
    head = subprocess.run(
        ("git", "rev-parse", "HEAD"), cwd=repository, check=True, capture_output=True, text=True
    ).stdout.strip()
    assert at_commit(repository, {head}) == Commit(repository, head)
    assert at_commit(repository, {"0" * 40}) == repository
    assert at_commit(repository, {head, "0" * 40}) == repository
    assert at_commit(None, {head}) is None


@contextmanager
def plan(place: Path, text: str, number: int) -> Iterator[tuple[Path, tuple[int, ...]]]:
    place.write_text(text)
    yield place, (number,)


def test_plans_of_two_trees_take_turns(tmp_path: Path) -> None:
    plans = (plan(tmp_path / "a", "a1\na2\n", 3), plan(tmp_path / "b", "b1\nb2\n", 4))
    with plan_of_trees(plans, tmp_path) as (path, numbers):
        assert path.read_text() == "a1\nb1\na2\nb2\n"
        assert numbers == (3, 4)
    alone = plan(tmp_path / "a", "a1\n", 3)
    with plan_of_trees((alone,), tmp_path) as (path, _):
        assert path == tmp_path / "a"


def test_plans_that_ask_for_different_rows_are_refused(tmp_path: Path) -> None:
    plans = (plan(tmp_path / "a", "a1\n", 3), plan(tmp_path / "b", "b1\nb2\n", 4))
    with (
        pytest.raises(ReamError, match="not asked for the same rows"),
        plan_of_trees(plans, tmp_path),
    ):
        pass
