# SPDX-License-Identifier: GPL-2.0-only
"""What is going on, on standard error: steps as they begin, and a bar with the time left."""

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from types import TracebackType
from typing import IO, Self, cast

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from ream.counted import counted
from ream.plain import plain_lines

QUIET_S = 10.0
"""Seconds between two lines of progress if there is no bar: in a log, a pipe, a CI job."""


class _Unheard:
    """Standard error as a stream on which failed writes are no error of the run."""

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


Says = Callable[[str], None]


@dataclass(frozen=True)
class ReporterStep:
    """Says for a reporter what begins now; `counting` shows by the same how far it is."""

    reporter: "Reporter"
    label: str = ""
    """Comes before each text."""

    def __call__(self, text: str) -> None:
        """Say it in a line of its own."""
        self.reporter.say(f"{self.label}{text}")


def labelled(step: Says, label: str) -> Says:
    """The same, with a label before each text."""
    if isinstance(step, ReporterStep):
        return ReporterStep(step.reporter, f"{step.label}{label}")
    return lambda text: step(f"{label}{text}")


@contextmanager
def counting(
    step: Says, doing: str, thing: str, total: Callable[[], int | None]
) -> Iterator[Callable[[], None]]:
    """Say that a piece of work begins, and at its end how much was done in which time.

    On a terminal, a bar in between shows how much is done and when it ends.
    doing: the work, as in "compiling 6.12.117 for fork"; thing: what is counted, as "object".
    total: asked for their number, which takes time, only if there is a bar; None is not known.
    Yields done(), to be called after each of them.
    """
    step(doing)
    began, number = time.monotonic(), 0
    with ExitStack() as stack:
        bar, of, label = None, None, ""
        if isinstance(step, ReporterStep) and (console := step.reporter.moving) is not None:
            of, label = total(), step.label
            bar = stack.enter_context(_Bar(console, of))

        def done() -> None:
            nonlocal number
            number += 1
            if bar is not None:
                # One more than was expected is no reason to say "42 of 41".
                known = f"{number} of {counted(max(of, number), thing)}" if of else ""
                bar.advance(1, f"{plain_lines(label + doing)}: {known or counted(number, thing)}")

        yield done
    step(f"{doing} took {time.monotonic() - began:.0f} s: {counted(number, thing)}")


class Reporter:
    """Tells a person, and only on standard error: standard output holds nothing but results."""

    def __init__(self, *, quiet: bool = False) -> None:
        self._console = Console(
            file=cast("IO[str]", _Unheard()), highlight=False, soft_wrap=True, quiet=quiet
        )
        self._is_again = False
        self.measured_since: float | None = None
        """When measuring began, by time.monotonic(); None: it has not."""

    @property
    def step(self) -> Says:
        """Says what begins now."""
        return ReporterStep(self)

    def say(self, text: str) -> None:
        """Say it in a line of its own."""
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
            console = self.moving
            shown = None if console is None else stack.enter_context(_Bar(console, total))
            told = shown or _Lines(self.say, total)

            def advance(amount: float, text: str) -> None:
                text = plain_lines(text)
                if self._is_again:
                    told.skip(amount)
                else:
                    told.advance(amount, text)

            yield advance

    @property
    def moving(self) -> Console | None:
        """Where a bar may move, which takes escape codes, colour or none; None: nowhere."""
        plain = self._console.is_dumb_terminal or os.environ.get("NO_COLOR") or self._console.quiet
        return self._console if sys.stderr.isatty() and not plain else None


class _Bar:
    def __init__(self, console: Console, total: float | None) -> None:
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TaskProgressColumn(),
            TimeRemainingColumn(),
            TextColumn("left"),
            console=console,
            transient=True,
        )
        self._total = total or 0.0
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
