# SPDX-License-Identifier: GPL-2.0-only
"""The way in, and the exit codes that leave."""

import errno
import io
import logging
import os
import signal
import sys
import textwrap
import threading
from collections.abc import Sequence
from contextlib import suppress

from ream.cli.app import app
from ream.cli.continued import with_defaults
from ream.cli.terminal import on_terminal
from ream.errors import CannotRunHere, ReamError
from ream.plain import plain_lines
from ream.width import as_wide_as, terminal_columns

log = logging.getLogger("ream")

EXIT_UNWRITTEN = CannotRunHere.exit_code
EXIT_BUG = 70  # EX_SOFTWARE
EXIT_INTERRUPTED = 130
EXIT_BROKEN_PIPE = 141

_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF})
"""What a device says that takes no more, and a channel that is closed."""


_told: set[str] = set()


class _Ended(BaseException):
    """A signal asked ream to end. Unwinds like Ctrl-C, so that no process or file is left over."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.signal = signal.Signals(number)


class _Unwind:
    """Ends us by a signal, once: a terminal that goes sends SIGHUP, and so does its shell."""

    def __init__(self) -> None:
        self._unwinds = False
        self.raised: BaseException | None = None

    def __call__(self, number: int, _frame: object) -> None:
        if not self._unwinds:
            self._unwinds = True
            self.raised = _Ended(number)
            raise self.raised

    def interrupt(self, _number: int, _frame: object) -> None:
        """Raise KeyboardInterrupt as Python's own handler does, and remember it."""
        self.raised = KeyboardInterrupt()
        raise self.raised

    def once_more(self, unraisable: "sys.UnraisableHookArgs") -> None:
        """Python drops what is raised in a callback, as of an import's lock: send it again soon."""
        try:
            self._once_more(unraisable)
        except (_Ended, KeyboardInterrupt) as again:  # it would be dropped here, too
            self._send_again(again)

    def _once_more(self, unraisable: "sys.UnraisableHookArgs") -> None:
        if isinstance(end := unraisable.exc_value, (_Ended, KeyboardInterrupt)):
            self._send_again(end)
        else:
            sys.__unraisablehook__(unraisable)

    def _send_again(self, end: BaseException) -> None:
        self._unwinds = False
        _send_soon(end.signal if isinstance(end, _Ended) else signal.SIGINT)


def _send_soon(number: int) -> None:
    """Not at once: it would come within the same callback."""
    timer = threading.Timer(0.1, os.kill, (os.getpid(), number))
    timer.daemon = True
    timer.start()


def main(words: Sequence[str] | None = None) -> int:
    """Do what a command line says; the code to exit with.

    words: without the program's name; None: the process's own. A usage error is typer's (2),
    foreseen failures carry their code, a bug is 70. A bare traceback would leave Python with 1,
    which users read as "a claim fails".
    """
    _open_channels()
    # A record names the command line that repeats it.
    sys.argv[1:] = with_defaults(sys.argv[1:] if words is None else words)
    return _written(_run())


