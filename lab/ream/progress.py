# SPDX-License-Identifier: GPL-2.0-only
"""What is going on, on standard error: steps as they begin, and a bar with the time left."""

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from types import TracebackType
from typing import IO, Self, cast

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from ream.plain import plain_lines

QUIET_S = 10.0
"""Between two lines where nobody sees a bar move: a log, a pipe, a CI job."""


class _Unheard:
    """Standard error, where it is no fault of a run that nobody can be told any more."""

    def write(self, text: str) -> int:
        with suppress(OSError):
            return sys.stderr.write(text)
        return len(text)

    def flush(self) -> None:
        with suppress(OSError):
            sys.stderr.flush()

    def __getattr__(self, name: str) -> object:
        return getattr(sys.stderr, name)


Advance = Callable[[float, str], None]


class Reporter:
    """Tells a person, and only on standard error: standard output holds nothing but results."""

    def __init__(self, *, quiet: bool = False) -> None:
        self._console = Console(
            file=cast("IO[str]", _Unheard()), highlight=False, soft_wrap=True, quiet=quiet
        )
        self._is_again = False
        self.measured_since: float | None = None
        """When measuring began, by time.monotonic(); None: it has not."""

    def step(self, text: str) -> None:
        """Say what begins now."""
        self._console.print(f"ream: {plain_lines(text)}", markup=False)

    @contextmanager
    def again(self) -> Iterator[None]:
        """What advances meanwhile was done before: it is no part of the work that is left."""
        self._is_again = True
        try:
            yield
        finally:
            self._is_again = False

    @contextmanager
    def measuring(self, total: float) -> Iterator[Advance]:
        """Show how far a long piece of work is; `total` is in any unit of work.

        Yields advance(amount, what is being done now).
        """
        self.measured_since = self.measured_since or time.monotonic()
        with ExitStack() as stack:
            shown = stack.enter_context(_Bar(self._console, total)) if self._moves() else None
            told = shown or _Lines(self.step, total)

            def advance(amount: float, text: str) -> None:
                text = plain_lines(text)
                if self._is_again:
                    told.skip(amount)
                else:
                    told.advance(amount, text)

            yield advance

    def _moves(self) -> bool:
        """Whether a bar may move: it takes escape codes, colour or none."""
        plain = self._console.is_dumb_terminal or os.environ.get("NO_COLOR") or self._console.quiet
        return sys.stderr.isatty() and not plain


class _Bar:
    def __init__(self, console: Console, total: float) -> None:
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TaskProgressColumn(),
            TimeRemainingColumn(),
            TextColumn("left"),
            console=console,
            transient=True,
        )
        self._total = total
        self._task = self._progress.add_task("starting", total=total)

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._progress.stop()

    def advance(self, amount: float, text: str) -> None:
        self._progress.update(self._task, advance=amount, description=text)

    def skip(self, amount: float) -> None:
        self._total -= amount
        self._progress.update(self._task, total=self._total)


class _Lines:
    def __init__(self, say: Callable[[str], None], total: float) -> None:
        self._say = say
        self._total = total
        self._done = 0.0
        self._began = self._said = time.monotonic()

    def skip(self, amount: float) -> None:
        self._total -= amount

    def advance(self, amount: float, text: str) -> None:
        self._done += amount
        now = time.monotonic()
        if now - self._said < QUIET_S or self._done <= 0:
            return
        self._said = now
        if self._done >= self._total:
            self._say(f"{text}, more than was expected")
            return
        left_s = (now - self._began) / self._done * (self._total - self._done)
        self._say(f"{text}, {100 * self._done / self._total:.0f} %, about {left_s:.0f} s left")
