# SPDX-License-Identifier: GPL-2.0-only
"""`ream bisect`: which commits are taken for good and for bad, and where the search ends."""

import math
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from ream.errors import BadUsage, Inconclusive, ReamError
from ream.experiment import named
from ream.progress import Reporter
from ream.report.contract import Ratio
from ream.session import bisect as module
from ream.session.bisect import BAD, GOOD, SHORT, SKIP, Found, bisect, verdict_of
from ream.session.request import CountOptions, Request

NR_COMMITS = 20
SLOWER = 1.3
NOISE = Ratio(ratio=0.9, low=0.4, high=1.6)


def git(place: Path, *words: str) -> str:
    who = ("-c", "user.name=a", "-c", "user.email=a@b")
    return subprocess.run(
        ("git", *who, *words), cwd=place, check=True, capture_output=True, text=True
    ).stdout.strip()


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """A repository whose commits each write their number into its only file."""
    place = tmp_path_factory.mktemp("repository")
    git(place, "init", "--quiet")
    commits = []
    for number in range(NR_COMMITS + 1):
        (place / "number").write_text(f"{number}\n")
        git(place, "add", "number")
        git(place, "commit", "--quiet", "-m", f"change {number}")
        commits.append(git(place, "rev-parse", "HEAD"))
    return place, commits


def ratio(middle: float, pct: float = 2.0) -> Ratio:
    return Ratio(ratio=middle, low=middle * (1 - pct / 100), high=middle * (1 + pct / 100))


def result(its: Ratio, cpu: Ratio | None = None) -> SimpleNamespace:
    """What a run says of a variant: `cpu` where one CPU does the work."""
    threads = 4 if cpu is None else 1
    return SimpleNamespace(threads=threads, cpu_over_before=cpu, **its.model_dump())


def measured(
    times: Callable[[str], Ratio | ReamError], asked: list[Request], *, alone: bool = False
) -> Callable[[Request, Reporter], SimpleNamespace]:
    """A run whose ratios are made up, by the commit that a variant is named after.

    alone: they are ratios of CPU time, and the times say nothing.
    """

    def run(request: Request, _: Reporter) -> SimpleNamespace:
        asked.append(request)
        variants = {}
        for one in request.variants:
            its = times(one.name) if len(one.name) == SHORT else ratio(1.0, 1.0)
            if isinstance(its, ReamError):
                raise its
            variants[one.name] = result(NOISE, its) if alone else result(its)
        row = SimpleNamespace(row="fork-4k", floor=ratio(1.0, 1.0), variants=variants, counted=None)
        return SimpleNamespace(summary=SimpleNamespace(rows=(row,)), path=Path(f"run-{len(asked)}"))

    return run


def request_of(place: Path, cache: Path) -> Request:
    return Request(
        experiment=named("fork").at("native").only(["fork-4k"]),
        stage="native",
        variants=(),
        tree=place,
        threads=None,
        seed=1,
        runs=cache / "runs",
        cache=cache,
        command="ream bisect",
    )


