# SPDX-License-Identifier: GPL-2.0-only
"""What is said of a series: an outcome for each row, the sentence, and the exit status."""

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, get_args

import pytest

from judge_world import counted, judgement, operation, reach, timed
from ream.judge import page, words
from ream.judge.judgement import CountedChange, Examined, Judgement, PatchStep, TimedChange, Wrong
from ream.paths import CHECKOUT
from ream.width import as_wide_as

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
        ({"counted": counted(instructions=0.0009)}, "same"),
        ({"counted": counted(instructions=-0.0009)}, "fewer"),
        ({"counted": counted(instructions=-0.0009, loads=0.0001)}, "same"),
        ({"counted": counted(instructions=-0.0009, loads=0.0001, prefetches=1)}, "undecided"),
        ({"counted": counted(instructions=-0.5, prefetches=9.0)}, "fewer"),
        ({"counted": counted(prefetches=9.0)}, "undecided"),
        ({"timed": timed(1.0, "undecided")}, "undecided"),
        ({"timed": timed(1.05, "undecided"), "counted": counted(instructions=-0.1)}, "undecided"),
        ({"timed": timed(0.95, "undecided"), "counted": counted(instructions=0.1)}, "undecided"),
        ({"timed": timed(1.05, "undecided"), "counted": counted(instructions=0.1)}, "more"),
        ({"timed": timed(0.95, "undecided"), "counted": counted(instructions=-0.1)}, "fewer"),
        ({}, "undecided"),
    ],
)
def test_a_time_decides_and_counts_where_it_does_not(
    fields: Mapping[str, Any], outcome: str
) -> None:
    assert operation(**fields).outcome == outcome


@pytest.mark.parametrize(
    ("fields", "quantity", "said"),
    [
        ({"timed": timed(1.1, "slower"), "counted": counted(loads=0.2)}, "time", "time"),
        ({"counted": counted(instructions=0.00003, loads=0.002)}, "loads", "+0.2 % loads"),
        ({"counted": counted(instructions=0.02, loads=0.5)}, "instructions", "+2.0 % instructions"),
        ({"counted": counted(instructions=0.002, loads=0.5)}, "loads", "+50.0 % loads"),
        ({"counted": FIRST_LOCKED}, "locked", "new locked operations"),
        ({"counted": counted(instructions=-0.0009)}, "instructions", "-0.09 % instructions"),
        ({"counted": counted(instructions=-0.1, loads=0.2)}, "loads", "+20.0 % loads"),
        ({"counted": counted(instructions=0.0009)}, "counts", "counts within 0.09 %"),
        ({"counted": counted()}, "counts", "counts"),
        ({"timed": timed(1.0, "undecided")}, None, ""),
    ],
)
def test_what_decided_a_row_is_named(
    fields: Mapping[str, Any], quantity: str | None, said: str
) -> None:
    one = operation(**fields)
    assert (one.decided_by, words.decided(one)) == (quantity, said)
    (told,) = judgement(one).to_object()["operations"]
    assert told["decided_by"] == quantity
    if quantity == "loads":
        line = next(
            one for one in page.render(judgement(one)).splitlines() if one[:8] == "fork-4k "
        )
        assert line.split()[2:5] == ["loads", *said.split()[:2]]


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
    assert words.change(operation(counted=counted(instructions=share))) == said


def test_counts_that_do_not_repeat_decide_nothing() -> None:
    moves = CountedChange("page", {"instructions": 1.0}, {"instructions": 2.0}, repeats=False)
    assert operation(counted=moves).outcome == "undecided"


SLOWER = operation("fork-64k", timed=timed(1.1, "slower"), counted=counted(instructions=0.2))
FASTER = operation(timed=timed(0.5, "faster"), counted=counted(instructions=-0.5))
SAME = operation("fork-2m", counted=counted())
OPEN = operation("fork-1m", timed=timed(1.0, "undecided"))
A_LITTLE = operation("fork-64k", counted=counted(instructions=0.004))
LESS = operation(counted=counted(instructions=-0.08))
RIGHT = "Memory was right after every sample."
RAN = Examined(functions=("copy_page_range",), nr_blocks=4, nr_entered=4, nr_programs=9)
UNEXECUTED = replace(reach(nearest="fork"), changed=("helper",))
WRONG = Wrong("fork", ("fork-64k: patched: pte at 8: 1 instead of 0", "more"), (2, "change 2"))


