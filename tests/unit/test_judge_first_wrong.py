# SPDX-License-Identifier: GPL-2.0-only
"""With which patch a series begins to be wrong."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ream.errors import UnhostedVariant, WrongVariant
from ream.experiment import PATCHED, named
from ream.judge import first_wrong as first_wrong_module
from ream.judge.first_wrong import first_wrong
from ream.judge.question import Question
from ream.kernel.series import Patch, Series
from ream.progress import Reporter
from ream.session.request import Request

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
