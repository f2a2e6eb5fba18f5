# SPDX-License-Identifier: GPL-2.0-only
"""Confines kbuild, since Makefiles of a series are not trusted: no network, writes only to builds.

native/confine/confine.c documents how. kbuild may read what its user may, and may change mode and
time stamps of the user's files, which Landlock does not control. It may not signal other processes.
Without Landlock (Linux 5.13 and later) it may also write what its user may.
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
"""The most CPU seconds for one process of a build."""

_CONFINED = ContextVar("confined", default=True)

TERMINAL = (Path("/dev/null"), Path("/dev/tty"))


@contextmanager
def building(*, confined: bool) -> Iterator[None]:
    """Within the block, run kbuild confined, or with all rights of the user."""
    token = _CONFINED.set(confined)
    try:
        yield
    finally:
        _CONFINED.reset(token)


def words(*writes: Path) -> tuple[str, ...]:
    """Return the command line before make that restricts writes to these folders; may be empty."""
    if not _CONFINED.get():
        return ()
    places = [*writes, *([store.place()] if store.is_there() else [])]
    said = [str(_program()), "--builds", "yes", "--read", "/"]
    said += [word for path in places for word in ("--make", str(path))]
    said += [*limited_memory(), "--seconds", str(MOST_CPU_S)]
    return (*said, *(word for path in TERMINAL for word in ("--write", str(path))), "--")


def limited_memory() -> tuple[str, ...]:
    """Return the options that limit the memory of each process to that of the machine."""
    memory_bytes = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return ("--memory", str(memory_bytes))


def compiled(program: Path) -> Path:
    """Compile the confining program; raises ReamError with the compiler's first error."""
    run(Command(("gcc", *FLAGS, str(SOURCE), "-o", str(program)), program.parent, COMPILE_S))
    return program


@functools.cache
def _program() -> Path:
    """Return the confining program from the cache; compile it if its source changed."""
    place = cache_dir() / "confine"
    program = place / hashlib.sha256(SOURCE.read_bytes()).hexdigest()[:DIGITS]
    if not program.exists():
        place.mkdir(parents=True, exist_ok=True)
        made = compiled(place / f".{program.name}.{os.getpid()}")
        made.replace(program)
    return program
