# SPDX-License-Identifier: GPL-2.0-only
"""Probes: what a kernel tree has, found by compiling, not by its version.

A file of probes is C: lines that all need, and then a piece for each probe, which begins with
`#line 1 "NAME"`. The kernel has NAME if the compiler has nothing against the piece. All pieces of
all files are compiled at once, as kbuild compiles our side of that tree, and our side is then
compiled with HAVE_NAME defined for each that holds.

A comment `/* need A or B: WHAT, FILE */` says that one of these probes must hold.
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
"""In the directory of our own in a variant's tree; its Makefile has everything include it."""

_PIECE = re.compile(r'^#line 1 "(?P<name>\w+)"', re.MULTILINE)
_ERROR = re.compile(
    r"^(?P<file>[^:\n]+):\d+:(?:\d+:)? (?:fatal )?error: (?P<said>.*)$", re.MULTILINE
)
_NEED = re.compile(r"/\* need (?P<names>\w+(?: or \w+)*): (?P<what>[^,]+), (?P<file>\S+) \*/")


@dataclass(frozen=True)
class Need:
    """What a tree must have for something of ours to be compiled in it."""

    owner: str
    """The file of probes that says so, without its suffix: an experiment's name, or `host`."""
    names: tuple[str, ...]
    what: str
    file: str
    """The file of the tree in which it was looked for."""


def source_of(files: Sequence[Path]) -> str:
    """All probes as one source; raises ReamError if two have one name."""
    texts = [file.read_text(encoding="ascii") for file in files]
    names = [name for text in texts for name in _PIECE.findall(text)]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ReamError(f"more than one probe is called {', '.join(twice)}")
    # What the first piece of a file needs stands before it, and is no probe's.
    return "\n".join(
        f'#line 1 "{file.name}"\n{text}' for file, text in zip(files, texts, strict=True)
    )


def write_header(home: Path, files: Sequence[Path], *, tree: Path, label: str) -> None:
    """Say in a directory of ours, if there is one, what a tree has. Raises what `find` raises.

    A header that says the same already keeps its time, and what was compiled with it is up to date.
    """
    if not home.exists():
        return
    header = home / HEADER
    before = (header.read_text(encoding="ascii"), header.stat()) if header.exists() else None
    header.unlink(missing_ok=True)  # the file may be another variant's, too
    header.write_text("")
    held = find(home, files, tree=tree, label=label) if files else frozenset()
    header.write_text(header_of(held), encoding="ascii")
    if before and before[0] == header_of(held):
        os.utime(header, ns=(before[1].st_atime_ns, before[1].st_mtime_ns))


def find(home: Path, files: Sequence[Path], *, tree: Path, label: str) -> frozenset[str]:
    """Compile the probes for a configured tree; the names of those that hold.

    home: our directory in the tree, or one of a module outside of it. label: of the tree, for
    people. Raises ReamError if what stands before a file's first probe
    does not compile, and CannotRunHere naming what is needed and was not found.
    """
    text = source_of(files)
    (home / SOURCE).write_text(text, encoding="ascii")
    target = SOURCE.removesuffix(".c")
    where = (
        [f"{home.name}/{target}.o"]
        if home.parent == tree
        else [f"KBUILD_EXTMOD={home}", f"{target}.o"]
    )
    # An error within a macro is then said of the line that uses it, as by clang, and all are said.
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
    """A header that says what holds."""
    lines = (f"#define HAVE_{name.upper()} 1\n" for name in sorted(held))
    return f"/* SPDX-License-Identifier: GPL-2.0-only */\n{''.join(lines)}"


def needs(files: Sequence[Path]) -> Iterator[Need]:
    """What files of probes say that a tree must have."""
    for file in files:
        for found in _NEED.finditer(re.sub(r"\s*\n \*\s*", " ", file.read_text(encoding="ascii"))):
            names = tuple(found["names"].split(" or "))
            owner = file.name.removesuffix(SUFFIX).replace("_", "-")
            yield Need(owner, names, found["what"], found["file"])
