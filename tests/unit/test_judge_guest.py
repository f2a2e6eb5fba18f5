# SPDX-License-Identifier: GPL-2.0-only
"""What guests say of a series: tests that fail with it alone, and twice, speak against it."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

import pytest

from ream.errors import CannotRunHere, KernelComplained, ReamError, VerificationFailed
from ream.experiment import named
from ream.folders import names
from ream.judge import guest
from ream.judge.guest import failed, lists_of, only, run_guests, said
from ream.judge.reach import Reach, WholeReach
from ream.kernel.image import Image
from ream.kernel.source import Tree
from ream.progress import Reporter
from ream.stage.selftests import SELFTESTS, read_selftests

RIGHT = {"cow.a": "pass", "cow.b": "pass", "cow.c": "fail"}
TREE = Tree(Path("tree"), "0" * 64, "a tree", "6.12")

Run = Callable[..., list[str]]


def reach(**functions: tuple[str, ...]) -> WholeReach:
    none: dict[str, tuple[str, ...]] = dict.fromkeys(
        ("changed", "added", "removed", "moved", "data", "layout"), ()
    )
    its = tuple(
        Reach(name.replace("_", "-"), changed, (), 64, None) for name, changed in functions.items()
    )
    return WholeReach(991, **none, text_bytes=(64, 80), experiments=its, nearest=None)


@pytest.mark.parametrize("name", [one for one in names() if named(one).selftests])
def test_the_list_that_an_experiment_names_is_there(name: str) -> None:
    assert read_selftests(SELFTESTS / f"{named(name).selftests}.list").programs


def test_the_lists_of_what_a_series_changes_are_run() -> None:
    assert lists_of(reach(fork=("a",), mremap=("b",), migrate=())) == ("fork",)
    assert lists_of(reach(compact=("a",), fork=("b",))) == ("migrate", "fork")


def test_a_series_that_changes_nothing_hosted_has_all_lists_run() -> None:
    assert set(lists_of(reach(fork=(), migrate=()))) == {"fork", "migrate", "zone-device"}


def test_a_test_that_also_fails_without_the_series_says_nothing() -> None:
    after = {"cow.a": "fail", "cow.b": "pass", "cow.c": "fail", "cow.d": "fail"}
    assert failed(RIGHT, after, ()) == ("cow.a",)
    assert failed(RIGHT, after, ("cow.*",)) == ()


def test_a_line_says_how_many_results_are_equal_and_which_are_not() -> None:
    assert said(RIGHT, RIGHT) == "2 tests of 3 pass with the series as without; no result differs"
    after = {"cow.a": "skip", "cow.b": "pass", "cow.c": "fail"}
    assert said(RIGHT, after) == (
        "1 test of 3 pass with the series as without; otherwise: cow.a (pass, skip)"
    )


@pytest.fixture
def guests(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., list[str]]:
    """A function that runs the list of fork in guests that give what it is told, one by one."""

    def run(*results: Mapping[str, str] | ReamError) -> list[str]:
        left = iter(results)

        def booted(*_: Any, **__: Any) -> Mapping[str, str]:
            its = next(left)
            if isinstance(its, ReamError):
                raise its
            return its

        monkeypatch.setattr(guest, "choose_accel", lambda *_, **__: ("tcg", "Nehalem-v1", "why"))
        monkeypatch.setattr(guest, "build_image", lambda *_, **__: image())
        monkeypatch.setattr(guest, "run_selftests", booted)
        told = run_guests(
            reach(fork=("copy_page_range",)),
            (TREE, ()),
            (TREE, ()),
            cache=tmp_path,
            logs=tmp_path,
            reporter=Reporter(quiet=True),
        )
        assert not list(left)
        return [f"{'' if one.decided else 'open: '}{one.name}: {one.line}" for one in told]

    return run


def image() -> Image:
    return Image(Path("tree"), Path("bzImage"), Path("config"), {})


def broken(*names_: str) -> dict[str, str]:
    return RIGHT | dict.fromkeys(names_, "fail")


def test_equal_results_take_two_guests(guests: Run) -> None:
    assert guests(RIGHT, RIGHT) == [f"fork: {said(RIGHT, RIGHT)}"]


def test_what_fails_once_is_told_and_no_fault(guests: Run) -> None:
    (line,) = guests(RIGHT, broken("cow.a"), RIGHT)
    assert line.endswith("not when repeated: cow.a passes without the series and fails with it")


def test_only_programs_that_failed_are_run_again() -> None:
    tests = read_selftests(SELFTESTS / "fork.list")
    again = only(tests, ("cow.a", "mkdirty.b", "cow.c"))
    assert [PurePosixPath(one).name for one in again.programs] == ["cow", "mkdirty"]
    assert again.words == tests.words
    assert only(tests, ("cow.a", "a_suite_of_a_module.b")) == tests


def test_what_fails_twice_is_wrong(guests: Run, tmp_path: Path) -> None:
    with pytest.raises(VerificationFailed) as raised:
        guests(RIGHT, broken("cow.a", "cow.b"), broken("cow.b"))
    assert str(raised.value).splitlines() == [
        "fork: cow.b passes without the series and fails with it",
        f"the console is {tmp_path}/fork-with.log",
    ]


@pytest.mark.parametrize(
    ("results", "told"),
    [
        ([KernelComplained("it died"), KernelComplained("it died")], "fork: it died"),
        (
            [KernelComplained("complained\nBUG: a"), KernelComplained("otherwise\nBUG: b")],
            "fork: BUG: a",
        ),
    ],
)
def test_a_kernel_that_complains_twice_is_wrong(
    guests: Run, results: Iterable[ReamError], told: str
) -> None:
    with pytest.raises(VerificationFailed) as raised:
        guests(RIGHT, *results)
    assert told in str(raised.value).splitlines()


def test_a_kernel_that_complains_once_is_told(guests: Run) -> None:
    (line,) = guests(RIGHT, KernelComplained("it died"), RIGHT)
    assert line == f"fork: {said(RIGHT, RIGHT)}; another time: it died"


def test_a_base_that_does_not_get_through_says_nothing_of_the_series(guests: Run) -> None:
    assert guests(ReamError("no disk\nmore")) == [
        "open: fork: cannot be run without the series: no disk"
    ]


@pytest.mark.parametrize("results", [(RIGHT,), (RIGHT, broken("cow.a"))])
def test_a_tool_that_fails_with_the_series_says_nothing_of_it(
    guests: Run, results: Iterable[Mapping[str, str]]
) -> None:
    assert guests(*results, ReamError("a module is missing\nmore")) == [
        "open: fork: cannot be run with the series: a module is missing"
    ]


def test_a_machine_that_runs_no_guest_is_told(guests: Run) -> None:
    with pytest.raises(CannotRunHere, match="no QEMU"):
        guests(CannotRunHere("no QEMU"))
