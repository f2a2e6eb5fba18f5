# SPDX-License-Identifier: GPL-2.0-only
"""The examples of --help and of the man pages: each is parsed, and what only reads is executed."""

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer

from ream.cli import app
from ream.examples import examples, lines
from ream.manual import roff
from ream.manual.tree import pages
from ream.paths import CHECKOUT

PER_COMMAND = 3
PAGES = pages(app)
EACH = [(command, line) for command, its in examples().items() for line in its]
READS = {"compare", "export", "help", "history", "list", "report", "show"}
"""Commands that print what there is, within seconds."""
OWN = re.compile(r"\b(last|last-1)\b|--html|-o |~")
"""What is the user's, or is written: nothing of it is here."""


def asked(line: str) -> list[list[str]]:
    """The words of each ream in a command line, without its name."""
    found = re.sub(r"^eval \"\$\((.*)\)\"$", r"\1", line).split(" && ")
    words = [shlex.split(one) for one in found]
    assert {one[0] for one in words} == {"ream"}
    return [one[1:] for one in words]


def test_each_command_has_three_examples_of_itself() -> None:
    assert set(examples()) == {page.name or "ream" for page in PAGES}
    for command, its in examples().items():
        assert len(its) == PER_COMMAND, command
        for line in its:
            assert command in ("ream", *(words[0] for words in asked(line))), line


@pytest.mark.parametrize("line", [line for _, line in EACH])
def test_an_example_is_what_the_parser_takes(line: str) -> None:
    group: Any = typer.main.get_command(app)
    for name, *words in asked(line):
        with group.make_context("ream", [name, *words]) as above:
            group.commands[name].make_context(name, words, parent=above)


@pytest.mark.parametrize("line", [line for command, line in EACH if command in READS])
def test_an_example_that_only_reads_does_what_it_says(ream, tmp_path: Path, line: str) -> None:
    if OWN.search(line) or line in ("ream show", "ream report", "ream compare"):
        pytest.skip("a fresh machine has no such run")
    (tmp_path / "docs").symlink_to(CHECKOUT / "docs")
    (words,) = asked(line)
    said = ream(*words)
    assert said.code == 0, said.err
    assert said.out or words[0] == "history"


@pytest.mark.parametrize("columns", [60, 80, 120])
@pytest.mark.parametrize("command", examples())
def test_help_and_man_page_show_them_and_help_has_room(ream, command: str, columns: int) -> None:
    name = () if command == "ream" else (command,)
    shown = ream(*name, "--help", COLUMNS=str(columns)).out
    block = shown.rpartition("\nExamples:\n")[2]
    assert max(map(len, block.splitlines())) <= columns
    typed = block.replace(" \\\n   ", "")
    assert all(line in typed and says in block for line, says in examples()[command].items())
    (page,) = (one for one in PAGES if (one.name or "ream") == command)
    examples_of_page = roff.render(page, PAGES).partition(".SH EXAMPLES\n")[2]
    assert all(roff.literal(line) in examples_of_page for line in examples()[command])


def test_an_example_without_room_is_cut_as_a_shell_takes_it() -> None:
    found = list(lines("bisect", 40))
    assert max(map(len, found)) <= 40
    typed = "\n".join(found).replace(" \\\n   ", "")
    assert all(line in typed for line in examples()["bisect"])
