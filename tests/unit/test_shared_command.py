# SPDX-License-Identifier: GPL-2.0-only
"""The command line that a letter or a page passes on."""

from pathlib import Path
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from ream.cli.app import app as whole_app
from ream.cli.shared import shared_command
from ream.errors import CannotRunHere
from ream.judge import session
from ream.judge.question import Question
from ream.paths import CHECKOUT
from ream.progress import Reporter

PATCH = str(CHECKOUT / "tests/native/patches/no-change.patch")

app = typer.Typer()


@app.command()
def judge(
    context: typer.Context,
    series: Path,
    *,
    minutes: float = 10.0,
    letter: Path | None = None,
    tree: Path | None = None,
    per_patch: Annotated[bool, typer.Option("--per-patch")] = False,
    seed: int = 7,
) -> None:
    """Print what would be passed on; what was given is in the context, too."""
    assert context.params.keys() == {"series", "minutes", "letter", "tree", "per_patch", "seed"}
    del minutes, letter, tree, per_patch
    print(shared_command(context, series.name, seed, without=("letter",)))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["/a/b/v5.mbx"], "ream judge v5.mbx --seed 7"),
        (["v5.mbx", "--letter", "/a/reply", "--seed", "9"], "ream judge v5.mbx --seed 9"),
        (
            ["v5.mbx", "--per-patch", "--tree", "/home/me/linux@v6.12", "--minutes", "3"],
            "ream judge v5.mbx --minutes 3 --tree linux@v6.12 --per-patch --seed 7",
        ),
    ],
)
def test_options_that_were_given_are_kept_and_paths_are_not(words: list[str], said: str) -> None:
    ran = CliRunner().invoke(app, words, prog_name="judge")
    assert (ran.exit_code, ran.output.strip()) == (0, said)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([PATCH], "no-change.patch --base 6.12 --seed 1"),
        ([PATCH, "--quick", "--base", "7.3"], "no-change.patch --quick --base 7.3 --seed 1"),
        ([PATCH, "--tree", "/a/linux"], "no-change.patch --tree linux --seed 1"),
        (["--from", "6.12", "--to", "7.3"], "--from 6.12 --to 7.3 --seed 1"),
    ],
)
def test_the_base_of_a_judgement_is_named_though_it_was_not_given(
    words: list[str], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The default elsewhere, or later, may be another."""
    asked = list[Question]()

    def judged(question: Question, _: Reporter) -> None:
        asked.append(question)
        raise CannotRunHere

    monkeypatch.setattr(session, "judge", judged)
    CliRunner().invoke(whole_app, ["judge", *words, "--seed", "1", "--quiet"])
    assert [one.reproduce for one in asked] == [f"ream judge {said}"]
