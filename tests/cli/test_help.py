# SPDX-License-Identifier: GPL-2.0-only
"""What a newcomer reads first."""

import json
import re
import shutil
import subprocess
import sys
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
import typer

from help_texts import FOLDER, help_texts
from ream import __version__
from ream.cli import app
from ream.cli.helped import COMMANDS
from ream.cli.row_tables import RowTable, tables
from ream.cli.words import glossary
from ream.experiment import named
from ream.folders import names
from ream.manual.tree import pages
from ream.paths import CHECKOUT


def test_the_version_is_one_line(ream) -> None:
    assert ream("--version").out == f"ream {__version__}\n"


def test_no_words_print_the_help(ream) -> None:
    said = ream()
    for command in ("run", "list", "doctor", "report"):
        assert f"\n  {command} " in said.out + said.err


@pytest.mark.parametrize("command", ["run", "list", "doctor", "report"])
def test_every_command_explains_itself(ream, command: str) -> None:
    said = ream(command, "--help")
    assert said.code == 0
    assert said.out.startswith("Usage:")


@pytest.mark.parametrize("command", ["run", "replicate", "plan"])
def test_the_help_of_a_large_command_is_one_screen_and_another_has_all(ream, command: str) -> None:
    screen = ream(command, "--help", COLUMNS="80").out.splitlines()
    assert len(screen) <= 24
    assert not [line for line in screen if len(line) > 80]
    everything = ream(command, "--help-all", COLUMNS="80").out
    (page,) = (page for page in pages(app) if page.name == command)
    for word in page.words:
        assert all(name in everything for name in word.names)
    common = [word.names[-1] for word in page.words if word.names and word.section is None]
    assert common
    assert all(any(name in line for line in screen) for name in common)


def test_a_new_clone_shows_the_help_before_anything_is_installed(tmp_path: Path) -> None:
    texts = help_texts()
    kept = {file.stem: file.read_text(encoding="utf-8") for file in FOLDER.glob("*.txt")}
    assert kept == texts, "`make golden` writes these files again; look at what `git diff` shows"
    shutil.copy(CHECKOUT / "ream", tmp_path)
    (tmp_path / "lab").mkdir()
    shutil.copytree(FOLDER, tmp_path / "lab" / "help")
    for is_half_made in (False, True):
        if is_half_made:  # another shell sets it up
            (tmp_path / ".venv" / "bin").mkdir(parents=True)
            (tmp_path / ".venv" / "bin" / "python").symlink_to(sys.executable)
        for words, name in (("--help", "ream"), ("run --help", "run")):
            argv = (str(tmp_path / "ream"), *words.split())
            said = subprocess.run(argv, capture_output=True, text=True, check=True)
            assert (said.stdout, said.stderr) == (texts[name], "")


def test_each_command_stands_in_one_group() -> None:
    group: Any = typer.main.get_command(app)
    assert sorted(chain(*COMMANDS.values())) == sorted(group.commands)


@pytest.mark.parametrize("option", ["--seed", "--base", "--quiet", "--unconfined"])
def test_an_option_says_the_same_in_each_command_that_has_it(option: str) -> None:
    said = {
        word.says: page.name for page in pages(app) for word in page.words if option in word.names
    }
    assert len(said) == 1, said


def test_force_lets_a_file_be_replaced_and_does_nothing_else_in_any_command() -> None:
    its = {
        page.name: word.says
        for page in pages(app)
        for word in page.words
        if "--force" in word.names
    }
    assert {"compare", "history", "report", "judge"} <= its.keys()
    for command, says in its.items():
        assert re.search("replace|in place of", says, re.IGNORECASE), command
        assert ";" not in says, command
        assert "even if" not in says, command


def test_list_has_a_line_for_each_experiment(ream) -> None:
    said = ream("list", COLUMNS="80")
    assert said.code == 0
    assert len(said.out.splitlines()) == len(names()) + 2
    lines = [line.split()[0] for line in said.out.splitlines() if line[:1].strip()]
    assert lines == [*sorted(names()), "`ream"]
    assert "devdax-ram-100GB" not in said.out


FOLIOS = ["4k", "16k", "32k", "64k", "128k", "256k", "512k", "1m", "2m"]


def test_list_shows_one_experiment_with_its_published_tables(ream) -> None:
    said = ream("list", "fork")
    assert (said.code, said.err) == (0, "")
    assert said.out.startswith("fork: ")
    assert "one row is fork-4k: fork of 1 GiB, folios of 4 KiB, warm\n" in said.out
    lines = said.out.splitlines()
    heads = next(line for line in lines if line.split() == FOLIOS)
    line = next(line for line in lines if line.startswith("  munmap-#-cold "))
    marked = {heads[:end].split()[-1] for end in (at + 1 for at, c in enumerate(line) if c == "x")}
    assert marked == {"4k", "64k", "2m"}
    assert "      munmap of 1 GiB, folios of 4 KiB to 2 MiB, cold, folios shuffled\n" in said.out
    assert "zone-device" not in said.out
    published = said.out.partition("published tables\n")[2]
    assert "unmap-pte-batch-v1" in published
    assert "migrate-offload-v4" not in published


