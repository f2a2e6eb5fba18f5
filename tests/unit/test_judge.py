# SPDX-License-Identifier: GPL-2.0-only
"""What is said of a series: an outcome for each row, the sentence, and the exit status."""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ream.errors import CannotRunHere, ReamError, UnhostedVariant, WrongVariant
from ream.experiment import PATCHED, Experiment, named
from ream.judge import first_wrong as first_wrong_module
from ream.judge import page, session
from ream.judge.judgement import CountedChange, Judgement, Operation, PatchStep, TimedChange, Wrong
from ream.judge.own_table import OwnVerdict, own_tables, own_verdicts
from ream.judge.own_table import lines as own_lines
from ream.judge.reach import Reach, WholeReach
from ream.judge.session import Question
from ream.judge.urgency import FIRST_LAUNCHES, expected_s, rows_in_time, rows_to_try
from ream.kernel.series import Patch, Series
from ream.measure.statistics import LEAST_LAUNCHES
from ream.progress import Reporter
from ream.session.request import Request

SERIES = Series("mine", tuple(Patch(f"{n}.patch", f"change {n}", b"%d" % n) for n in range(1, 5)))
FORK = Reach("fork", ("copy_page_range",), ("fork-4k", "fork-64k"), 64, None)


def counted(**shares: float) -> CountedChange:
    """Quantities of 100 before, each grown by its share."""
    before = dict.fromkeys(("instructions", "locked", "loads", "prefetches"), 100.0)
    after = {name: value * (1 + shares.get(name, 0.0)) for name, value in before.items()}
    return CountedChange("page", before, after, repeats=True)


def timed(ratio: float, effect: str, within: float | None = None) -> TimedChange:
    return TimedChange(ratio, ratio * 0.99, ratio * 1.01, effect, within, 1.02)


def operation(row: str = "fork-4k", **fields: Any) -> Operation:
    return Operation("fork", row, "a title", **fields)


def reach(*reached: Reach, nearest: str | None = None) -> WholeReach:
    none: dict[str, tuple[str, ...]] = dict.fromkeys(
        ("changed", "added", "removed", "moved", "data", "layout"), ()
    )
    return WholeReach(991, **none, text_bytes=(64, 80), experiments=reached, nearest=nearest)


def judgement(*operations: Operation, **fields: Any) -> Judgement:
    its = {"reach": reach(FORK), **fields}
    subjects = tuple(one.subject for one in SERIES.patches)
    return Judgement("mine", subjects, "a tree", "a machine", operations=operations, **its)


FIRST_LOCKED = CountedChange(
    "page", {"instructions": 100.0}, {"instructions": 100.0, "locked": 1.0}, repeats=True
)


@pytest.mark.parametrize(
    ("fields", "outcome"),
    [
        ({"timed": timed(1.1, "slower"), "counted": counted()}, "slower"),
        ({"timed": timed(0.9, "faster"), "counted": counted(instructions=0.1)}, "faster"),
        ({"timed": timed(1.0, "equal", 1.01), "counted": counted(locked=0.1)}, "equal"),
        ({"timed": timed(1.0, "equal", 1.1), "counted": counted(instructions=0.05)}, "more"),
        ({"timed": timed(1.0, "equal", 1.02), "counted": counted(instructions=0.05)}, "equal"),
        ({"timed": timed(1.0, "equal", 1.1), "counted": counted(instructions=-0.05)}, "equal"),
        ({"timed": timed(1.0, "equal", 1.01), "counted": FIRST_LOCKED}, "more"),
        ({"timed": timed(1.0, "undecided"), "counted": counted(locked=0.1)}, "more"),
        ({"counted": counted(instructions=0.1, locked=-0.1)}, "mixed"),
        ({"counted": counted(instructions=-0.1)}, "fewer"),
        ({"counted": counted()}, "same"),
        ({"counted": counted(instructions=0.0009)}, "alike"),
        ({"counted": counted(instructions=-0.0009)}, "fewer"),
        ({"counted": counted(instructions=-0.0009, loads=0.0001)}, "alike"),
        ({"counted": counted(instructions=-0.0009, loads=0.0001, prefetches=1)}, "undecided"),
        ({"counted": counted(instructions=-0.5, prefetches=9.0)}, "fewer"),
        ({"counted": counted(prefetches=9.0)}, "undecided"),
        ({"timed": timed(1.0, "undecided")}, "undecided"),
        ({}, "undecided"),
    ],
)
def test_a_time_decides_and_counts_where_it_does_not(
    fields: Mapping[str, Any], outcome: str
) -> None:
    assert operation(**fields).outcome == outcome


