# SPDX-License-Identifier: GPL-2.0-only
"""Each command of README is executed here: what would take minutes, as a dry run."""

import re
import shlex
import subprocess
from pathlib import Path

import pytest

from ream.cli import app
from ream.manual.tree import pages
from ream.paths import CHECKOUT

PAGE = (CHECKOUT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
TYPED = re.findall(r"^(?:\$ )?(\./ream .*|make .*)$", "".join(BLOCKS), re.MULTILINE)
NAMED = sorted(set(re.findall(r"`ream ([a-z][^`]*)`", PAGE)))

OWN = {"my.patch": "tests/native/slow/04-fork-locked.patch"}
"""What stands for a reader's files."""

DRY = {page.name for page in pages(app) if any("--dry-run" in one.names for one in page.words)}


def asked(line: str) -> list[str]:
    words = [OWN.get(word, word) for word in shlex.split(line, comments=True)]
    return [str(CHECKOUT / one) if (CHECKOUT / one).is_file() else one for one in words]


@pytest.mark.parametrize("line", [one for one in TYPED if one.startswith("./ream ")])
def test_a_command_in_a_block_does_what_it_says(ream, line: str, tmp_path: Path) -> None:
    _, *words = asked(line)
    dry = ("--dry-run", "--output", str(tmp_path)) if words[0] in DRY else ()
    said = ream(*words, *dry)
    assert said.code == 0, said.err


@pytest.mark.parametrize("line", [one for one in TYPED if one.startswith("make ")])
def test_a_target_in_a_block_can_be_made(line: str) -> None:
    asked_to = [*asked(line), "--dry-run"]
    done = subprocess.run(asked_to, cwd=CHECKOUT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("line", NAMED)
def test_a_command_in_a_sentence_explains_itself(ream, line: str) -> None:
    words = line.split()
    said = ream(*words) if words[0] == "help" else ream(*words, "--help")
    assert said.code == 0, said.err
    assert said.out


def test_the_page_has_commands_of_each_kind() -> None:
    assert any(one.startswith("./ream judge ") for one in TYPED)
    assert any(one.startswith("make ") for one in TYPED)
    assert NAMED
