# SPDX-License-Identifier: GPL-2.0-only
"""The command line that a letter or a page passes on."""

from pathlib import Path
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from ream.cli.shared import shared_command

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
