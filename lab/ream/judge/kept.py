# SPDX-License-Identifier: GPL-2.0-only
"""Programs that a judgement shows, each kept in a file, with the command line that runs it."""

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
"""Of the SHA-256 of a program, in the name of its file."""


def with_programs(its: Judgement, asked: Question) -> Judgement:
    """The same judgement with its programs kept beside the records, and how each is run.

    A judgement whose programs cannot be written has a note that says so.
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
    """The file of a program, which is written unless it is there; no other file is replaced."""
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
    """A word for a shell, which replaces a `~/` at its beginning by the user's folder."""
    return f"~/{shlex.quote(word[2:])}" if word.startswith("~/") else shlex.quote(word)


def _words(found: Finding, file: Path, asked: Question) -> Iterator[str]:
    yield from (_ream(), "program", _from_home(file), *asked.program_words)
    if found.config and "--config" not in asked.program_words:
        yield from ("--config", found.config)
    if found.rule == DIFFERS:
        yield "--against-base"


def _ream() -> str:
    """The command as a shell finds it: of a checkout by its path, unless PATH has it."""
    own = CHECKOUT / "ream"
    if shutil.which("ream") is not None or not own.is_file():
        return "ream"
    return "./ream" if Path.cwd() == CHECKOUT else _from_home(own)


def _from_home(path: Path) -> str:
    """A path, which begins with ~ if it is in the user's folder."""
    home = Path.home()
    return str("~" / path.relative_to(home)) if path.is_relative_to(home) else str(path)