@pytest.mark.parametrize(
    ("its", "code", "said"),
    [
        (judgement(FASTER, SAME), 0, "No regression was found: faster in 1 row, fork-4k (2.000x);"),
        (
            judgement(FASTER, replace(SAME, timed=timed(1.0, "equal", 1.0929))),
            0,
            ("No regression was found: faster in 1 row, fork-4k (2.000x); equal time within 9.29 %"
             " in 1 row."),
        ),
        (
            judgement(
                operation(counted=counted(), timed=timed(1.0, "equal", 1.02)),
                operation("fork-2m", counted=counted(), timed=timed(1.0, "equal", 1.0929)),
                operation("fork-1m", counted=counted(instructions=0.0009)),
            ),
            0,
            ("No regression was found: equal time within 2.00 % to 9.29 % in 2 rows; the same"
             " counts within 0.09 % in 1 other row."),
        ),
        (judgement(SAME), 0, "No regression was found: the same counts in 1 row."),
        (
            judgement(operation(counted=counted(loads=0.002)), operation("fork-2m", counted=counted(
                instructions=0.02)), operation("fork-1m", counted=counted(instructions=0.04))),
            1,
            ("A regression in what is executed: executes more instructions in 2 rows, most in"
             " fork-1m (+4.0 %, 0 locked); executes a little more loads in 1 row, +0.2 %, 0"
             " instructions, 0 locked (fork-4k)."),
        ),
        (
            judgement(
                operation(timed=timed(0.4, "faster"), counted=counted(instructions=0.1)),
                operation("fork-2m", counted=counted(instructions=0.04)),
            ),
            4,
            ("Undecided, since counts and times disagree: executes more instructions in 1 row,"
             " fork-2m"),
        ),
        (judgement(FASTER, SLOWER), 1, "A regression: slower in 1 row, fork-64k (1.100x);"),
        (
            judgement(operation(counted=counted(locked=0.5)), SAME),
            1,
            ("A regression in what is executed: executes more locked operations in 1 row, fork-4k"
             " (+50.00, 0 instructions)"),
        ),
        (
            judgement(FASTER, operation("fork-64k", timed=timed(1.004, "slower"))),
            0,
            "Mostly faster: a little slower in 1 row, 1.004x (fork-64k); faster in 1 row, fork-4k",
        ),
        (
            judgement(operation(counted=counted(instructions=-0.0005, loads=1.0))),
            1,
            ("A regression in what is executed: executes more loads in 1 row, fork-4k (+100.0 %,"
             " -0.05 % instructions, 0 locked)"),
        ),
        (
            judgement(operation("fork-64k", counted=counted(instructions=0.0005, loads=1.0)), LESS),
            1,
            "A regression in what is executed: executes more loads in 1 row, fork-64k (+100.0 %,",
        ),
        (
            judgement(A_LITTLE, LESS, operation("fork-2m", counted=counted(loads=0.002))),
            0,
            ("Mostly fewer are executed: executes a little more instructions in 1 row, +0.4 %, 0"
             " locked (fork-64k); executes a little more loads in 1 row, +0.2 %, 0 instructions,"
             " 0 locked (fork-2m); executes fewer instructions in 1 row, fork-4k (-8.0 %,"),
        ),
        (
            judgement(A_LITTLE, LESS, strict=True),
            1,
            "Mostly fewer are executed: executes a little more instructions in 1 row, +0.4 %, 0",
        ),
        (
            judgement(A_LITTLE, LESS, OPEN),
            4,
            "Mostly fewer are executed, but undecided: executes a little more instructions in 1",
        ),
        (
            judgement(A_LITTLE),
            1,
            "A small regression in what is executed: executes a little more instructions in 1 row",
        ),
        (
            judgement(operation(counted=counted(instructions=-0.06, loads=0.02))),
            4,
            ("Undecided: executes more loads and less of others in 1 row, fork-4k (+2.0 %, -6.0 %"
             " instructions, 0 locked)"),
        ),
        (judgement(operation(counted=counted(loads=1e-5))), 0, "No regression was found: the same"),
        (judgement(FASTER, OPEN), 4, "Undecided: faster in 1 row, fork-4k (2.000x); undecided"),
        (judgement(reach=UNEXECUTED), 4, "Undecided: no row executes anything that it changes,"),
        (
            judgement(reach=replace(reach(nearest="fork"), elsewhere=())),
            0,
            ("Nothing changes: the code and data of its files are the same with it, so nothing was"
             " measured."),
        ),
        (
            judgement(reach=replace(reach(nearest="fork"), elsewhere=("mm/vmscan.c",))),
            4,
            ("Undecided: no hosted object changes, and it changes code that is not hosted, in mm/"
             "vmscan.c, so nothing was measured."),
        ),
        (
            judgement(reach=reach(nearest="fork"), to="7.3"),
            4,
            "Undecided: every hosted object has the same code and data with it, so nothing was",
        ),
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
    lead = f"{RIGHT} " if its.operations else ""
    assert words.sentence(its).startswith(f"{lead}{said}")
    assert page.render(its).count("\njudgement  ") == 1


@pytest.mark.parametrize(
    ("its", "said"),
    [
        (judgement(SLOWER), f"{RIGHT} A regression"),
        (judgement(SLOWER, whole=RAN), "Memory was right in every program and after every sample."),
        (judgement(reach=UNEXECUTED, whole=RAN), "Memory was right in every program. Undecided: "),
        (
            judgement(SAME, whole=replace(RAN, differs="after it: 1 is returned")),
            ("Memory was right in every program and after every sample, though not always as"
             " without the series. No regression"),
        ),
        (
            judgement(SAME, wrong_steps=((1, "one", "pte 3"),)),
            f"{RIGHT} Up to patch 1, 'one', it is WRONG alone: pte 3. No regression",
        ),
    ],
)  # fmt: skip
def test_what_is_right_or_wrong_comes_before_what_it_costs(its: Judgement, said: str) -> None:
    assert words.sentence(its).startswith(said)


@pytest.mark.parametrize(
    ("files", "said"),
    [
        (("mm/a.c",), "mm/a.c"),
        (("mm/a.c", "mm/b.c", "mm/c.c"), "mm/a.c, mm/b.c and mm/c.c"),
        (("mm/a.c", "mm/b.c", "mm/c.c", "mm/d.c"), "its 4 files"),
    ],
)
def test_files_with_the_same_code_are_named(files: tuple[str, ...], said: str) -> None:
    its = judgement(whole=Examined(same=True), reach=None, files=files)
    whole = f"Nothing changes: the code and data of {said} are the same with it."
    assert words.sentence(its) == whole


MORE_LOCKED = counted(instructions=-0.05, locked=0.0005)
MORE_PREFETCHES = counted(instructions=-0.05, prefetches=0.5)


@pytest.mark.parametrize("change", [MORE_LOCKED, MORE_PREFETCHES, None])
@pytest.mark.parametrize("control", [True, False, None])
def test_no_regression_takes_counts_that_suffice_or_a_control_that_was_found(
    change: CountedChange | None, *, control: bool | None
) -> None:
    time = timed(1.0, "equal", 1.09, control=control)
    its = judgement(LESS, operation("fork-2m", counted=change, timed=time))
    assert its.exit_code == (0 if control else 4)
    said = "In 1 row (fork-2m) a loss may have been missed: a copy that was slowed on purpose"
    assert (said in words.sentence(its)) != bool(control)
    first = "No regression was" if control else "Undecided in 1 of 2 rows: "
    assert words.sentence(its).startswith(f"{RIGHT} {first}")


def test_counts_suffice_whatever_the_control_says() -> None:
    time = timed(1.0, "undecided", control=False)
    assert judgement(operation(counted=counted(instructions=-0.08), timed=time)).exit_code == 0


def test_a_time_against_its_counts_is_no_gain() -> None:
    """Counts are 0.0009 % fewer, the time is 1.088 [1.016 .. 1.165]."""
    against = TimedChange(1.088, 1.016, 1.165, "undecided", None, 1.15)
    its = judgement(
        LESS, operation("2m-serial", counted=counted(instructions=-9e-6), timed=against)
    )
    assert its.exit_code == 4
    assert "undecided in 1 row" in words.sentence(its)


def test_a_loss_of_time_where_counts_are_the_same_is_undecided() -> None:
    loss = TimedChange(1.1, 1.05, 1.15, "undecided", None, 1.15)
    its = operation("2m-serial", counted=counted(), timed=loss)
    assert its.outcome == "undecided"
    assert judgement(its).exit_code == 4


def test_regressions_come_first_and_the_smallest_effect_is_told() -> None:
    its = judgement(FASTER, SAME, SLOWER, OPEN)
    assert [one.row for one in its.ordered()] == ["fork-64k", "fork-1m", "fork-2m", "fork-4k"]
    assert "an effect of 2.00 % (fork-1m) to 2.00 % (fork-64k)" in words.sentence(its)


def test_more_rows_that_are_faster_come_before_few_that_are_slower() -> None:
    more = operation("fork-16k", timed=timed(0.9, "faster"), counted=counted(instructions=-0.1))
    its = judgement(FASTER, more, SLOWER)
    assert words.verdict(its) == "Faster in most rows that time decides, but a regression"
    assert its.exit_code == 1
    assert words.verdict(judgement(FASTER, SLOWER)) == "A regression"


@pytest.mark.parametrize(
    ("columns", "names"),
    [(80, []), (84, ["before"]), (92, ["where"]), (100, ["before", "where"])],
)
def test_the_time_without_the_series_is_the_first_column_that_goes(
    columns: int, names: list[str]
) -> None:
    fork = replace(timed(1.1, "slower"), before_ns=24.386, per="page")
    call = replace(timed(1.2, "slower"), before_ns=12486.0)
    rows = operation(timed=fork, counted=counted()), operation("mmap", timed=call), SAME
    with as_wide_as(columns):
        lines = page.render(judgement(*rows)).splitlines()
    (head,) = (line for line in lines if line.startswith("operation "))
    assert [name for name in ("before", "where") if name in head.split()] == names
    (row,) = (line for line in lines if line.startswith("fork-4k "))
    assert ("24.39 ns 1.100 [" in row) == ("before" in names)
    assert max(map(len, lines)) <= columns
    if names == ["before", "where"]:
        assert any(line.startswith("mmap ") and " 12.49 us 1.200 [" in line for line in lines)
        assert "Before: without it, for each page or call." in " ".join(lines)


def test_of_rows_that_were_only_counted_the_sentence_says_how_they_are_timed() -> None:
    said = "Nothing was timed; more --minutes time rows."
    assert words.sentence(judgement(SAME)).endswith(said)
    blind = operation(timed=replace(timed(1.1, "slower"), smallest_effect=None))
    assert "timed;" not in words.sentence(judgement(blind))


def test_rows_too_noisy_to_say_anything_are_counted_apart() -> None:
    noisy = operation("mprotect-512", timed=TimedChange(0.9, 0.2, 4.0, "undecided", None, 11.6))
    said = words.sentence(judgement(SLOWER, noisy))
    assert "2 of 2 rows timed, 1 too noisily to find that it takes twice as long: an" in said
    assert "2.00 % (fork-64k) is found" in said
    assert "too noisily" in words.sentence(judgement(noisy))


def test_all_rows_that_are_slower_are_shown() -> None:
    slow = [operation(f"slow-{n}", timed=timed(1.1 + n / 100, "slower")) for n in range(9)]
    more = [operation(f"more-{n}", counted=counted(instructions=n + 1.0)) for n in range(30)]
    text = page.render(judgement(*slow, *more))
    assert all(one.row in text for one in slow)


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
    assert [line.split()[3] for line in text.splitlines() if line.startswith("fewer ")] == [
        "-8.0", "-7.0",
    ]  # fmt: skip
    assert sum(line.startswith("worse-") for line in text.splitlines()) == page.MOST_ROWS - 6
    assert "and 234 rows more: 192 executes more, 18 mixed counts, 18 the same counts" in text
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


QUICK = Examined(("zap_pte_range",), nr_blocks=4, nr_entered=2, nr_programs=9)
ELSEWHERE = replace(reach(nearest="fork"), elsewhere=("mm/vmscan.c",))


@pytest.mark.parametrize(
    ("its", "said"),
    [
        (judgement(SAME, wrong=WRONG), ("wrong", 5)),
        (judgement(SLOWER), ("regression", 1)),
        (judgement(A_LITTLE, LESS, strict=True), ("regression", 1)),
        (judgement(A_LITTLE, LESS), ("no-regression", 0)),
        (judgement(SAME), ("no-regression", 0)),
        (judgement(reach=None, whole=Examined(same=True)), ("nothing-changes", 0)),
        (judgement(FASTER, OPEN), ("undecided", 4)),
        (judgement(unhosted={"fork": "it reaches x()"}), ("undecided", 3)),
        (judgement(reach=None, whole=QUICK), ("undecided", 4)),
        (judgement(reach=None, whole=replace(QUICK, nr_entered=0)), ("not-reached", 4)),
        (judgement(reach=None, whole=Examined()), ("not-reached", 4)),
        (judgement(reach=ELSEWHERE), ("not-reached", 4)),
        (judgement(reach=UNEXECUTED, unhosted={"mm tests": "no config"}), ("not-reached", 3)),
    ],
)  # fmt: skip
def test_the_object_has_the_judgement_in_a_word(its: Judgement, said: tuple[str, int]) -> None:
    found = page.to_object(its)
    assert (found["verdict"], found["exit"]) == said
    table = (CHECKOUT / "docs" / "commands.md").read_text()
    words_of = dict(
        re.findall(r"^\| `([a-z-]+)` \| [^|]+ \| (\d(?:, \d)*) \|$", table, re.MULTILINE)
    )
    assert set(words_of) == set(get_args(words.Word))
    assert str(said[1]) in words_of[said[0]]


def test_the_object_can_be_read_again() -> None:
    its = judgement(SLOWER, SAME, wrong_steps=((1, "change 1", "bad"),))
    again = json.loads(json.dumps(its.to_object()))
    assert (again["exit"], again["schema"]) == (1, 1)
    assert [one["outcome"] for one in again["operations"]] == ["slower", "same"]