@pytest.mark.parametrize(
    ("share", "said"),
    [
        (0, "0"),
        (0.08, "+8.0 %"),
        (-0.0006, "-0.06 %"),
        (0.0004, "+0.04 %"),
        (-1e-6, "-0.0001 %"),
        (1e-9, "+1e-07 %"),
    ],
)
def test_a_change_has_its_sign_however_small_it_is(share: float, said: str) -> None:
    assert page.change(operation(counted=counted(instructions=share))) == said


def test_counts_that_do_not_repeat_decide_nothing() -> None:
    moves = CountedChange("page", {"instructions": 1.0}, {"instructions": 2.0}, repeats=False)
    assert operation(counted=moves).outcome == "undecided"


SLOWER = operation("fork-64k", timed=timed(1.1, "slower"), counted=counted(instructions=0.2))
FASTER = operation(timed=timed(0.5, "faster"), counted=counted(instructions=-0.5))
SAME = operation("fork-2m", counted=counted())
OPEN = operation("fork-1m", timed=timed(1.0, "undecided"))
A_LITTLE = operation("fork-64k", counted=counted(instructions=0.004))
LESS = operation(counted=counted(instructions=-0.08))
UNEXECUTED = replace(reach(nearest="fork"), changed=("helper",))
WRONG = Wrong("fork", ("fork-64k: patched: pte at 8: 1 instead of 0", "more"), (2, "change 2"))


@pytest.mark.parametrize(
    ("its", "code", "said"),
    [
        (judgement(FASTER, SAME), 0, "No regression was found: faster in 1 row, fork-4k (2.000x);"),
        (judgement(FASTER, SLOWER), 1, "A regression: slower in 1 row, fork-64k (1.100x);"),
        (
            judgement(operation(counted=counted(locked=0.5)), SAME),
            1,
            "A regression in what is executed: executes more in 1 row, fork-4k (0 instructions,",
        ),
        (
            judgement(FASTER, operation("fork-64k", timed=timed(1.004, "slower"))),
            1,
            "Mostly faster: a little slower in 1 row, 1.004x (fork-64k); faster in 1 row, fork-4k",
        ),
        (
            judgement(operation(counted=counted(instructions=-0.0005, loads=1.0))),
            1,
            ("A regression in what is executed: executes more in 1 row, fork-4k (-0.05 % instructi"
            "ons, 0 locked, +100.0 % loads)"),
        ),
        (
            judgement(operation("fork-64k", counted=counted(instructions=0.0005, loads=1.0)), LESS),
            1,
            "A regression in what is executed: executes more in 1 row, fork-64k (+0.05 % instruct",
        ),
        (
            judgement(A_LITTLE, LESS, operation("fork-2m", counted=counted(loads=0.002))),
            1,
            ("Mostly fewer are executed: executes a little more in 2 rows, at most +0.4 % instruct"
            "ions, 0 locked (fork-64k); executes fewer in 1 row, fork-4k (-8.0 % instructions,"),
        ),
        (
            judgement(A_LITTLE),
            1,
            "A small regression in what is executed: executes a little more in 1 row, +0.4 %",
        ),
        (
            judgement(operation(counted=counted(instructions=-0.06, loads=0.02))),
            4,
            "Undecided: mixed counts in 1 row, fork-4k (-6.0 % instructions, 0 locked, +2.0 % l",
        ),
        (judgement(operation(counted=counted(loads=1e-5))), 0, "No regression was found: as many"),
        (judgement(FASTER, OPEN), 4, "Undecided: faster in 1 row, fork-4k (2.000x); undecided"),
        (judgement(reach=UNEXECUTED), 4, "Undecided: no row executes anything that it changes,"),
        (judgement(reach=reach(nearest="fork")), 4, "Nothing that is hosted changes: every object"),
        (judgement(unhosted={"fork": "it reaches x()"}), 3, "Undecided: nothing that it reaches"),
        (judgement(FASTER, unhosted={"migrate": "it reaches x()"}), 4, "Undecided: faster in"),
        (
            judgement(wrong=WRONG),
            5,
            "WRONG: fork-64k: patched: pte at 8: 1 instead of 0. It begins with patch 2 of 4, 'c",
        ),
    ],
)  # fmt: skip
def test_the_sentence_says_what_the_exit_status_does(its: Judgement, code: int, said: str) -> None:
    assert its.exit_code == code
    assert page.sentence(its).startswith(said)
    assert page.render(its).count("judgement") == 1