def found(
    history: tuple[Path, list[str]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    times: Callable[[str], Ratio | ReamError],
) -> tuple[Found, list[Request]]:
    place, commits = history
    asked: list[Request] = []
    monkeypatch.setattr(module, "run_session", measured(times, asked))
    request = request_of(place, tmp_path / "cache")
    return bisect(request, commits[0], commits[-1], Reporter(quiet=True)), asked


@pytest.mark.parametrize("culprit", [1, 2, 7, 14, NR_COMMITS])
@pytest.mark.parametrize("effect", [SLOWER, 1 / SLOWER])
def test_the_commit_from_which_on_it_is_so_is_found(
    history: tuple[Path, list[str]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    culprit: int,
    effect: float,
) -> None:
    _, commits = history
    late = {one[:SHORT] for one in commits[culprit:]}
    its, asked = found(
        history, tmp_path, monkeypatch, lambda one: ratio(effect if one in late else 1.0)
    )
    assert its.commits == (commits[culprit],)
    assert its.subject == f"change {culprit}"
    assert its.own == ratio(effect)
    assert len(its.steps) <= math.ceil(math.log2(NR_COMMITS)) + 1
    assert {step.verdict for step in its.steps} <= {GOOD, BAD}
    # Its own effect is measured against the commit before it, which is patches of the good one.
    assert {str(one.tree) for one in asked} == {f"{history[0]}@{commits[0]}"}
    before = {one.name: one for one in asked[-1].variants}["before"]
    assert [patch.name for patch in before.patches] == (
        [f"{commits[culprit - 1][:SHORT]}.diff"] if culprit > 1 else []
    )
    assert its.to_object()["commits"] == [commits[culprit]]


def test_the_culprit_s_own_effect_is_launched_more_often_until_it_is_none_or_one(
    history: tuple[Path, list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, commits = history
    late = {one[:SHORT] for one in commits[7:]}
    alone: list[Request] = []

    def times(one: str) -> Ratio | ReamError:
        latest = asked[-1]
        if len(latest.variants) == 3 and one == commits[7][:SHORT]:
            alone.append(latest)
            return ratio(1.05, 10 / len(alone))
        return ratio(SLOWER if one in late else 1.0)

    asked: list[Request] = []
    monkeypatch.setattr(module, "run_session", measured(times, asked))
    request = request_of(history[0], tmp_path / "cache")
    its = bisect(request, commits[0], commits[-1], Reporter(quiet=True))
    assert its.own == ratio(1.05, 10 / 3)
    launches = [one.experiment.launches for one in alone]
    assert launches == [launches[0] * times for times in (1, 2, 4)]


def test_what_does_not_build_is_skipped_and_the_search_goes_on_around_it(
    history: tuple[Path, list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, commits = history
    late = {one[:SHORT] for one in commits[15:]}
    middle = commits[10][:SHORT]

    def times(one: str) -> Ratio | ReamError:
        return ReamError("make: error") if one == middle else ratio(SLOWER if one in late else 1)

    its, _ = found(history, tmp_path, monkeypatch, times)
    assert its.commits == (commits[15],)
    assert [step.said for step in its.steps if step.verdict == SKIP] == ["make: error"]


def test_skipped_commits_around_the_culprit_are_all_named(
    history: tuple[Path, list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, commits = history
    broken = {one[:SHORT] for one in commits[9:12]}
    late = {one[:SHORT] for one in commits[12:]}

    def times(one: str) -> Ratio | ReamError:
        return ReamError("no") if one in broken else ratio(SLOWER if one in late else 1)

    its, _ = found(history, tmp_path, monkeypatch, times)
    assert set(its.commits) == set(commits[9:13])
    assert its.own is None


def test_what_is_undecided_is_launched_more_often_and_then_skipped(
    history: tuple[Path, list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, commits = history
    late = {one[:SHORT] for one in commits[15:]}
    noisy = commits[10][:SHORT]
    its, asked = found(
        history,
        tmp_path,
        monkeypatch,
        lambda one: ratio(1.1, 20) if one == noisy else ratio(SLOWER if one in late else 1),
    )
    (step,) = (one for one in its.steps if one.verdict == SKIP)
    assert len(step.records) == 3
    launches = [
        one.experiment.launches
        for one in asked
        if noisy in {variant.name for variant in one.variants}
    ]
    assert launches == [launches[0] * times for times in (1, 2, 4)]
    assert its.commits == (commits[15],)


def test_ends_that_do_not_differ_leave_nothing_to_search_for(
    history: tuple[Path, list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(Inconclusive, match="nothing to search for"):
        found(history, tmp_path, monkeypatch, lambda _: ratio(1.005))


def test_a_repository_need_have_nothing_checked_out(
    history: tuple[Path, list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, commits = history
    bare = tmp_path / "bare"
    git(tmp_path, "clone", "--quiet", "--no-checkout", str(place), str(bare))
    git(bare, "symbolic-ref", "HEAD", "refs/heads/nowhere")
    late = {one[:SHORT] for one in commits[7:]}
    its, _ = found(
        (bare, commits), tmp_path, monkeypatch, lambda one: ratio(SLOWER if one in late else 1.0)
    )
    assert its.commits == (commits[7],)


def test_one_commit_between_good_and_bad_is_the_one(
    history: tuple[Path, list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, commits = history
    two = (place, commits[:2])
    its, _ = found(
        two, tmp_path, monkeypatch, lambda one: ratio(SLOWER if one == commits[1][:SHORT] else 1.0)
    )
    assert (its.commits, its.steps) == ((commits[1],), ())


def test_where_one_cpu_does_the_work_its_cpu_time_tells(
    history: tuple[Path, list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, commits = history
    late = {one[:SHORT] for one in commits[7:]}
    run = measured(lambda one: ratio(SLOWER if one in late else 1.0), [], alone=True)
    monkeypatch.setattr(module, "run_session", run)
    its = bisect(
        request_of(place, tmp_path / "cache"), commits[0], commits[-1], Reporter(quiet=True)
    )
    assert its.commits == (commits[7],)
    assert its.to_object()["quantity"] == "CPU time"
    assert its.own == ratio(SLOWER)


def test_two_threads_are_told_by_the_time_they_take(
    history: tuple[Path, list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, commits = history
    late = {one[:SHORT] for one in commits[7:]}
    its, _ = found(
        history, tmp_path, monkeypatch, lambda one: ratio(SLOWER if one in late else 1.0)
    )
    assert its.to_object()["quantity"] == "time"


SAME_CODE = {"instructions": 1000, "loads": 300, "locked": 20}


def hunted_by_counts(
    history: tuple[Path, list[str]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    slower: dict[str, int],
    *,
    repeats: bool = True,
) -> Found:
    """A hunt for commit 7, from which on a sample executes something else."""
    place, commits = history
    late = {one[:SHORT] for one in commits[7:]}

    def run(request: Request, _: Reporter) -> SimpleNamespace:
        names = [one.name for one in request.variants]
        counts = {one: slower if one in late else SAME_CODE for one in names}
        its = SimpleNamespace(variants=counts, repeats=repeats)
        row = SimpleNamespace(row="fork-4k", floor=None, variants={}, counted=its)
        if request.tree.revision in late:  # type: ignore[union-attr]
            pytest.fail("what is compared with is the good commit")
        return SimpleNamespace(summary=SimpleNamespace(rows=(row,)), path=Path("run"))

    monkeypatch.setattr(module, "run_session", run)
    request = replace(request_of(place, tmp_path / "cache"), count=CountOptions())
    return bisect(request, commits[0], commits[-1], Reporter(quiet=True))


@pytest.mark.parametrize(
    ("slower", "quantity"),
    [
        (SAME_CODE | {"instructions": 1001}, "instructions"),
        (SAME_CODE | {"locked": 21}, "locked"),
        (SAME_CODE | {"fences": 4}, "fences"),
    ],
)
def test_counts_that_differ_by_one_are_enough(
    history: tuple[Path, list[str]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    slower: dict[str, int],
    quantity: str,
) -> None:
    its = hunted_by_counts(history, tmp_path, monkeypatch, slower)
    assert its.commits == (history[1][7],)
    assert its.to_object()["quantity"] == quantity
    assert {step.verdict for step in its.steps} <= {GOOD, BAD}


def test_counts_that_are_equal_or_move_tell_nothing(
    history: tuple[Path, list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(Inconclusive, match="nothing to search for"):
        hunted_by_counts(history, tmp_path, monkeypatch, SAME_CODE)
    with pytest.raises(Inconclusive, match="did not count the same"):
        hunted_by_counts(history, tmp_path, monkeypatch, {"instructions": 9}, repeats=False)


def test_good_has_to_come_before_bad(history: tuple[Path, list[str]], tmp_path: Path) -> None:
    place, commits = history
    request = request_of(place, tmp_path / "cache")
    with pytest.raises(BadUsage, match="does not come before"):
        bisect(request, commits[3], commits[2], Reporter(quiet=True))
    with pytest.raises(BadUsage, match="no commit nowhere"):
        bisect(request, "nowhere", commits[2], Reporter(quiet=True))


def test_a_commit_is_a_patch_of_the_good_one(
    history: tuple[Path, list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, commits = history
    late = {one[:SHORT] for one in commits[7:]}
    _, asked = found(
        history, tmp_path, monkeypatch, lambda one: ratio(SLOWER if one in late else 1.0)
    )
    variant = next(one for one in asked[0].variants if one.name == commits[-1][:SHORT])
    assert variant.tree is None
    assert b"+20" in variant.patches[0].body
    assert not (place / ".git" / "BISECT_START").exists()


def test_no_side_is_taken_where_the_interval_lies_on_both() -> None:
    bad = ratio(SLOWER)
    assert verdict_of(ratio(1.0), bad) == GOOD
    assert verdict_of(ratio(1.3), bad) == BAD
    assert verdict_of(ratio(1.14, 5), bad) is None
    assert verdict_of(replace_interval(ratio(1.3)), bad) is None
    assert verdict_of(ratio(1.0), ratio(1 / SLOWER)) == GOOD
    assert verdict_of(ratio(1 / SLOWER), ratio(1 / SLOWER)) == BAD


def test_a_run_that_does_not_tell_the_ends_apart_tells_nothing() -> None:
    assert verdict_of(ratio(1.0, 1), ratio(1.1, 20)) is None
    assert verdict_of(ratio(1.0, 1), replace_interval(ratio(1.1))) is None


def replace_interval(its: Ratio) -> Ratio:
    return its.model_copy(update={"low": None, "high": None})
