# SPDX-License-Identifier: GPL-2.0-only
"""Programs that a judgement shows: each is in a file, which the printed command names."""

import re
import shlex
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from judge_world import SERIES, judgement
from ream.judge import explain, page
from ream.judge.judgement import DIFFERS, Examined, Finding, Judgement, Wrong
from ream.judge.kept import with_programs
from ream.judge.question import Question
from ream.paths import CHECKOUT
from ream.program.text import load_program
from ream.width import as_wide_as

STEPS = "p0 mmap a 4 anon private rw\np0 write a"
OTHER = "p0 mmap a 8 anon private rw"
FOUND = Finding("a rule", "after `p0 write a`: wrong", program=STEPS, config="debug")
WRONG = judgement(wrong=Wrong("all", ("wrong", "a program of 2 steps shows it:"), None, FOUND))
DIFFERING = judgement(
    whole=Examined(("f",), 3, 2, 7, 210, differs="1 is returned", differing=OTHER)
)


def asked(runs: Path, *words: str) -> Question:
    return Question(SERIES, None, runs, runs, 1, program_words=("--series", "a b.patch", *words))


def command_of(its: Judgement) -> list[str]:
    """The command that the page prints, as a shell reads it."""
    (text,) = page.render(its).split("to run it", 1)[1:]
    return shlex.split(re.split(r"\n(?=not seen|reach)", text)[0].replace("\\\n", ""))


@pytest.mark.parametrize("columns", [40, 80, 200])
def test_the_command_of_a_page_runs_the_program_that_is_kept(tmp_path: Path, columns: int) -> None:
    its = with_programs(WRONG, asked(tmp_path / "a b" / "runs"))
    with as_wide_as(columns):
        ream, program, file, *options = command_of(its)
    assert (Path(ream).name, program) == ("ream", "program")
    assert options == ["--series", "a b.patch", "--config", "debug"]
    assert "\n".join(map(str, load_program(Path(file)))) == STEPS


def test_a_program_that_only_differs_is_compared_with_the_base(tmp_path: Path) -> None:
    its = with_programs(DIFFERING, asked(tmp_path, "--config", "mine.config"))
    _, _, file, *options = command_of(its)
    assert options == ["--series", "a b.patch", "--config", "mine.config", "--against-base"]
    assert Path(file).read_text() == f"{OTHER}\n"
    (finding,) = its.findings
    assert [*its.to_object()["programs"]] == [finding.id]
    assert finding.rule == DIFFERS


@pytest.mark.parametrize(
    ("found", "here", "said"),
    [("/bin/ream", CHECKOUT, "ream"), (None, CHECKOUT, "./ream"), (None, None, CHECKOUT / "ream")],
)
def test_the_command_is_one_that_a_shell_finds(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    found: str | None,
    here: Path | None,
    said: str | Path,
) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: found)
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    monkeypatch.chdir(here or tmp_path)
    (command,) = with_programs(WRONG, asked(tmp_path)).programs.values()
    assert shlex.split(command)[0] == str(said)


def test_no_file_is_replaced_and_the_same_program_is_kept_once(tmp_path: Path) -> None:
    first = with_programs(WRONG, asked(tmp_path))
    assert with_programs(WRONG, asked(tmp_path)).programs == first.programs
    (file,) = tmp_path.iterdir()
    file.write_text("of somebody else\n")
    again = with_programs(WRONG, asked(tmp_path))
    assert file.read_text() == "of somebody else\n"
    assert f"{file.stem}-2.program" in again.programs[FOUND.id]


def test_a_program_that_cannot_be_kept_is_no_end_of_the_judgement(tmp_path: Path) -> None:
    (tmp_path / "runs").write_text("no folder")
    its = with_programs(WRONG, asked(tmp_path / "runs"))
    assert its.programs == {}
    assert its.notes[-1].startswith("the program is not kept: ")
    assert "to run it" not in page.render(its)


def test_a_shell_finds_a_file_in_the_users_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    (command,) = with_programs(WRONG, asked(tmp_path / "my runs")).programs.values()
    assert " program ~/'my runs/" in command
    shell = ("sh", "-c", f"cat {command.split(None, 2)[2]}".replace(" --", " # ", 1))
    assert (
        subprocess.run(shell, stdout=subprocess.PIPE, text=True, check=True).stdout == f"{STEPS}\n"
    )


def test_others_are_told_no_file_of_this_machine(tmp_path: Path) -> None:
    its = explain.for_others(with_programs(WRONG, asked(tmp_path)))
    assert its == replace(explain.for_others(WRONG), programs={})


@pytest.mark.parametrize(
    ("typed", "also"),
    [("", ""), ("-o 'my runs'", " --runs 'my runs'"), ("--output=there", " --runs there")],
)
def test_the_command_for_its_times_looks_where_the_records_are(typed: str, also: str) -> None:
    its = judgement(command=f"ream judge a.patch {typed}", records=("one", "two"))
    said = " ".join(page.render(its).split())
    assert f"`ream report two --rows{also}` has the times" in said
