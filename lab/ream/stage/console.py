# SPDX-License-Identifier: GPL-2.0-only
"""A guest's console: it is logged, and searched for messages that a sound kernel never prints."""

import re
from collections import deque
from collections.abc import Sequence
from typing import BinaryIO

from ream.errors import ReamError

LINES_KEPT = 2000
"""The last lines of the console that the caller gets; the log has all lines."""

LINES_SHOWN = 30
"""The last lines of the console that an error shows."""

SPLAT_LINES = 40
"""Lines of a splat that are recorded: header, registers, and the first calls of the stack."""

LOG_MOST_BYTES = 256 << 20
"""Largest log, so that a guest that prints endlessly does not fill the disk before its deadline."""

LINE_MOST_BYTES = 1 << 16

_SPLAT = re.compile(
    r"""(?:^|\[\ *[0-9]+\.[0-9]+\](?:\[\ *[TC][0-9]+\])?\ )  # PRINTK_TIME, PRINTK_CALLER
    (?:
      -+\[\ cut\ here\ \]-+          # WARN() and BUG(), include/asm-generic/bug.h CUT_HERE
    | BUG: | kernel\ BUG\ at | WARNING: | Oops | UBSAN: | KASAN: | KCSAN:
    | Kernel\ panic | PANIC: | traps:\ PANIC | double\ fault: | invalid\ opcode:
    | general\ protection\ fault | (?:BUG:\ )?[Uu]nable\ to\ handle
    | watchdog:\ BUG: | NMI\ watchdog: | (?:watchdog:\ )?Watchdog\ detected\ hard\ LOCKUP
    | INFO:\ possible | INFO:\ inconsistent | INFO:\ suspicious | INFO:\ trying\ to\ register
    | INFO:\ task\ .*\ blocked | INFO:\ lockdep | (?:rcu:\ )?INFO:\ .*\ (?:detected|stall)
    | Call\ Trace: | \S+:\ .*,\ mode:0x[0-9a-f]+\(GFP  # warn_alloc(), mm/page_alloc.c
    | possible\ recursive\ locking | kmemleak:\ .*suspected | list_(?:add|del)\ corruption
    )""",
    re.VERBOSE,
)

_NOT_PRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


class Console:
    """Splits the console's bytes, fed in any pieces, into lines, and finds the first splat."""

    def __init__(self, log: BinaryIO) -> None:
        self.lines: deque[str] = deque(maxlen=LINES_KEPT)
        self._log = log
        self._log_bytes = 0
        self._partial = b""
        self._splat: list[str] = []
        self._overlooked: re.Pattern[str] | None = None

    def overlook(self, pattern: str) -> None:
        """Do not treat lines that match the pattern as a splat; the caller checks them."""
        self._overlooked = re.compile(pattern)

    def feed(self, chunk: bytes) -> None:
        """Process bytes; raises ReamError if the log exceeds LOG_MOST_BYTES."""
        self._log_bytes += len(chunk)
        if self._log_bytes > LOG_MOST_BYTES:
            raise ReamError(f"the guest filled its console with {LOG_MOST_BYTES >> 20} MiB")
        self._log.write(chunk)
        *whole, self._partial = (self._partial + chunk).split(b"\n")
        for line in whole:
            self._accept(line)
        if len(self._partial) > LINE_MOST_BYTES:
            self.end()

    def end(self) -> None:
        """Process the last line, which will not be continued."""
        if self._partial:
            self._accept(self._partial)
        self._partial = b""

    @property
    def splat(self) -> Sequence[str]:
        """The first lines of the first splat; empty if there was none."""
        return tuple(self._splat)

    @property
    def splat_is_whole(self) -> bool:
        """Whether the splat has as many lines as are recorded."""
        return len(self._splat) >= SPLAT_LINES

    def _accept(self, raw: bytes) -> None:
        line = _NOT_PRINTABLE.sub("", raw.decode(errors="replace"))
        self.lines.append(line)
        if self._splat:
            if not self.splat_is_whole:
                self._splat.append(line)
        elif _SPLAT.search(line) and not self._is_overlooked(line):  # init may have begun the line
            self._splat.append(line)

    def _is_overlooked(self, line: str) -> bool:
        return self._overlooked is not None and self._overlooked.search(line) is not None

    def last_lines(self) -> str:
        """Return the end of the console, for an error."""
        return "\n".join([*self.lines][-LINES_SHOWN:]) or "(nothing was printed)"