def test_regressions_come_first_and_the_smallest_effect_is_told() -> None:
    its = judgement(FASTER, SAME, SLOWER, OPEN)
    assert [one.row for one in its.ordered()] == ["fork-64k", "fork-1m", "fork-2m", "fork-4k"]
    assert "an effect of 2.00 % (fork-1m) to 2.00 % (fork-64k)" in page.sentence(its)


def test_more_rows_than_a_screen_has_are_counted() -> None:
    many = [operation(f"row-{n}", counted=counted(instructions=-n / 100)) for n in range(30)]
    text = page.render(judgement(*many))
    assert "and 16 rows more: 16 executes fewer; --json has all of them" in " ".join(text.split())


def test_many_rows_that_are_a_little_worse_do_not_hide_one_that_is_much_better() -> None:
    worse = [operation(f"worse-{n}", counted=counted(instructions=0.004)) for n in range(200)]
    mixed = [operation("mixed", counted=counted(instructions=0.1, locked=-0.1))] * 20
    open_ = [operation("open", counted=counted(instructions=0.0005))] * 20
    fewer = [operation("fewer", counted=counted(instructions=-n / 100)) for n in range(1, 9)]
    text = page.render(judgement(*worse, *mixed, *open_, *fewer))
    assert [line.split()[2] for line in text.splitlines() if line.startswith("fewer ")] == [
        "-8.0", "-7.0",
    ]  # fmt: skip
    assert sum(line.startswith("worse-") for line in text.splitlines()) == page.MOST_ROWS - 6
    assert "and 234 rows more: 192 executes more, 18 mixed counts, 18 as many within" in text
    assert max(map(len, text.splitlines())) <= 100


def test_functions_are_named_as_far_as_there_is_room() -> None:
    for name, said in (
        ("fork", "fork() +1.0"), ("f" * 23, "f" * 23 + "()"), ("f" * 40, ""),
    ):  # fmt: skip
        its = operation(counted=counted(), functions=((name, {"instructions": 1.0}),))
        (line,) = (one for one in page.render(judgement(its)).splitlines() if "fork-4k " in one)
        assert line.partition("same")[2].split(maxsplit=2)[2:] == ([said] if said else [])


def test_escapes_in_subjects_do_nothing() -> None:
    step = PatchStep(1, "a\x1b[2Jb\x9b1m\u202e", {"instructions": 1.0})
    its = judgement(operation(counted=counted(), steps=(step,)), unhosted={"x": "\x1b]0;t\x07"})
    text = page.render(its)
    assert not {one for one in text if not one.isprintable()} - {"\n"}
    assert "a?[2Jb?1m?" in text


def test_a_very_small_share_keeps_its_distance_from_the_next_column() -> None:
    small = operation(counted=counted(instructions=-9e-6), timed=timed(1.0, "equal", 1.0968))
    text = page.render(judgement(small))
    assert "equal 9.68 % -0.0009 %" in text


def test_the_legend_says_of_what_numbers_are() -> None:
    entry = replace(operation("fork-2m", counted=counted()), experiment="migrate")
    assert entry.counted is not None
    entry = replace(entry, counted=replace(entry.counted, per="entry"))
    assert "more for each page or entry." in " ".join(
        page.render(judgement(operation(counted=counted()), entry)).split()
    )


