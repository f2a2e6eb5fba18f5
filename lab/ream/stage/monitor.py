# SPDX-License-Identifier: GPL-2.0-only
"""QEMU's monitor: saves guest memory to a file, and detects when QEMU stops the guest."""

import asyncio
import logging
import os
import socket
from collections.abc import Coroutine, Mapping
from pathlib import Path
from typing import Any

from qemu.qmp import QMPClient, QMPError, Runstate
from qemu.qmp.qmp_client import ExecuteError

from ream.errors import ReamError

# The library raises all errors as exceptions, too, and the end of QEMU is no error of its monitor.
logging.getLogger("qemu.qmp").setLevel(logging.CRITICAL + 1)

CONNECT_S = 30.0
COMMAND_S = 30.0
EVENT_S = 0.2
"""Time limit from the bytes of an event to the event, for which the loop must turn a few times."""

_OURS = ("debug", "running")
"""States of a guest after a stop that ream's debugger requested: stopped, or running again."""

SAVE_S_PER_GIB = 120.0
"""Time limit of saving, far above what disks need; QEMU itself needs a few seconds."""


class Monitor:
    """A QMP connection. Its loop runs only within these methods, without a thread or polling.

    stopped: why QEMU stopped the guest, which it does if it cannot continue; None if it did not.
    """

    def __init__(self) -> None:
        self.stopped: str | None = None
        self._runner = asyncio.Runner()
        self._client: QMPClient | None = None

    def connect(self, connection: socket.socket) -> None:
        """Take over a connection. Raises ReamError if QEMU sends no greeting."""
        self._client = QMPClient("ream")
        try:
            self._run(self._client.connect(connection), CONNECT_S)
        except AssertionError as cause:
            # An error of the library: the connection ended before the greeting was complete.
            connection.close()
            raise ReamError("lost QEMU's monitor as soon as it greeted") from cause
        except BaseException:
            connection.close()
            raise

    def close(self) -> None:
        """Close the connection. Its errors were raised before."""
        try:
            client = self._client
            if client is not None and client.runstate != Runstate.IDLE:
                self._run(client.disconnect(), COMMAND_S)
        except ReamError:
            pass
        finally:
            self._runner.close()

    def listen(self) -> bool:
        """Read QEMU's new messages; return False if it closed the connection."""
        assert self._client is not None
        try:
            self._run(self._next_event(self._client), COMMAND_S)
            return self._client.runstate == Runstate.RUNNING
        except ReamError:
            return False

    def save(self, address: int, nr_bytes: int, to: Path) -> None:
        """Write guest memory to a file as a consistent snapshot, with the guest stopped meanwhile.

        address: a virtual address in the current address space of the guest's CPU 0.
        Raises ReamError if QEMU cannot, or exceeds the time limit.
        """
        deadline_s = COMMAND_S + SAVE_S_PER_GIB * nr_bytes / (1 << 30)
        # QMP's integers are signed, and kernel addresses are in the upper half.
        signed = address - (1 << 64) if address >> 63 else address
        arguments = {"val": signed, "size": nr_bytes, "filename": str(to.absolute())}
        self.stop()
        try:
            self._execute("memsave", arguments, deadline_s)
        except ReamError as cause:
            raise ReamError(
                f"cannot save {nr_bytes} bytes of guest memory at {address:#x}: {cause}"
            ) from cause
        self.cont()

    def human(self, line: str) -> str:
        """Send a line to the human monitor, for commands that QMP lacks; return the answer.

        Raises ReamError if QEMU does not answer.
        """
        return str(self._execute("human-monitor-command", {"command-line": line}))

    def stop(self) -> None:
        """Stop the guest, and its clock, until cont()."""
        self._execute("stop", {})
        assert self._client is not None
        self._client.events.clear()  # the STOP of this request

    def cont(self) -> None:
        self._execute("cont", {})

    def _execute(
        self, command: str, arguments: Mapping[str, object], deadline_s: float = COMMAND_S
    ) -> object:
        if self._client is None:
            raise ReamError("QEMU has not opened its monitor yet")
        return self._run(self._client.execute(command, dict(arguments)), deadline_s)

    async def _next_event(self, client: QMPClient) -> None:
        # All events are read: after the RESUME of our own cont() may be a STOP that is not ours.
        while True:
            try:
                event = await asyncio.wait_for(client.events.get(), EVENT_S)
            except TimeoutError:
                return  # no other, or no whole one yet, or the end of the connection
            if event["event"] == "STOP":
                answer = await client.execute("query-status")
                status = str(answer["status"]) if isinstance(answer, dict) else "stopped"
                if status not in _OURS:
                    self.stopped = status

    def _run(self, what: Coroutine[Any, Any, Any], deadline_s: float) -> Any:
        try:
            return self._runner.run(asyncio.wait_for(what, deadline_s))
        except TimeoutError as cause:
            raise ReamError(f"QEMU did not answer within {deadline_s:g} s") from cause
        except ExecuteError as cause:
            raise ReamError(f"QEMU says: {cause}") from cause
        except (QMPError, EOFError, OSError) as cause:
            raise ReamError(f"lost QEMU's monitor ({cause})") from cause


def descriptor_of(connection: socket.socket) -> int:
    """Return a second descriptor of a connection that the monitor takes over, to wait on."""
    return os.dup(connection.fileno())