def _take_signals(unwind: _Unwind) -> None:
    """Let signals that end us unwind, and the one in that was held while we were imported."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, unwind.interrupt)
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # nohup stays nohup
            signal.signal(number, unwind)
    sys.unraisablehook = unwind.once_more
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


def _run() -> int:
    """Do what the command line says; the code to exit with."""
    unwind = _Unwind()
    try:
        _take_signals(unwind)
        with as_wide_as(terminal_columns()), on_terminal(sys.argv[1:]):
            app(prog_name="ream")
    except (_Ended, KeyboardInterrupt) as stop:
        return _ended_by(stop)
    except SystemExit as stop:
        return _exit_code(stop)
    except ReamError as error:
        log.debug("cause", exc_info=error)
        is_seen = error.is_shown and sys.stdout.isatty() and sys.stderr.isatty()
        if said := [*([] if is_seen else [f"ream: {error}"]), *_notes(error)]:
            _say("\n".join(said))
        return error.exit_code
    except Exception as error:  # noqa: BLE001 # it is told, or was foreseen after all
        return _unforeseen(error, unwind.raised)
    return 0


def _unforeseen(error: Exception, stop: BaseException | None) -> int:
    """Report an unexpected error and return the exit code.

    stop: what a signal raised earlier, if any. Code that runs callbacks may have turned it into
    any other error, so the signal decides the exit code.
    """
    if isinstance(error, OSError) and error.errno in _NO_ROOM:
        _say_once("\n".join((_unwritten(error), *_notes(error))))
        return EXIT_UNWRITTEN
    if stop is not None:
        log.debug("cause", exc_info=error)
        return _ended_by(stop)
    log.error("a bug in ream, not in your patch; please report it with this trace", exc_info=error)
    return EXIT_BUG


def _open_channels() -> None:
    """Have a caller's `>&-` taken by /dev/null: nothing of ours shall get the number instead.

    Standard output is opened to read: what is printed there is lost, which is an error.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            # Takes the lowest number that is free.
            os.open(os.devnull, os.O_RDONLY if name == "stdout" else os.O_RDWR)
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(number, "w" if number else "r", encoding="utf-8"))
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A terminal may know fewer characters than a name has.
        sys.stdout.reconfigure(errors="backslashreplace")


def _written(code: int) -> int:
    """The code to exit with, once all that was said is out; what was wrong before weighs more.

    Left to Python's own end, a full disk or a closed pipe would make it 120.
    """
    for number, stream in ((1, sys.stdout), (2, sys.stderr)):
        try:
            stream.flush()
        except OSError as error:
            # Else it is tried again at the end.
            os.dup2(os.open(os.devnull, os.O_WRONLY), number)
            if error.errno == errno.EPIPE:
                code = code or EXIT_BROKEN_PIPE
            else:
                _say_once(_unwritten(error))
                code = code or EXIT_UNWRITTEN
    return code


def _say_once(text: str) -> None:
    """Tell what was not written: what a stream still holds fails again when it is closed."""
    if text not in _told:
        _told.add(text)
        _say(text)


def _say(text: str) -> None:
    """Print why it ends; if standard error is closed, it ends with the same code."""
    with suppress(OSError):
        # A damaged record's words may hold what moves a terminal's cursor.
        lines = plain_lines(text).split("\n")
        if sys.stderr.isatty():
            columns = terminal_columns()
            lines = [part for line in lines for part in _folded(line, columns) or [""]]
        print("\n".join(lines), file=sys.stderr)


def _folded(line: str, columns: int) -> list[str]:
    """A line cut between words, for a terminal, which would cut within them."""
    return textwrap.wrap(line, columns, break_on_hyphens=False, break_long_words=False)


def _unwritten(error: OSError) -> str:
    closed = error.errno == errno.EBADF
    return f"ream: cannot write: {'standard output is closed' if closed else error.strerror}"


def _left(error: BaseException) -> str:
    """What an interruption leaves, as a record says it."""
    return "; ".join(getattr(error, "__notes__", ())) or "nothing was recorded"


def _notes(error: BaseException) -> list[str]:
    return [f"ream: {note}" for note in getattr(error, "__notes__", ())]


def _ended_by(stop: BaseException) -> int:
    if isinstance(stop, _Ended):
        _say(f"ream: ended by {stop.signal.name}; {_left(stop)}")
        return 128 + stop.signal
    _say(f"ream: interrupted; {_left(stop)}")
    return EXIT_INTERRUPTED


def _exit_code(stop: SystemExit) -> int:
    """Our code for typer's, which ends with 1 on a broken pipe: that is not our 1."""
    cause: BaseException | None = stop
    while cause is not None:
        if isinstance(cause, KeyboardInterrupt):
            return _ended_by(cause)
        if isinstance(cause, BrokenPipeError):
            return EXIT_BROKEN_PIPE
        cause = cause.__context__
    return stop.code if isinstance(stop.code, int) else 0
