# SPDX-License-Identifier: GPL-2.0-only
"""A debugger's side of QEMU's gdb stub: a kernel runs to a place of its own, and stands there.

A hardware breakpoint changes no byte of the kernel and costs it no instruction.
Source: the remote protocol, appendix E of GDB's manual; gdbstub.c of QEMU.
"""

import re
import socket
from contextlib import suppress

from ream.errors import ReamError

HARDWARE_BREAKPOINT = 1
"""Z1: the CPU's under KVM; under TCG, translation heeds it."""

SIGTRAP = 5
ANSWER_S = 30.0
CHUNK_BYTES = 1 << 12

_STOPPED = re.compile(rb"[ST]([0-9a-f]{2})")
_ENDED = (b"W", b"X")
"""QEMU is about to end; other channels say more of it."""


class Debugger:
    """One connection to the stub, of a guest that was started standing (-S).

    Each method but hear() is for a guest that stands. Raises ReamError if QEMU does not answer
    as the protocol has it, or has gone.
    """

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._connection.settimeout(ANSWER_S)
        self._heard = b""
        self._address: int | None = None
        self.stands = True

    def run_to(self, address: int) -> None:
        """Let the guest run; it stands when a CPU is about to execute what is at `address`."""
        self._forget()
        self._expect(f"Z{HARDWARE_BREAKPOINT},{address:x},1", b"OK")
        self._address = address
        self._send("c")
        self.stands = False

    def leave(self) -> None:
        """Let the guest run on by itself: nothing will stop it any more."""
        self._forget()
        self._expect("D", b"OK")
        self.stands = False

    def hear(self) -> bool:
        """Take in what has come; False at the end of the connection. See `stands` afterwards."""
        try:
            chunk = self._connection.recv(CHUNK_BYTES)
        except OSError:
            return False
        self._heard += chunk
        if (said := self._packet()) is not None and said[:1] not in _ENDED:
            stopped = _STOPPED.match(said)
            if stopped is None or int(stopped[1], 16) != SIGTRAP:
                raise ReamError(f"QEMU's gdb stub: {said[:80]!r} is no breakpoint")
            self.stands = True
        return bool(chunk)

    def _forget(self) -> None:
        if self._address is not None:
            self._expect(f"z{HARDWARE_BREAKPOINT},{self._address:x},1", b"OK")
            self._address = None

    def _expect(self, request: str, wanted: bytes) -> None:
        self._send(request)
        while (said := self._packet()) is None:
            try:
                chunk = self._connection.recv(CHUNK_BYTES)
            except OSError as cause:
                raise ReamError(f"QEMU's gdb stub: no answer to {request} ({cause})") from cause
            if not chunk:
                raise ReamError(f"QEMU's gdb stub: gone instead of an answer to {request}")
            self._heard += chunk
        if said != wanted:
            raise ReamError(f"QEMU's gdb stub: {request} was answered by {said[:80]!r}")

    def _send(self, text: str) -> None:
        try:
            self._connection.sendall(packet(text.encode()))
        except OSError as cause:
            raise ReamError(f"QEMU's gdb stub: cannot send {text} ({cause})") from cause

    def _packet(self) -> bytes | None:
        """The next whole packet's contents, acknowledged; None as long as there is none."""
        begin = self._heard.find(b"$")  # before it are acknowledgements
        end = self._heard.find(b"#", begin)
        if begin < 0 or end < 0 or len(self._heard) < end + 3:
            return None
        whole, self._heard = self._heard[begin : end + 3], self._heard[end + 3 :]
        if whole != packet(whole[1:-3]):
            raise ReamError(f"QEMU's gdb stub: a packet that is damaged: {whole[:80]!r}")
        with suppress(OSError):  # a QEMU that ends does not wait for it
            self._connection.sendall(b"+")
        return whole[1:-3]


def packet(contents: bytes) -> bytes:
    """Contents as they are sent: with the sum of their bytes, of which one byte is kept."""
    return b"$" + contents + f"#{sum(contents) & 0xFF:02x}".encode()
