# SPDX-License-Identifier: GPL-2.0-only
"""Writes the programs of a judgement to files, with the command lines that run them."""

import hashlib
import shlex
import shutil
from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path

from ream.errors import BadUsage
from ream.files import write_whole
from ream.judge.judgement import DIFFERS, Finding, Judgement
from ream.judge.question import Question
from ream.paths import CHECKOUT

SUFFIX = ".program"
DIGITS = 8
"""Digits of a program's SHA-256 in the name of its file."""


def with_programs(its: Judgement, asked: Question) -> Judgement:
    """Write the programs beside the records; return the judgement with the commands that run them.

    If a program cannot be written, the judgement gets a note.
    """
    programs: dict[str, str] = {}
    for one in its.findings:
        if one.program is None:
            continue
        try:
            file = _kept(one.program, asked.runs)
        except (OSError, BadUsage) as cause:
            return replace(its, notes=(*its.notes, f"the program is not kept: {cause}"))
        programs[one.id] = " ".join(map(quoted, _words(one, file, asked)))
    return replace(its, programs=programs)


def _kept(program: str, folder: Path) -> Path:
    """Write a program to its file unless it is there; return the path. Replaces no other file."""
    content = f"{program}\n".encode()
    own = hashlib.sha256(content).hexdigest()[:DIGITS]
    folder.mkdir(parents=True, exist_ok=True)
    for number in count(1):
        file = folder / f"{own}{f'-{number}' if number > 1 else ''}{SUFFIX}"
        if not file.exists():
            write_whole(file, content)
            return file
        if file.is_file() and file.read_bytes() == content:
            return file
    raise AssertionError


def quoted(word: str) -> str:
    """Quote a word for a shell, which still expands `~/` at its beginning."""
    return f"~/{shlex.quote(word[2:])}" if word.startswith("~/") else shlex.quote(word)


def _words(found: Finding, file: Path, asked: Question) -> Iterator[str]:
    yield from (_ream(), "program", _from_home(file), *asked.program_words)
    if found.config and "--config" not in asked.program_words:
        yield from ("--config", found.config)
    if found.rule == DIFFERS:
        yield "--against-base"


def _ream() -> str:
    """Return the ream command for a shell: the name if PATH has it, else the checkout's path."""
    own = CHECKOUT / "ream"
    if shutil.which("ream") is not None or not own.is_file():
        return "ream"
    return "./ream" if Path.cwd() == CHECKOUT else _from_home(own)


def _from_home(path: Path) -> str:
    """Return a path, abbreviated with ~ if it is in the user's folder."""
    home = Path.home()
    return str("~" / path.relative_to(home)) if path.is_relative_to(home) else str(path)
