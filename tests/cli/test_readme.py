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
from shipped import RECORDS, copied

PAGE = (CHECKOUT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
TYPED = re.findall(r"^(?:\$ )?(\./ream .*|make .*)$", "".join(BLOCKS), re.MULTILINE)
NAMED = sorted(set(re.findall(r"`ream ([a-z][^`]*)`", PAGE)))

OWN = {"my.patch": "tests/native/slow/04-fork-locked.patch"}
"""What stands for a reader's files."""

RECORD = "20261123T131251Z-zone-contiguous-native-097b"
"""A small one of docs/records."""

IDENTITY = ("-c", "user.name=A Reader", "-c", "user.email=reader@example.org")

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


def test_commits_of_a_git_tree_are_judged_as_the_comment_in_a_block_says(
    ream, tmp_path: Path
) -> None:
    (words,) = re.findall(r"# .*commits: (--tree ~/linux \S+\.\.)$", "".join(BLOCKS), re.MULTILINE)
    tree = tmp_path / "linux"
    (tree / "mm").mkdir(parents=True)
    for number, git in enumerate(["init -q"] + ["add .", "commit -q -s -m change"] * 4):
        (tree / "mm" / "memory.c").write_text(f"int changed = {number};\n")
        subprocess.run(("git", *IDENTITY, *git.split()), cwd=tree, check=True)
    said = ream("judge", *words.replace("~/", f"{tmp_path}/").split(), "--dry-run")
    assert said.code == 0, said.err
    assert re.findall(r"\d\. change$", said.out, re.MULTILINE) == [
        f"{n}. change" for n in (1, 2, 3)
    ]


@pytest.mark.parametrize("line", [one for one in TYPED if one.startswith("make ")])
def test_a_target_in_a_block_can_be_made(line: str) -> None:
    asked_to = [*asked(line), "--dry-run"]
    done = subprocess.run(asked_to, cwd=CHECKOUT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("line", NAMED)
def test_a_command_in_a_sentence_explains_itself_or_does_it(
    ream, line: str, tmp_path: Path
) -> None:
    """A name alone is one of a list. What has words besides is executed, on one record of all."""
    name, *words = line.split()
    if "docs/records" in words:
        copied(RECORDS / RECORD, tmp_path / RECORD)
        words[words.index("docs/records")] = str(tmp_path)
    does = words and not any(word.isupper() for word in words)  # FILE stands for a reader's
    how = () if does and name not in DRY else ("--dry-run",) if does else ("--help",)
    said = ream(name, *words, *how)
    assert said.code == 0, said.err
    assert said.out or "1 of 1 record" in said.err


def test_the_page_has_commands_of_each_kind() -> None:
    assert any(one.startswith("./ream judge ") for one in TYPED)
    assert any(one.startswith("make ") for one in TYPED)
    assert NAMED
