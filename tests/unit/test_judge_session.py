# SPDX-License-Identifier: GPL-2.0-only
"""From a series to a judgement: what is run of it, and what becomes of what fails."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from judge_world import FORK, SERIES, counted, operation, reach
from ream.errors import CannotRunHere, ReamError, UnhostedVariant, WrongVariant
from ream.experiment import PATCHED, named
from ream.judge import first_wrong as first_wrong_module
from ream.judge import page, programs, session, words
from ream.judge.judgement import CountedChange, Examined, Wrong
from ream.judge.own_table import OwnVerdict, own_tables, own_verdicts
from ream.judge.own_table import lines as own_lines
from ream.judge.question import Question
from ream.judge.reach import Reach
from ream.kernel.series import Series
from ream.progress import Reporter
from ream.report.contract import Counted
from ream.session.request import Request


def question(tmp_path: Path, **fields: Any) -> Question:
    return Question(SERIES, None, tmp_path / "runs", tmp_path, 1, **fields)


RIGHT = SimpleNamespace(summary=SimpleNamespace(wrong={}))
"""What a run of a series comes to that is right, as far as it is looked at."""


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[Request]]:
    """A judgement whose reach and runs are made up."""

    def made(run: Callable[[Request], Any], *reached: Reach) -> list[Request]:
        asked: list[Request] = []

        def session_of(request: Request, _: Reporter) -> Any:
            asked.append(request)
            return run(request)

        tree = SimpleNamespace(label="a tree")
        fetched = SimpleNamespace(built=lambda _: tree)
        monkeypatch.setattr(session, "fetch_tree", lambda *_, **__: fetched)
        monkeypatch.setattr(session, "find_reach", lambda *_, **__: reach(*reached))
        monkeypatch.setattr(programs, "examine", lambda *_, **__: Examined(("f",)))
        monkeypatch.setattr(session, "emulator_version", lambda: "qemu")
        monkeypatch.setattr(session, "run_session", session_of)
        monkeypatch.setattr(first_wrong_module, "run_session", session_of)
        return asked

    return made


def test_what_reaches_nothing_is_not_run(
    tmp_path: Path, world: Callable[..., list[Request]]
) -> None:
    asked = world(lambda _: pytest.fail("it ran"))
    its = session.judge(question(tmp_path, minutes=1.0), Reporter(quiet=True))
    assert (its.exit_code, asked) == (4, [])


def test_what_is_wrong_in_any_of_mm_ends_the_judgement(
    tmp_path: Path, world: Callable[..., list[Request]], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = world(lambda _: pytest.fail("it ran"), FORK)
    wrong = Wrong("mm", ("after `p0 fork p1`: rss is 1",), (1, "change 1"))
    whole = Examined(("copy_pte",), 3, 2, 7, 210, wrong=wrong)
    monkeypatch.setattr(programs, "examine", lambda *_, **__: whole)
    its = session.judge(question(tmp_path, minutes=1.0), Reporter(quiet=True))
    assert (its.exit_code, its.wrong, its.reach, asked) == (5, wrong, None, [])
    assert "WRONG: after `p0 fork p1`: rss is 1. It begins with patch 1" in words.sentence(its)
    assert "2 of the 3 blocks of code in changed lines" in page.render(its)


@pytest.mark.parametrize("quick", [True, False])
def test_progress_does_not_end_with_what_the_page_begins_with(
    tmp_path: Path,
    world: Callable[..., list[Request]],
    capsys: pytest.CaptureFixture[str],
    *,
    quick: bool,
) -> None:
    world(lambda _: pytest.fail("it ran"))
    session.judge(question(tmp_path, minutes=1.0, quick=quick), Reporter())
    assert ("all of mm/: it changes f()" in capsys.readouterr().err) != quick


def test_what_compiles_to_the_same_needs_no_more(
    tmp_path: Path, world: Callable[..., list[Request]], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = world(lambda _: pytest.fail("it ran"), FORK)
    monkeypatch.setattr(programs, "examine", lambda *_, **__: Examined(same=True))
    its = session.judge(question(tmp_path, minutes=1.0), Reporter(quiet=True))
    assert (its.exit_code, its.reach, asked) == (0, None, [])
    assert words.sentence(its).startswith("Nothing changes: the code and data of its files are")


def test_a_kernel_that_cannot_be_hosted_as_a_whole_is_judged_by_rows(
    tmp_path: Path, world: Callable[..., list[Request]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: Any, **__: Any) -> Any:
        raise ReamError("mm/x.o: exit 2: no such file")

    world(lambda _: pytest.fail("it ran"))
    monkeypatch.setattr(programs, "examine", fails)
    its = session.judge(question(tmp_path, minutes=1.0), Reporter(quiet=True))
    assert (its.exit_code, its.whole) == (4, None)


def test_a_wrong_series_is_an_answer_with_its_first_patch(
    tmp_path: Path, world: Callable[..., list[Request]]
) -> None:
    def run(request: Request) -> Any:
        if len(request.variants[-1].patches) >= 2:
            raise WrongVariant("fork-4k: patched: pte at 8\nregisters", PATCHED)
        return RIGHT

    asked = world(run, FORK)
    its = session.judge(question(tmp_path, minutes=1.0), Reporter(quiet=True))
    assert its.exit_code == 5
    why = "only the oracle of fork finds it, and no program shows it; again:"
    again = "  ream run fork --series PATCH --row fork-4k --count --seed 1"
    lines = ("fork-4k: patched: pte at 8", "registers", why, again)
    assert its.wrong == Wrong("fork", lines, (2, "change 2"))
    assert [row.name for row in asked[0].experiment.rows] == ["fork-4k", "fork-64k"]
    assert asked[0].count is not None


def test_what_cannot_be_hosted_is_noted_and_the_next_experiment_tried(
    tmp_path: Path, world: Callable[..., list[Request]]
) -> None:
    def run(request: Request) -> Any:
        raise UnhostedVariant(f"{request.experiment.name} reaches x()\nmore", PATCHED)

    rows = tuple(one.name for one in named("null").at("native").rows)
    world(run, FORK, Reach("null", (), rows, 2, None))
    its = session.judge(question(tmp_path), Reporter(quiet=True))
    assert its.unhosted == {"fork": "fork reaches x()", "null": "null reaches x()"}
    assert its.exit_code == CannotRunHere.exit_code


def test_of_a_compiler_that_fails_the_error_is_told(
    tmp_path: Path, world: Callable[..., list[Request]]
) -> None:
    said = "(cd /a && make b): exit 2: ../ream/glue.c:84:9: error: no such function\n  84 |"

    def run(_: Request) -> Any:
        raise ReamError(said)

    world(run, FORK)
    its = session.judge(question(tmp_path), Reporter(quiet=True))
    assert its.unhosted == {"fork": "../ream/glue.c:84:9: error: no such function"}


def test_an_experiment_for_which_the_machine_is_too_small_is_left_out(
    tmp_path: Path, world: Callable[..., list[Request]]
) -> None:
    def run(_: Request) -> Any:
        raise CannotRunHere("no memory")

    world(run, FORK)
    its = session.judge(question(tmp_path), Reporter(quiet=True))
    assert (its.exit_code, its.unhosted) == (3, {"fork": "no memory"})


def test_a_kernel_that_is_wrong_without_the_series_is_not_its_fault(
    tmp_path: Path, world: Callable[..., list[Request]]
) -> None:
    def run(_: Request) -> Any:
        raise WrongVariant("fork-4k: before: pte at 8", "before")

    world(run, FORK)
    its = session.judge(question(tmp_path, minutes=1.0), Reporter(quiet=True))
    assert (its.wrong, its.exit_code) == (None, CannotRunHere.exit_code)
    assert its.unhosted == {"fork": "fork-4k: before: pte at 8"}


def test_a_beginning_that_does_not_compile_leaves_the_series(
    tmp_path: Path, world: Callable[..., list[Request]]
) -> None:
    def run(request: Request) -> Any:
        if len(request.variants) > 3:
            raise ReamError("no such function")
        return ran_once(None, 1.0, 1)

    world(run, FORK)
    its = session.judge(question(tmp_path, per_patch=True), Reporter(quiet=True))
    assert its.notes == ("fork: not patch by patch: no such function",)
    assert [(one.row, one.steps) for one in its.operations] == [("fork-4k", ())]


def test_what_cannot_be_timed_keeps_its_counts(
    tmp_path: Path, world: Callable[..., list[Request]]
) -> None:
    runs = iter(range(2))

    def run(_: Request) -> Any:
        if next(runs):
            raise ReamError("runner was ended by SIGKILL")
        return ran_once(None, 1.0, 1)

    world(run, FORK)
    its = session.judge(question(tmp_path, minutes=10.0), Reporter(quiet=True))
    assert its.notes == ("fork: not timed: runner was ended by SIGKILL",)
    assert [one.row for one in its.operations] == ["fork-4k"]


@pytest.mark.parametrize("missing", [None, "before", PATCHED])
def test_a_row_has_counts_if_both_kernels_were_counted(missing: str | None) -> None:
    totals = {"before": {"instructions": 10}, PATCHED: {"instructions": 14}}
    totals.pop(missing, None)
    nothing: dict[str, Any] = {name: {} for name in totals}
    its = Counted(
        per="page", number=2, repeats=True, variants=totals, stand_ins=nothing, functions=nothing
    )
    row: Any = SimpleNamespace(row="fork-4k", title="a title", counted=its)
    made = session._counted_row(SERIES, FORK, row, per_patch=False)
    assert (made.experiment, made.row, made.title) == ("fork", "fork-4k", "a title")
    assert (made.counted is None) == (missing is not None)
    if made.counted is not None:
        assert made.counted.before["instructions"] == 5
        assert made.counted.after["instructions"] == 7


def test_a_step_over_a_beginning_that_is_wrong_is_of_both_patches() -> None:
    numbers = {"before": 100.0, "patched-1": 101.0, "patched-3": 151.0, PATCHED: 151.0}
    its = SimpleNamespace(
        variants={name: {"instructions": number} for name, number in numbers.items()},
        number_of=lambda _: 1,
    )
    steps = [*session._steps(its, SERIES)]
    assert [(one.number, one.subject, one.changes) for one in steps] == [
        (1, "change 1", {"instructions": 1.0}),
        (3, "with 2 to 2 before it: change 3", {"instructions": 50.0}),
        (4, "change 4", {}),
    ]


def test_an_upgrade_is_of_two_kernels_and_no_patch(
    tmp_path: Path, world: Callable[..., list[Request]]
) -> None:
    def run(_: Request) -> Any:
        raise WrongVariant("fork-4k: patched: pte at 8", PATCHED)

    asked = world(run, FORK)
    to = Path("/a/kernel")
    its = replace(question(tmp_path), series=Series("6.12 to 7.3", ()), to=to)
    found = session.judge(its, Reporter(quiet=True))
    (request,) = asked
    assert [(one.name, one.tree, one.patches) for one in request.variants] == [
        ("before", None, ()), ("before-again", None, ()), (PATCHED, to, ()),
    ]  # fmt: skip
    assert (found.exit_code, found.to) == (5, "a tree")
    assert found.wrong == Wrong("fork", ("fork-4k: patched: pte at 8",), None)
    assert page.render(found).startswith("upgrade    from a tree to a tree\n")


def test_the_table_that_came_with_a_series_is_held_against_its_times() -> None:
    tables = own_tables({"<20200527173608.2885243-7-daniel.m.jordan@oracle.com>"})
    assert {table.experiment for table in tables} == {"deferred-init"}
    known = {table.id: table for table in tables}
    compared = [
        (row, ref)
        for row in named("deferred-init").at("native").rows
        for ref in row.published
        if ref.id in known and not (row.part_of or row.no_verdict or row.stands_in)
    ]
    assert compared
    floor = SimpleNamespace(ratio=1.0, low=0.99, high=1.01)

    def found(row: Any, ref: Any, ratio: float) -> str:
        its: Any = SimpleNamespace(ratio=ratio, low=ratio * 0.99, high=ratio * 1.01, threads=None)
        result: Any = SimpleNamespace(floor=floor)
        return next(
            one.word
            for one in own_verdicts(tables, row, result, its, amd=False)
            if (one.table, one.published) == (ref.id, known[ref.id].printed(ref).ratio)
        )

    ratios = [known[ref.id].printed(ref).ratio or 1.0 for _, ref in compared]
    assert min(ratios) < 0.8
    for (row, ref), ratio in zip(compared, ratios, strict=True):
        assert found(row, ref, ratio) == "agrees"
        assert ratio > 0.8 or found(row, ref, 1.0) == "contradicts"
    assert own_tables({"<nobody@example.org>"}) == ()


def test_the_lines_of_its_table_count_the_words() -> None:
    verdicts = [OwnVerdict("t", "a", "agrees", 0.5, 0.5), OwnVerdict("t", "b", "weaker", 0.8, 0.5)]
    first, second = own_lines(["t", "u"], verdicts)
    assert first.startswith(
        "t: agrees in 1 row (a: 2.00x here, 2.00x published); weaker in 1 row (b"
    )
    assert second == "u: none of its rows was timed"


def ran_once(effect: str | None, ratio: float, number: int) -> Any:
    """What a run of the row fork-4k says, which is counted the same with and without the series."""
    its = SimpleNamespace(effect=effect, ratio=ratio, low=ratio, high=ratio, within=1.02)
    row = SimpleNamespace(
        row="fork-4k",
        title="a title",
        skipped=None,
        counted=None,
        variants={PATCHED: its},
        smallest_effect=1.02,
        control=None,
    )
    summary = SimpleNamespace(
        experiment="fork", receipt=SimpleNamespace(warnings=()), wrong={}, rows=(row,)
    )
    return SimpleNamespace(path=Path(f"record-{number}"), summary=summary)


@pytest.mark.parametrize(
    ("counts", "effects", "outcome", "nr_runs"),
    [
        (counted(), ("slower", "equal"), "equal", 2),
        (counted(), ("slower", "faster"), "faster", 2),
        (counted(), ("slower", "slower"), "slower", 2),
        (counted(), ("faster", None), "same", 2),
        (counted(), ("equal",), "equal", 1),
        (None, ("slower", "slower"), "slower", 2),
        (counted(instructions=0.05), ("slower",), "slower", 1),
        (counted(instructions=-0.05), ("slower", "equal"), "equal", 2),
        (counted(instructions=-0.05), ("faster",), "faster", 1),
        (counted(instructions=0.05, locked=-0.05), ("faster", "faster"), "faster", 2),
    ],
)
def test_a_time_that_counts_do_not_back_is_taken_twice(
    *,
    counts: CountedChange | None,
    effects: tuple[str | None, ...],
    outcome: str,
    nr_runs: int,
    tmp_path: Path,
    world: Callable[..., list[Request]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A judgement whose counts and first round are there, so that all runs are of times."""
    runs = iter([None, *effects])

    def run(_: Request) -> Any:
        effect = next(runs)
        return ran_once(effect, {"slower": 1.03, "faster": 0.97}.get(effect or "", 1.0), 1)

    asked = world(run, replace(FORK, rows=("fork-4k",)))
    monkeypatch.setattr(session, "controls", lambda _: None)

    def known(judging: Any, _: Reach, **__: bool) -> None:
        judging.operations["fork", "fork-4k"] = operation(counted=counts)

    monkeypatch.setattr(session, "_count", known)
    its = session.judge(question(tmp_path, minutes=10.0), Reporter(quiet=True))
    assert [one.outcome for one in its.operations] == [outcome]
    assert len(asked) == 1 + nr_runs
    assert len({request.seed for request in asked[1:]}) == nr_runs
    changed = len(effects) > 1 and effects[0] != effects[1]
    assert any("at first" in note for note in its.notes) == changed


def test_further_programs_run_before_rows_are_timed_and_may_be_wrong(
    tmp_path: Path, world: Callable[..., list[Request]], monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = Wrong("mm", ("after `p0 fork p1`: rss is 1",), (1, "change 1"))
    its = {False: Examined(("f",), 3, 1, 7, 210), True: Examined(("f",), 3, 2, 9, 90, wrong=wrong)}
    seeds: list[int] = []

    def examine(*_: Any, seed: int, within_s: float, is_further: bool, **__: Any) -> Examined:
        seeds.append(seed)
        assert within_s == (12.0 if is_further else 10.0)
        return its[is_further]

    world(lambda _: pytest.fail("it ran"))
    monkeypatch.setattr(programs, "examine", examine)
    said = session.judge(question(tmp_path, minutes=1.0), Reporter(quiet=True))
    assert (said.exit_code, said.wrong, len(set(seeds))) == (5, wrong, 2)
    assert said.whole is not None
    assert (said.whole.nr_entered, said.whole.nr_programs, said.whole.nr_steps) == (2, 16, 300)
    quick = session.judge(question(tmp_path, minutes=0.0), Reporter(quiet=True))
    assert (quick.exit_code, quick.wrong, len(seeds)) == (4, None, 3)
