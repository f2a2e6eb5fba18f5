# SPDX-License-Identifier: GPL-2.0-only
"""Help, manual pages, completion and documents say the same words."""

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from ream.cli import app
from ream.cli.helped import COMMANDS as GROUPS
from ream.manual import roff
from ream.manual.tree import Page, pages
from ream.paths import CHECKOUT, EXPERIMENTS
from ream.program.grammar import FORMS

PAGES = pages(app)
COMMANDS = {page.name: page for page in PAGES if page.name}
ANYWHERE = PAGES[0]
DOCUMENTS = ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", *(f"docs/{n}.md" for n in
             ("usage", "method", "counts", "bias", "format", "commands", "results")),
             *(f"experiments/{path.parent.name}/README.md"
               for path in sorted(EXPERIMENTS.glob("*/README.md"))))  # fmt: skip
LAUNCHER_WORDS = {"--no-install"}

FENCE = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
IN_LINE = re.compile(r"`(?:\./)?(ream [^`]+)`")
LINE = re.compile(r"^(?:\$ |  )*(?:\./)?(ream [a-z-].*)$", re.MULTILINE)
SHELL_GOES_ON = {"|", ">", "#", "&&", ";", "2>", "<"}


def needs(tool: str) -> None:
    if shutil.which(tool) is None:
        if os.environ.get("CI"):
            pytest.fail(f"{tool} is not installed; `make setup-test` installs it")
        pytest.skip(f"{tool} is not installed")


def lines_of(document: str) -> Iterator[str]:
    """Every command line of ours in a document, in its blocks and within its sentences."""
    text = (CHECKOUT / document).read_text(encoding="utf-8")
    for block in FENCE.findall(text):
        yield from LINE.findall(block.replace("\\\n", " "))
    for said in IN_LINE.findall(FENCE.sub("", text)):
        yield " ".join(said.split())


def words_of(line: str) -> list[str]:
    words = shlex.split(line, comments=True)[1:]
    ends = [n for n, word in enumerate(words) if word in SHELL_GOES_ON]
    return words[: ends[0]] if ends else words


def unknown(line: str) -> Iterator[str]:
    """What a line has that no command of ours takes."""
    words = [word for word in words_of(line) if word not in LAUNCHER_WORDS]
    before = [word for word in words if not word.startswith("-")]
    page = COMMANDS.get(before[0]) if before else ANYWHERE
    if page is None:
        yield f"command {before[0]}"
        return
    known = {name for one in (page, ANYWHERE) for word in one.words for name in word.names}
    for word in words:
        if word.startswith("-") and word != "-" and word.partition("=")[0] not in known:
            yield f"{page.name} {word}"


@pytest.mark.parametrize("document", DOCUMENTS)
def test_a_document_types_only_what_ream_takes(document: str) -> None:
    faults = {f"{line}: {fault}" for line in lines_of(document) for fault in unknown(line)}
    assert not faults


def test_the_readme_names_every_command() -> None:
    named = {words_of(line)[0] for line in lines_of("README.md") if words_of(line)}
    assert not COMMANDS.keys() - named


def test_a_command_line_with_a_wrong_word_is_found() -> None:
    assert list(unknown("ream run fork --quux")) == ["run --quux"]
    assert list(unknown("ream fly")) == ["command fly"]
    assert not list(unknown("ream --no-install run fork --stage=vm | less"))


@pytest.mark.parametrize("page", PAGES, ids=roff.title)
def test_a_manual_page_is_what_man_expects(page: Page, tmp_path: Path) -> None:
    needs("mandoc")
    source = tmp_path / roff.file_name(page)
    source.write_text(roff.render(page, PAGES), encoding="utf-8")
    said = subprocess.run(
        ("mandoc", "-T", "lint", "-W", "warning", source),
        capture_output=True,
        text=True,
        check=False,
    )
    assert said.stdout + said.stderr == ""