def test_list_has_rows_that_differ_in_a_word_in_one_line(ream) -> None:
    said = " ".join(ream("list", "fork", "--stage", "native").out.split())
    assert " bash python node jvm chromium call-fork-# x x x x x dup-mm of each, 39 to 831" in said
    assert "call-fork-#-cold x x dup-mm of each, 39 to 200 VMAs" in said
    assert "dma-#" not in ream("list", "compact").out  # their titles differ in more


@pytest.mark.parametrize("experiment", names())
def test_list_has_each_row_once_and_no_name_that_cannot_be_typed(ream, experiment: str) -> None:
    rows = named(experiment).rows
    for stage in {row.stage for row in rows}:
        its = [row.name for row in rows if row.stage == stage]
        found = []
        for one in tables(row for row in rows if row.stage == stage):
            lines = [line.rows for line in one.lines] if isinstance(one, RowTable) else [[one]]
            found += [row.name for line in lines for row in line]
        assert sorted(found) == sorted(its)
    said = ream("list", experiment, COLUMNS="80").out
    assert "{" not in said
    assert max(map(len, said.splitlines())) <= 80


def test_list_shows_rows_of_one_stage(ream) -> None:
    said = ream("list", "--stage", "vm")
    assert (said.code, said.err) == (0, "")
    assert re.findall(r"^(\w+): \d+ rows?$", said.out, re.MULTILINE).count("vm") > 1
    assert not re.search(r"^(native|live): ", said.out, re.MULTILINE)
    (its,) = json.loads(ream("list", "fork", "--stage", "live", "--json").out)["experiments"]
    assert {row["stage"] for row in its["rows"]} == {"live"}


def test_list_takes_patterns_and_prints_json(ream) -> None:
    said = ream("list", "fork", "--row", "vm-fork-*", "--json")
    assert said.code == 0, said.err
    (its,) = json.loads(said.out)["experiments"]
    assert its["name"] == "fork"
    assert {row["stage"] for row in its["rows"]} == {"vm"}
    assert {"name", "stage", "title", "on_request"} == its["rows"][0].keys()
    assert "fork-pte-batch-v3" in [one["id"] for one in its["tables"]]


def test_list_names_what_an_unknown_experiment_may_have_meant(ream) -> None:
    said = ream("list", "frok")
    assert (said.code, said.out) == (2, "")
    assert said.err.startswith("ream: no experiment 'frok' (did you mean fork?); there is compact")


def test_doctor_says_what_can_run_here(ream) -> None:
    said = ream("doctor")
    assert said.code in (0, 3)
    assert "compiler" in said.out
    assert "vm stage" in said.out
    assert ("NO" in said.out) == (said.code == 3)


LOOKS = (
    "list",
    "list fork",
    "list --stage vm",
    "--help",
    "run --help",
    "bisect --help",
    "doctor",
    "report 6e45",
    "report 011d --rows",
    "show 6e45",
    "compare a5d9 6c37",
    "compare 007a a408",
    "compare 007a a408 --rows",
    "compare fd90 e57f",
    "check 6c37 --baseline a5d9",
    "history --runs docs/records",
    "history --pooled -e zone-device --runs docs/records",
    "history --predict -e fork --runs docs/records",
    "replicate --all --record 6e45",
    "replicate fork-pte-batch-v3 --record 011d --rows",
    "replicate --all --dry-run",
    "run fork --dry-run",
    "judge tests/native/slow/04-fork-locked.patch --dry-run",
    "verify --dry-run",
)


PASTED = re.compile(r"to mend it: |^run +ream |^files in |^    `ream compare ")
"""Command lines and paths that stay in one line."""


def _placed(line: str, here: Path) -> str:
    """The line with a short path in place of those of this test and of this checkout."""
    return line.replace(str(here), "/here").replace(str(CHECKOUT), "/ream")


@pytest.mark.parametrize("columns", [60, 80, 120])
@pytest.mark.parametrize("words", LOOKS)
def test_lines_are_no_longer_than_the_terminal(
    ream, tmp_path: Path, words: str, columns: int
) -> None:
    for name in ("docs", "tests"):
        (tmp_path / name).symlink_to(CHECKOUT / name)
    said = ream(*words.split(), COLUMNS=str(columns))
    lines = [_placed(line, tmp_path) for line in said.out.splitlines() if not PASTED.search(line)]
    assert lines or words.startswith("verify")
    assert not [line for line in lines if len(line) > columns]


def test_the_glossary_has_each_word_once_in_one_sentence(ream) -> None:
    entries = [entry for part in glossary().values() for entry in part.items()]
    assert len(dict(entries)) == len(entries)
    for word, says in entries:
        assert says[0].isupper(), word
        assert says.endswith("."), word
        assert not re.search(r"[.!?] [A-Z]", says), word
    said = ream("help", "words", COLUMNS="80")
    assert (said.code, said.err) == (0, "")
    lines = said.out.splitlines()
    assert max(map(len, lines)) <= 80
    assert {line.split()[0] for line in lines if line[2:3].strip()} >= dict(entries).keys()
    assert " ".join(ream("help", "floor").out.split()) == f"floor {dict(entries)['floor']}"


def test_help_shows_what_the_option_of_that_name_shows(ream) -> None:
    assert ream("help").out == ream("--help").out
    assert ream("help", "run").out == ream("run", "--help").out
    said = ream("help", "flor")
    assert said.code == 2
    assert "did you mean floor" in said.err
