# SPDX-License-Identifier: GPL-2.0-only
"""Probes detect what a kernel tree has by compiling, not by its version.

A file of probes is C: common lines, and then a piece for each probe, which begins with
`#line 1 "NAME"`. The kernel has NAME if the piece compiles without an error. All pieces of all
files are compiled at once, as kbuild compiles ream's code in that tree. That code is then compiled
with HAVE_NAME defined for each probe that holds.

A comment `/* need A or B: WHAT, FILE */` means that one of these probes must hold.
"""

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ream.command import finished
from ream.errors import CannotRunHere, ReamError
from ream.kernel.build import make

PROBE_S = 300.0

SUFFIX = ".probes"
SOURCE = "probes.c"
HEADER = "have.h"
"""Header in ream's directory of a variant's tree. The Makefile there includes it everywhere."""

_PIECE = re.compile(r'^#line 1 "(?P<name>\w+)"', re.MULTILINE)
_ERROR = re.compile(
    r"^(?P<file>[^:\n]+):\d+:(?:\d+:)? (?:fatal )?error: (?P<said>.*)$", re.MULTILINE
)
_NEED = re.compile(r"/\* need (?P<names>\w+(?: or \w+)*): (?P<what>[^,]+), (?P<file>\S+) \*/")


@dataclass(frozen=True)
class Need:
    """A requirement that a tree must meet for ream's code to compile in it."""

    owner: str
    """The file of probes with the requirement, without suffix: an experiment's name, or `host`."""
    names: tuple[str, ...]
    what: str
    file: str
    """The file of the tree in which it is expected."""


def source_of(files: Sequence[Path]) -> str:
    """Return all probes as one source; raises ReamError if two have the same name."""
    texts = [file.read_text(encoding="ascii") for file in files]
    names = [name for text in texts for name in _PIECE.findall(text)]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ReamError(f"more than one probe is called {', '.join(twice)}")
    # The common lines come before the first piece of a file and belong to no probe.
    return "\n".join(
        f'#line 1 "{file.name}"\n{text}' for file, text in zip(files, texts, strict=True)
    )


def write_header(home: Path, files: Sequence[Path], *, tree: Path, label: str) -> None:
    """Write the header on what a tree has into ream's directory, if there is one.

    A header with the same text is not written, so that objects stay up to date. Raises what `find`
    raises.
    """
    if not home.exists():
        return
    header = home / HEADER
    before = (header.read_text(encoding="ascii"), header.stat()) if header.exists() else None
    header.unlink(missing_ok=True)  # another variant may share the file by a hard link
    header.write_text("")
    held = find(home, files, tree=tree, label=label) if files else frozenset()
    header.write_text(header_of(held), encoding="ascii")
    if before and before[0] == header_of(held):
        os.utime(header, ns=(before[1].st_atime_ns, before[1].st_mtime_ns))


def find(home: Path, files: Sequence[Path], *, tree: Path, label: str) -> frozenset[str]:
    """Compile the probes for a configured tree; return the names of those that hold.

    home: ream's directory in the tree, or one of a module outside of it. label: the tree's name in
    messages. Raises ReamError if the common lines of a file do not compile, and CannotRunHere
    naming an unmet requirement.
    """
    text = source_of(files)
    (home / SOURCE).write_text(text, encoding="ascii")
    target = SOURCE.removesuffix(".c")
    where = (
        [f"{home.name}/{target}.o"]
        if home.parent == tree
        else [f"KBUILD_EXTMOD={home}", f"{target}.o"]
    )
    # Errors within a macro are then reported for the line that uses it, and all are reported.
    flags = ("-ftrack-macro-expansion=0", "-ferror-limit=0")
    plain = f"CFLAGS_{target}.o={' '.join(f'$(call cc-option,{flag})' for flag in flags)}"
    code, _, said = finished(make(tree, [plain, *where], deadline_s=PROBE_S))
    (home / SOURCE).unlink()
    known = frozenset(_PIECE.findall(text))
    failed = {found["file"]: found["said"] for found in _ERROR.finditer(said)}
    if other := sorted(failed.keys() - known):
        raise ReamError(f"{label}: {other[0]}: {failed[other[0]]}")
    if code and not failed:
        raise ReamError(f"{label}: the probes cannot be compiled: {said.strip()[-200:]}")
    held = known - failed.keys()
    for need in needs(files):
        if not held.intersection(need.names):
            raise CannotRunHere(
                f"{label}: {need.owner} cannot be hosted: it needs {need.what}, and has"
                f" no {' or '.join(need.names)} in {need.file}"
            )
    return held


def header_of(held: frozenset[str]) -> str:
    """Return the header for probes that hold."""
    lines = (f"#define HAVE_{name.upper()} 1\n" for name in sorted(held))
    return f"/* SPDX-License-Identifier: GPL-2.0-only */\n{''.join(lines)}"


def needs(files: Sequence[Path]) -> Iterator[Need]:
    """Yield the requirements in files of probes."""
    for file in files:
        for found in _NEED.finditer(re.sub(r"\s*\n \*\s*", " ", file.read_text(encoding="ascii"))):
            names = tuple(found["names"].split(" or "))
            owner = file.name.removesuffix(SUFFIX).replace("_", "-")
            yield Need(owner, names, found["what"], found["file"])
