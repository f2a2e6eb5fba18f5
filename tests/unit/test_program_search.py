# SPDX-License-Identifier: GPL-2.0-only
"""A search over seeds finds what a series does and its base does not."""

from dataclasses import dataclass, replace
from typing import Any

from ream.errors import ReamError
from ream.program.aim import Attempt
from ream.program.ran import Ran, difference
from ream.program.search import Found, search, shortened
from ream.program.step import Program
from ream.program.text import parse
from ream.stage.computer import Checks

PROGRAM = parse("p0 mmap a 1 anon private rw\n")
RIGHT = Ran(parts={1: {"vmas": "a", "rss": "b"}, 2: {"vmas": "c", "rss": "d"}})
WRONG = Ran(((2, "frame 0x10 is lost"),), parts=RIGHT.parts)
OTHER = Ran(parts={1: {"vmas": "a", "rss": "b"}, 2: {"vmas": "c", "rss": "e"}})


@dataclass
class Rig:
    """Gives one answer after another, and the last one again; another if no alarm ends it."""

    answers: list[Ran]
    behind: Ran | None = None

    def run(self, program: Program, checks: Checks = Checks.EACH, *, goes_on: bool = False) -> Ran:
        del program
        if goes_on and self.behind is not None:
            return self.behind
        if checks is Checks.EACH or len(self.answers) == 1:
            return self.answers[0]
        return self.answers.pop(0)


@dataclass
class Watched:
    """A computer whose programs all meet one block."""

    rig: Any
    block: int

    def run(self, program: Program, checks: Checks) -> tuple[Ran, frozenset[int]]:
        return self.rig.run(program, checks), frozenset({self.block})


def both(base: Any, series: Any) -> Any:
    return Watched(base, 5), Watched(series, 6)


class Attempts(list[Attempt]):
    """Programs in their order, and of which it was noted what they execute."""

    def __init__(self, *its: Attempt) -> None:
        super().__init__(its)
        self.learned: list[str] = []
        self.differing: list[tuple[str, int, str]] = []

    def learn(self, attempt: Attempt, met: frozenset[int]) -> None:
        assert met == {5}
        self.learned.append(attempt.origin)

    def differs(self, attempt: Attempt, line: int, part: str, shorter: Any) -> None:
        self.differing.append((attempt.origin, line, part))
        if attempt.program == LONG:
            self.shorter = [step.verb for step in shorter(attempt.program, part)]


def found(
    base: list[Ran],
    series: list[Ran],
    *,
    within_s: float = 3.5,
    behind: tuple[Ran | None, Ran | None] = (None, None),
) -> Any:
    clock = iter(range(100))
    limits: Any = {"within_s": within_s, "now": lambda: next(clock)}
    attempts: Any = Attempts(*(Attempt(f"{seed}", PROGRAM) for seed in range(7, 90)))
    its = both(Rig(base, behind[0]), Rig(series, behind[1]))
    searched = search(*its, attempts, **limits)
    assert searched.met == {6}
    assert len(attempts.learned) >= searched.nr_programs > 0 or searched.found
    return searched.found


def test_an_alarm_of_the_series_alone_ends_the_search() -> None:
    its = found([RIGHT], [RIGHT, WRONG])
    assert (its.attempt.origin, its.after_s, its.differs) == ("8", 2, None)
    assert its.ran.alarms == WRONG.alarms


def test_an_alarm_that_the_base_raises_is_not_the_series() -> None:
    assert found([WRONG], [WRONG]) is None


def test_an_alarm_of_the_base_does_not_hide_what_comes_behind_it() -> None:
    more = replace(WRONG, alarms=(*WRONG.alarms, (3, "page 0x7 is not where it was")))
    its = found([WRONG], [WRONG], behind=(WRONG, more))
    assert its.ran.alarms == more.alarms[1:]
    assert found([WRONG], [WRONG], behind=(more, more)) is None


def test_the_first_difference_is_what_is_left_without_an_alarm() -> None:
    its = found([RIGHT], [RIGHT, OTHER, RIGHT, OTHER])
    assert (its.attempt.origin, its.differs) == ("8", (2, "rss"))


def test_a_difference_that_a_program_sees_counts_more_than_one_before_it() -> None:
    base, seen, unseen = (
        Ran(parts={1: {"rss": rss, "events": nr}}) for rss, nr in ("ab", "cb", "ad")
    )
    its = found([base], [unseen, seen, unseen])
    assert (its.attempt.origin, its.differs) == ("8", (1, "rss"))
    assert found([base], [unseen, unseen]).differs == (1, "events")


def test_an_alarm_counts_more_than_a_difference_before_it() -> None:
    its = found([RIGHT], [OTHER, WRONG])
    assert (its.attempt.origin, its.differs) == ("8", None)


def test_what_a_step_returns_is_compared_first() -> None:
    base, series = (Ran(returned={1: nr}, parts=OTHER.parts) for nr in (0, -12))
    assert difference(base, series) == (1, "returned")
    assert difference(base, base) is None


LONG = parse("p0 mmap a 1 anon private rw\np0 write a\np0 fork p1\np0 read a\np0 munmap a\n")


class Forking:
    """What a series does otherwise with a program that forks, behind the line with which it does.

    A program that reads what is not mapped is more than the computer takes.
    """

    def __init__(self, otherwise: Ran) -> None:
        self.otherwise = otherwise

    def run(self, program: Program, checks: Checks = Checks.EACH, **_: bool) -> Ran:
        del checks
        verbs = [step.verb for step in program]
        if "mmap" not in verbs:
            raise ReamError("read() is not hosted")
        return self.otherwise if "fork" in verbs else RIGHT


def short(otherwise: Ran, **its: Any) -> list[str]:
    rigs: Any = Forking(RIGHT), Forking(otherwise)
    program = shortened(*rigs, Found(Attempt("7", LONG), otherwise, 1.0, **its), within_s=5.0)
    return [step.verb for step in program]


def test_a_program_with_an_alarm_is_made_short() -> None:
    assert short(WRONG) == ["mmap", "fork"] or short(WRONG) == ["mmap", "write"]


def test_a_program_that_differs_is_made_short() -> None:
    assert short(OTHER, differs=(3, "rss")) == ["mmap", "fork"]


def test_a_program_that_differs_is_offered_to_be_varied_and_can_be_made_short_before() -> None:
    attempts = Attempts(Attempt("7", LONG))
    all_of: Any = *both(Forking(RIGHT), Forking(OTHER)), attempts
    its = search(*all_of, within_s=9.0, now=lambda: 0.0)
    assert its.found is not None
    assert (its.found.differs, attempts.differing) == ((2, "rss"), [("7", 2, "rss")])
    assert attempts.shorter == ["mmap", "fork"]


def test_a_program_that_the_computer_lacks_something_for_is_passed_over() -> None:
    programs = (parse("vmalloc 1\n"), LONG)
    attempts = Attempts(*(Attempt(f"{nr}", one) for nr, one in enumerate(programs)))
    all_of: Any = *both(Forking(RIGHT), Forking(WRONG)), attempts
    its = search(*all_of, within_s=9.0, now=lambda: 0.0)
    assert its.found is not None
    assert (its.found.attempt.origin, its.nr_programs, its.nr_steps) == ("1", 0, 0)
    assert attempts.learned == ["1"]
