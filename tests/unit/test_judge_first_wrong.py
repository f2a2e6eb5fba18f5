# SPDX-License-Identifier: GPL-2.0-only
"""With which patch a series begins to be wrong."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ream.errors import UnhostedVariant, WrongVariant
from ream.experiment import PATCHED, named
from ream.judge import first_wrong as first_wrong_module
from ream.judge.first_wrong import first_wrong, row_alone
from ream.judge.question import Question
from ream.kernel.series import Patch, Series
from ream.progress import Reporter
from ream.session.request import CountOptions, Request

SERIES = Series("mine", tuple(Patch(f"{n}.patch", f"change {n}", b"%d" % n) for n in range(1, 5)))


def question(tmp_path: Path) -> Question:
    return Question(SERIES, None, tmp_path / "runs", tmp_path, 1)


RIGHT = SimpleNamespace(summary=SimpleNamespace(wrong={}))
"""What a run of a series comes to that is right, as far as it is looked at."""


def test_the_first_wrong_patch_is_found_by_halves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[int] = []

    def run(request: Request, _: Reporter) -> Any:
        number = len(request.variants[-1].patches)
        tried.append(number)
        if number >= 3:
            raise WrongVariant("memory", PATCHED)
        return RIGHT

    monkeypatch.setattr(first_wrong_module, "run_session", run)
    request = question(tmp_path).request(named("fork").at("native"), ())
    assert first_wrong(request, SERIES, PATCHED, Reporter(quiet=True)) == 3
    assert tried == [2, 3]


def test_what_is_right_when_it_is_run_again_is_not_laid_to_a_patch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(first_wrong_module, "run_session", lambda *_: RIGHT)
    request = question(tmp_path).request(named("fork").at("native"), ())
    assert first_wrong(request, SERIES, PATCHED, Reporter(quiet=True)) is None


def test_a_beginning_is_wrong_also_where_its_samples_are_told_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = SimpleNamespace(summary=SimpleNamespace(wrong={PATCHED: ["pte at 8"]}))
    monkeypatch.setattr(first_wrong_module, "run_session", lambda *_: wrong)
    request = question(tmp_path).request(named("fork").at("native"), ())
    assert first_wrong(request, SERIES, PATCHED, Reporter(quiet=True)) == 1


def test_a_beginning_that_cannot_be_run_hides_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(*_: object) -> None:
        raise UnhostedVariant("it reaches x()", PATCHED)

    monkeypatch.setattr(first_wrong_module, "run_session", run)
    request = question(tmp_path).request(named("fork").at("native"), ())
    assert first_wrong(request, SERIES, PATCHED, Reporter(quiet=True)) is None


@pytest.mark.parametrize(
    ("reproduce", "command"),
    [
        ("ream judge v5.mbx --quick --seed 7", "--series v5.mbx --row fork-4k --seed 1"),
        (
            "ream judge a@b --base 7.3 --minutes 5 --config distro --strict --seed 7",
            "--series a@b --row fork-4k --base 7.3 --config distro --seed 1",
        ),
        (
            "ream judge HEAD~3.. --tree linux --base-ref mm-new --seed 7",
            "--series 'HEAD~3..' --row fork-4k --tree linux@mm-new --seed 1",
        ),
    ],
)
def test_of_what_no_program_shows_the_row_can_be_run_alone(
    tmp_path: Path, reproduce: str, command: str
) -> None:
    request = question(tmp_path).request(named("fork").at("native"), ())
    why, said = row_alone(request, "fork-4k: patched: pte at 8\nregisters", reproduce)
    assert why == "only the oracle of fork finds it, and no program shows it; again:"
    assert said == f"  ream run fork {command}"


def test_what_is_wrong_at_an_edge_is_run_with_the_first_row(tmp_path: Path) -> None:
    request = question(tmp_path).request(named("fork").at("native"), ())
    request = replace(request, count=CountOptions())
    wrong = "protnone-all/fork: patched: pte at 8"
    _, said = row_alone(request, wrong, "ream judge v5.mbx --seed 7")
    first = request.experiment.rows[0].name
    assert said == f"  ream run fork --series v5.mbx --row {first} --count --seed 1"