def test_the_object_can_be_read_again() -> None:
    its = judgement(SLOWER, SAME, wrong_steps=((1, "change 1", "bad"),))
    again = json.loads(json.dumps(its.to_object()))
    assert (again["exit"], again["schema"]) == (1, 1)
    assert [one["outcome"] for one in again["operations"]] == ["slower", "same"]


def test_rows_that_count_more_are_timed_first() -> None:
    experiment = named("fork").at("native").only(["fork-4k", "fork-64k", "fork-2m"])
    known = {
        "fork-4k": operation("fork-4k", counted=counted(instructions=-0.9)),
        "fork-64k": operation("fork-64k", counted=counted(instructions=0.01)),
        "fork-2m": operation("fork-2m", counted=counted()),
    }
    assert chosen(rows_to_try(experiment, known, 0.0)) == ("fork-64k",)
    assert len(rows_to_try(experiment, known, 60.0).rows) == len(known)
    its = rows_in_time(experiment, known, 1.0, minutes_for(experiment, "fork-64k", "fork-4k"))
    assert chosen(its) == ("fork-64k", "fork-4k")
    assert its.launches == FIRST_LAUNCHES
    assert len(rows_in_time(experiment, known, 1.0, 60.0).rows) == len(known)


def minutes_for(experiment: Experiment, *names: str) -> float:
    """Minutes in which just these rows fit, where each takes what is expected."""
    rows = [row for row in experiment.rows if row.name in names]
    its = sum(expected_s(row) * row.rounds for row in rows)
    return 2 * FIRST_LAUNCHES * its * 1.01 / 60


SMALL_LAST = ("fsdax-100GB", "devdax-100GB", "small-256MB")


def test_of_rows_that_are_affected_alike_the_quick_ones_are_timed_first() -> None:
    experiment = named("zone-device").at("native").only(SMALL_LAST)
    known = {name: operation(name, counted=counted()) for name in SMALL_LAST}
    assert chosen(rows_to_try(experiment, known, 0.0)) == ("small-256MB",)
    its = rows_in_time(experiment, known, 1.0, minutes_for(experiment, "small-256MB"))
    assert chosen(its) == ("small-256MB",)
    nearly = {name: operation(name, counted=counted(instructions=-0.0612)) for name in SMALL_LAST}
    nearly["fsdax-100GB"] = operation("fsdax-100GB", counted=counted(instructions=-0.0634))
    assert chosen(rows_to_try(experiment, nearly, 0.0)) == ("small-256MB",)


def test_a_row_that_does_not_fit_gives_way_to_those_that_are_as_urgent() -> None:
    experiment = named("zone-device").at("native").only(SMALL_LAST)
    known = {name: operation(name, counted=counted(instructions=0.01)) for name in SMALL_LAST}
    known["fsdax-100GB"] = operation("fsdax-100GB", counted=counted(instructions=0.5))
    few = minutes_for(experiment, "small-256MB")
    assert chosen(rows_in_time(experiment, known, 1.0, few)) == ("small-256MB",)
    known["small-256MB"] = operation("small-256MB", counted=counted())
    its = rows_in_time(experiment, known, 1.0, few)
    assert (chosen(its), its.rows[0].rounds) == (("fsdax-100GB",), 1)


def test_a_row_that_takes_long_gets_few_launches() -> None:
    experiment = named("fork").at("native").only(["fork-4k", "fork-64k"])
    slowness = 10.0 / expected_s(experiment.rows[0])
    its = rows_in_time(experiment, {}, slowness, 1.0)
    assert (len(its.rows), its.launches, its.rows[0].rounds) == (1, 3, 1)
    assert rows_in_time(experiment, {}, slowness, 0.0).launches == LEAST_LAUNCHES


def chosen(experiment: Experiment) -> tuple[str, ...]:
    """The names of its rows, sorted."""
    return tuple(sorted((row.name for row in experiment.rows), reverse=True))


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
        monkeypatch.setattr(session, "fetch_tree", lambda *_, **__: tree)
        monkeypatch.setattr(session, "find_reach", lambda *_, **__: reach(*reached))
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
    assert its.wrong == Wrong("fork", ("fork-4k: patched: pte at 8", "registers"), (2, "change 2"))
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
            for one in own_verdicts(tables, row, result, its)
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
