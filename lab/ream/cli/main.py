# SPDX-License-Identifier: GPL-2.0-only
"""The way in, and the exit codes that leave."""

import logging
import signal
import sys

from ream.cli.app import app
from ream.cli.onward import with_defaults
from ream.errors import ReamError

log = logging.getLogger("ream")

EXIT_BUG = 70  # EX_SOFTWARE
EXIT_INTERRUPTED = 130
EXIT_BROKEN_PIPE = 141


class _Ended(BaseException):
    """Somebody wants us gone: unwinds like Ctrl-C, so that nothing of ours stays."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.signal = signal.Signals(number)


def _unwind(number: int, _frame: object) -> None:
    raise _Ended(number)


def main() -> None:
    """Usage errors are typer's (2), failures we foresaw carry their code, a bug is 70.

    A bare traceback would leave Python with 1, which our users read as "a claim fails".
    """
    sys.argv[1:] = with_defaults(sys.argv[1:])
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _unwind)
    try:
        app(prog_name="ream")
    except _Ended as end:
        print(f"ream: ended by {end.signal.name}; {_left(end)}", file=sys.stderr)
        sys.exit(128 + end.signal)
    except SystemExit as stop:
        sys.exit(_exit_code(stop))
    except ReamError as error:
        log.debug("cause", exc_info=error)
        print("\n".join((f"ream: {error}", *_notes(error))), file=sys.stderr)
        sys.exit(error.exit_code)
    except Exception:
        log.exception("a bug in ream, not in your patch; please report it with this trace")
        sys.exit(EXIT_BUG)


def _left(error: BaseException) -> str:
    """What an interruption leaves, as a record says it."""
    return "; ".join(getattr(error, "__notes__", ())) or "nothing was recorded"


def _notes(error: BaseException) -> list[str]:
    return [f"ream: {note}" for note in getattr(error, "__notes__", ())]


def _exit_code(stop: SystemExit) -> str | int | None:
    """Our code for typer's, which ends with 1 on a broken pipe: that is not our 1."""
    cause: BaseException | None = stop
    while cause is not None:
        if isinstance(cause, KeyboardInterrupt):
            print(f"ream: interrupted; {_left(cause)}", file=sys.stderr)
            return EXIT_INTERRUPTED
        if isinstance(cause, BrokenPipeError):
            return EXIT_BROKEN_PIPE
        cause = cause.__context__
    return stop.code