@pytest.mark.parametrize("page", PAGES, ids=roff.title)
def test_a_manual_page_has_every_word_of_the_help(page: Page, ream, tmp_path: Path) -> None:
    needs("mandoc")
    source = tmp_path / roff.file_name(page)
    source.write_text(roff.render(page, PAGES), encoding="utf-8")
    shown = subprocess.run(
        ("mandoc", "-T", "ascii", "-O", "width=900", source),
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    manual = set(re.sub(r".\x08", "", shown).split())
    every = (
        "--help-all" if "--help-all" in {name for w in page.words for name in w.names} else "--help"
    )
    said = ream(*([page.name] if page.name else []), every, COLUMNS="2000")
    text = re.sub(r"^(\S.*):$", r"\1", said.out, flags=re.MULTILINE)  # headings
    headings = {"Usage:", "Options", "Arguments", "Commands", "Examples"}
    help_words = set(text.split()) - headings - {"#"}  # what an example does is a comment
    # A list of commands is cut in the help, and in full in the manual.
    cut = {word for word in help_words if word.endswith("...")}
    left = {"ream", *COMMANDS, *_exit(page), *" ".join(GROUPS).split()}
    # A first sentence in the list of commands has no full stop there.
    shown_words = manual | {word.rstrip(".") for word in manual}
    assert not help_words - cut - shown_words - left


def _exit(page: Page) -> set[str]:
    """The sentence of exit codes, which the manual has as a table."""
    sentence = " ".join(f"{code} {says}" for code, says in page.exits).split()
    return {"Exit", "status:", *sentence, *(f"{w}{mark}" for w in sentence for mark in ",.;")}


@pytest.mark.parametrize("page", COMMANDS.values(), ids=roff.title)
def test_a_command_says_how_it_ends(page: Page) -> None:
    assert page.exits, f"ream {page.name} --help has no sentence that begins with Exit status:"


def test_a_manual_page_in_a_pipe_is_text_for_people(ream) -> None:
    needs("man")
    said = ream("man", "history")
    assert (said.code, said.err) == (0, "")
    assert "SYNOPSIS\n       ream history" in said.out
    assert not {one for one in said.out if not one.isprintable()} - {"\n"}
    assert "\n.SH" not in said.out


def test_all_manual_pages_are_written_for_manpath(ream, tmp_path: Path) -> None:
    assert ream("man", "--write", str(tmp_path / "share")).code == 0
    written = {path.name for path in (tmp_path / "share/man1").iterdir()}
    assert written == {roff.file_name(page) for page in PAGES}


SAYS = {
    "bash": 'eval "$(ream completion bash)"; COMP_WORDS=({line}); COMP_CWORD={at};'
    ' _ream_completion ream; echo "${{COMPREPLY[*]}}"',
    "zsh": 'autoload -U compinit; compinit -u -D; eval "$(ream completion zsh)";'
    " _arguments() {{ print -r -- $1 }}; words=({line}); CURRENT={at}+1; _ream_completion",
    "fish": 'ream completion fish | source; complete -C "{line}"',
}


LINES = (
    ("ream ru", "run"),
    ("ream run zone", "zone-device"),
    ("ream run --stage v", "vm"),
    ("ream run fork --row munmap-2", "munmap-2m"),
    ("ream history --row munmap-2", "munmap-2m"),
    ("ream export --row munmap-2", "munmap-2m"),
    ("ream man veri", "verify"),
    ("ream check las", "last"),
)
"""What is typed, and what is offered."""


# What is offered comes from ream: one shell has all lines in `make test`, the others one line.
@pytest.mark.parametrize(("shell", "line", "offered"), [
    pytest.param(
        shell, line, offered, marks=() if shell == "bash" or not number else pytest.mark.vm
    )
    for shell in SAYS
    for number, (line, offered) in enumerate(LINES)
])  # fmt: skip
def test_a_shell_completes(shell: str, line: str, offered: str, tmp_path: Path) -> None:
    needs(shell)
    command = tmp_path / "ream"
    python = CHECKOUT / ".venv/bin/python"
    command.write_text(f'#!/bin/sh\nexec "{python}" -P -m ream "$@"\n')
    command.chmod(0o755)
    script = SAYS[shell].format(line=line, at=len(line.split()) - 1)
    said = subprocess.run(
        (shell, *(["-f"] if shell == "zsh" else []), "-c", script),
        env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "HOME": str(tmp_path)},
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert offered in said.stdout, said.stderr


def test_every_step_of_a_program_is_listed_and_so_are_the_words_that_it_takes(ream) -> None:
    said = ream("help", "steps")
    assert said.code == 0
    for form in FORMS.values():
        assert re.search(rf"(?m)^  (pN )?{form.verb}( |$)", said.out)
    for word in ("guard-install", "weighted-interleave", "shmem"):
        assert word in said.out
