# SPDX-License-Identifier: GPL-2.0-only
"""A client of QEMU's gdb stub, which runs a guest's kernel to an address and stops it there.

A hardware breakpoint changes no byte of the kernel and costs no instruction.
Source: the remote protocol, appendix E of GDB's manual; gdbstub.c of QEMU.
"""

import re
import socket
from contextlib import suppress

from ream.errors import ReamError

HARDWARE_BREAKPOINT = 1
"""Type of a Z1 packet. KVM uses the CPU's breakpoints; TCG checks for it when it translates."""

SIGTRAP = 5
ANSWER_S = 30.0
CHUNK_BYTES = 1 << 12

_STOPPED = re.compile(rb"[ST]([0-9a-f]{2})")
_ENDED = (b"W", b"X")
"""Packets that announce the end of QEMU; other channels give the reason."""


class Debugger:
    """A connection to the stub of a guest that was started stopped (-S).

    All methods but hear() need a stopped guest. They raise ReamError if QEMU violates the protocol
    or has ended.
    """

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._connection.settimeout(ANSWER_S)
        self._heard = b""
        self._address: int | None = None
        self.stands = True

    def run_to(self, address: int) -> None:
        """Let the guest run; it stops when a CPU is about to execute the code at `address`."""
        self._forget()
        self._expect(f"Z{HARDWARE_BREAKPOINT},{address:x},1", b"OK")
        self._address = address
        self._send("c")
        self.stands = False

    def leave(self) -> None:
        """Let the guest run; it will not be stopped again."""
        self._forget()
        self._expect("D", b"OK")
        self.stands = False

    def hear(self) -> bool:
        """Read what has arrived; return False at the end of the connection. Updates `stands`."""
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
        """Acknowledge the next whole packet and return its contents; None if there is none yet."""
        begin = self._heard.find(b"$")  # before it are acknowledgements
        end = self._heard.find(b"#", begin)
        if begin < 0 or end < 0 or len(self._heard) < end + 3:
            return None
        whole, self._heard = self._heard[begin : end + 3], self._heard[end + 3 :]
        if whole != packet(whole[1:-3]):
            raise ReamError(f"QEMU's gdb stub: a packet that is damaged: {whole[:80]!r}")
        with suppress(OSError):  # QEMU does not wait for it if it ends
            self._connection.sendall(b"+")
        return whole[1:-3]


def packet(contents: bytes) -> bytes:
    """Return a packet with these contents and their checksum, the sum of bytes modulo 256."""
    return b"$" + contents + f"#{sum(contents) & 0xFF:02x}".encode()
