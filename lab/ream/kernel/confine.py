# SPDX-License-Identifier: GPL-2.0-only
"""Makefiles of a series are anybody's code, too: kbuild has no network, and writes where it builds.

native/confine/confine.c says how. It may read what its user may, and change the mode and the time
stamps of the user's files, which Landlock does not see; it signals nobody. Without Landlock, which
is in Linux 5.13 and later, it may write what its user may, too.
"""

import functools
import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from ream.command import Command, run
from ream.kernel import store
from ream.paths import NATIVE, cache_dir

SOURCE = NATIVE / "confine" / "confine.c"
FLAGS = ("-std=gnu11", "-O2", "-Wall", "-Wextra")
COMPILE_S = 60.0
DIGITS = 16

MOST_CPU_S = 3600
"""Of one process of a build."""

_CONFINED = ContextVar("confined", default=True)

TERMINAL = (Path("/dev/null"), Path("/dev/tty"))


@contextmanager
def building(*, confined: bool) -> Iterator[None]:
    """As long as the block kbuild is confined, or may do all that its user may."""
    token = _CONFINED.set(confined)
    try:
        yield
    finally:
        _CONFINED.reset(token)


def words(*writes: Path) -> tuple[str, ...]:
    """The words before make, which then writes below these folders alone; none if unconfined."""
    if not _CONFINED.get():
        return ()
    places = [*writes, *([store.place()] if store.is_there() else [])]
    said = [str(_program()), "--builds", "yes", "--read", "/"]
    said += [word for path in places for word in ("--make", str(path))]
    said += [*limited_memory(), "--seconds", str(MOST_CPU_S)]
    return (*said, *(word for path in TERMINAL for word in ("--write", str(path))), "--")


def limited_memory() -> tuple[str, ...]:
    """The words that give each process no more memory than the machine has."""
    memory_bytes = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return ("--memory", str(memory_bytes))


def compiled(program: Path) -> Path:
    """Compile what confines; raises ReamError with the compiler's first error."""
    run(Command(("gcc", *FLAGS, str(SOURCE), "-o", str(program)), program.parent, COMPILE_S))
    return program


@functools.cache
def _program() -> Path:
    """The same, in the cache; compiled anew where the source is another."""
    place = cache_dir() / "confine"
    program = place / hashlib.sha256(SOURCE.read_bytes()).hexdigest()[:DIGITS]
    if not program.exists():
        place.mkdir(parents=True, exist_ok=True)
        made = compiled(place / f".{program.name}.{os.getpid()}")
        made.replace(program)
    return program
