# SPDX-License-Identifier: GPL-2.0-only
"""The command line, called in this process: its two channels and its exit code.

To start a Python that imports all that ream does takes longer than most commands.
"""

import contextvars
import io
import logging
import os
import signal
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO
from unittest import mock

from ream.cli import main
from ream.kernel import series

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass(frozen=True)
class Said:
    code: int
    out: str
    err: str


def answer(words: tuple[str, ...], *, here: Path, environment: Mapping[str, str], fed: str) -> Said:
    """Call main() as a process of its own would: with descriptors, a directory and an environment.

    What child processes write is captured, too.
    """
    with ExitStack() as stack:
        channels = [stack.enter_context(tempfile.TemporaryFile()) for _ in range(3)]
        channels[0].write(fed.encode())
        channels[0].seek(0)
        stack.enter_context(mock.patch.dict(os.environ, environment, clear=True))
        for keep in (_directory(here), _signals(), _logging(), _descriptors(channels)):
            stack.enter_context(keep)
        stack.enter_context(mock.patch.object(sys, "argv", ["ream"]))
        series._standard_input.cache_clear()
        code = contextvars.copy_context().run(main, words)
        texts = [_text_of(channel) for channel in channels[1:]]
    return Said(code, *texts)


def _text_of(channel: BinaryIO) -> str:
    channel.seek(0)
    return channel.read().decode()


@contextmanager
def _directory(here: Path) -> Iterator[None]:
    before = Path.cwd()
    os.chdir(here)
    try:
        yield
    finally:
        os.chdir(before)


@contextmanager
def _signals() -> Iterator[None]:
    """main() handles signals until its process ends."""
    handlers = [(number, signal.getsignal(number)) for number in SIGNALS]
    hook = sys.unraisablehook
    try:
        yield
    finally:
        for number, handler in handlers:
            signal.signal(number, handler)
        sys.unraisablehook = hook


@contextmanager
def _logging() -> Iterator[None]:
    """Let main() add its own handler, which it does only where pytest has added none."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    root.handlers[:] = []
    try:
        yield
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)


@contextmanager
def _descriptors(channels: Sequence[BinaryIO]) -> Iterator[None]:
    """Have descriptors 0 to 2, and the streams over them, be these files."""
    saved = [os.dup(number) for number in range(3)]
    try:
        with ExitStack() as stack:
            for number, name in enumerate(("stdin", "stdout", "stderr")):
                os.dup2(channels[number].fileno(), number)
                mode = "w" if number else "r"
                stream = os.fdopen(number, mode, encoding="utf-8", closefd=False)
                stack.enter_context(mock.patch.object(sys, name, stack.enter_context(stream)))
            yield
    finally:
        for number, descriptor in enumerate(saved):
            os.dup2(descriptor, number)
            os.close(descriptor)


class Terminal(io.StringIO):
    """A stream that a person looks at."""

    def isatty(self) -> bool:
        """Whether a person looks at it."""
        return True
