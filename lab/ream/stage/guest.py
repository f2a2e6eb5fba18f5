# SPDX-License-Identifier: GPL-2.0-only
"""A booted guest: a console for people, a port for results, and memory for the oracle."""

import json
import logging
import os
import re
import selectors
import signal
import socket
import subprocess
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from ream.command import Command, spawn
from ream.errors import CannotRunHere, KernelComplained, ReamError
from ream.stage.console import LINES_SHOWN, Console
from ream.stage.gdb import Debugger
from ream.stage.guest_memory import GuestMemory
from ream.stage.monitor import Monitor, descriptor_of

log = logging.getLogger(__name__)

GRACE_S = 3.0
"""Time limit for the rest of a splat, or for the orderly end of a guest after its last message."""

QEMU_EXIT_S = 10.0
ANSWER_S = 30.0

MESSAGE_MOST_BYTES = 16 << 20
CHUNK_BYTES = 1 << 16

_FIRST, _THEN = 0, 1
"""Order in which ready descriptors are read, so that a kernel's complaint on the console is seen
before a message that was sent after it."""

_NO_MEMORY = re.compile(r"cannot set up guest memory|annot allocate memory", re.IGNORECASE)
_NO_KVM = re.compile(r"KVM kernel module|failed to initialize kvm", re.IGNORECASE)
_NAME_OF_QEMU = re.compile(r"^qemu-system-\w+: ")
_TERMINATED = re.compile(r"terminating on signal [0-9]+.*")

Message = Mapping[str, Any]


class Guest:
    """A guest from boot(). The caller reads messages() to the end, and may save memory in between.

    A guest with a debugger is stopped at first: call run_to(), read memory there, then leave().
    """

    def __init__(
        self,
        process: "subprocess.Popen[bytes]",
        sink: BinaryIO,
        listening: "_Listening",
        deadline_s: float,
        silence_s: float,
    ) -> None:
        self._process = process
        self._console = Console(sink)
        self._listening = listening
        self._deadline_s = deadline_s
        self._silence_s = silence_s
        self._ends_at = time.monotonic() + deadline_s
        self._heard_at = time.monotonic()
        self._stood_at: float | None = None
        """Time since which it is stopped at the address of run_to()."""
        self._doomed_at: float | None = None
        self._error: str | None = None
        self._ended = False
        self._said = b""  # QEMU's own output
        self._partial = b""
        self._messages: deque[Message] = deque()
        self._port: socket.socket | None = None
        self._monitor = Monitor()
        self._debugger: Debugger | None = None
        self._places: dict[int, int] = {}
        self._sources = selectors.DefaultSelector()
        self._stack = ExitStack()
        self._stack.callback(self._sources.close)
        self._stack.callback(self._monitor.close)
        assert process.stdout is not None
        assert process.stderr is not None
        self._watch(_FIRST, process.stdout.fileno(), self._read_console)
        self._watch(_FIRST, process.stderr.fileno(), self._read_said)
        self._watch(_THEN, listening.port.fileno(), self._accept_port)
        self._watch(_THEN, listening.qmp.fileno(), self._accept_monitor)
        if listening.gdb is not None:
            self._watch(_THEN, listening.gdb.fileno(), self._accept_debugger)

    @property
    def console(self) -> Sequence[str]:
        """The last lines of the console, at most LINES_KEPT; the log has all lines."""
        return tuple(self._console.lines)

    @property
    def pid(self) -> int:
        """The process id of QEMU."""
        return self._process.pid

    def overlook(self, pattern: str) -> None:
        """Call Console.overlook(), for reports that a debugging option also makes for the base."""
        self._console.overlook(pattern)

    def messages(self) -> Iterator[Message]:
        """Yield messages until the guest has powered off; it is killed if the caller stops early.

        The caller's time between two messages does not count towards the guest's limits.
        Raises ReamError, with the end of the console, if the kernel complains, even if it then
        powers off cleanly; if the guest reports that it cannot continue, powers off before its
        `end`, is silent too long or exceeds its deadline; and if QEMU fails or is killed.
        Raises CannotRunHere if the host is short of memory or lacks KVM.
        """
        self._heard_at = time.monotonic()
        while self._is_open():
            self._wait()
            while self._messages and not self._console.splat:
                given_at = time.monotonic()
                yield self._messages.popleft()
                self._heard_at = time.monotonic()
                self._ends_at += self._heard_at - given_at
        self._console.end()
        self._check_end()

    def run_to(self, address: int) -> None:
        """Let the guest run until one of its CPUs reaches an address; it is then stopped.

        The caller's time before the next call does not count towards the guest's limits.
        Raises what messages() raises, and ReamError if the guest ends without reaching it.
        """
        debugger = self._connected()
        self._resume(lambda: debugger.run_to(address))
        while not debugger.stands:
            if not self._is_open():
                self._check_end()
                raise self._failure(f"the guest never came to {address:#x}")
            self._wait()
        self._stood_at = time.monotonic()

    def leave(self) -> None:
        """Let a stopped guest run to its end; messages() yields the rest."""
        self._resume(self._connected().leave)

    def _resume(self, how: Callable[[], None]) -> None:
        self._heard_at = time.monotonic()
        if self._stood_at is not None:
            self._ends_at += self._heard_at - self._stood_at
            self._stood_at = None
        try:
            how()
        except ReamError as cause:
            raise self._failure(str(cause)) from cause

    def _connected(self) -> Debugger:
        """Wait until QEMU has connected the debugger; return it."""
        assert self._listening.gdb is not None, "the guest was booted without a debugger"
        while self._debugger is None:
            if not self._is_open():
                self._check_end()
            self._wait()
        return self._debugger

    def answer(self, text: str) -> None:
        """Send one line to the guest. If it has died, messages() raises the reason."""
        assert self._port is not None, "a guest that has said nothing awaits no answer"
        with suppress(OSError):
            self._port.sendall(text.encode() + b"\n")

    @contextmanager
    def memory(
        self, address: int, nr_bytes: int, ttbr1: int | None = None
    ) -> Iterator[GuestMemory]:
        """Stop the guest within the block, and yield a range of the kernel's virtual memory.

        ttbr1: that register of an arm64 guest, see `GuestMemory`.
        Raises ReamError if a page of it is not mapped, CannotRunHere if QEMU's process may not
        be read.
        """
        stands = self._stood_at is not None
        if not stands:
            self._monitor.stop()
        ask = self._monitor.human
        yield GuestMemory(self.pid, ask, address, nr_bytes, self._places, ttbr1=ttbr1)
        if not stands:
            self._monitor.cont()

    def save(self, address: int, nr_bytes: int, to: Path) -> None:
        """Write a range of the kernel's virtual memory to a file, with the guest stopped meanwhile.

        Raises ReamError if QEMU cannot.
        """
        self._monitor.save(address, nr_bytes, to)

    def kill(self) -> None:
        """Kill QEMU, from any thread; messages() then fails in the thread that reads them."""
        self._process.kill()

    def close(self) -> None:
        """Close the channels; boot() calls it when QEMU is dead."""
        self._stack.close()

    # --- the channels ------------------------------------------------------------------

    def _watch(self, order: int, descriptor: int, read: Callable[[int], None]) -> None:
        self._sources.register(descriptor, selectors.EVENT_READ, (order, read))

    def _is_open(self) -> bool:
        """Whether output of QEMU may follow: console and standard error are closed when it ends."""
        ours = {listener.fileno() for listener in self._listening.all()}
        return any(descriptor not in ours for descriptor in self._sources.get_map())

    def _wait(self) -> None:
        """Read what has arrived on any channel, the console first."""
        if self._doomed_at is not None and self._console.splat_is_whole:
            self._check_end()
        now = time.monotonic()  # checked first, as a guest that prints endlessly is always readable
        silent_at = self._heard_at + self._silence_s
        left_s = min(self._ends_at, silent_at, self._doomed_at or self._ends_at) - now
        if left_s <= 0:
            self._give_up(now, silent_at)
        ready = self._sources.select(left_s)
        for key, _ in sorted(ready, key=lambda each: each[0].data[0]):
            _, read = key.data
            read(key.fd)

    def _give_up(self, now: float, silent_at: float) -> None:
        if self._doomed_at is not None and now >= self._doomed_at:
            self._check_end()
        if now >= self._ends_at:
            raise self._failure(f"the guest was not finished after {self._deadline_s:g} s")
        if now >= silent_at:
            raise self._failure(f"the guest said nothing for {self._silence_s:g} s")

    def _take(self, descriptor: int) -> bytes:
        try:
            chunk = os.read(descriptor, CHUNK_BYTES)
        except ConnectionError:
            chunk = b""
        if not chunk:
            self._sources.unregister(descriptor)
        return chunk

    def _read_console(self, descriptor: int) -> None:
        if chunk := self._take(descriptor):
            self._heard_at = time.monotonic()
            self._console.feed(chunk)
        if self._console.splat:
            self._doom()

    def _read_said(self, descriptor: int) -> None:
        self._said += self._take(descriptor)

    def _accept_port(self, _: int) -> None:
        self._port = self._stack.enter_context(self._accepted(self._listening.port))
        self._port.settimeout(ANSWER_S)
        self._watch(_THEN, self._port.fileno(), self._read_port)

    def _accept_monitor(self, _: int) -> None:
        connection = self._accepted(self._listening.qmp)
        descriptor = descriptor_of(connection)
        self._stack.callback(os.close, descriptor)
        try:
            self._monitor.connect(connection)
        except ReamError as cause:
            # If QEMU died at once, the reason is on its standard error; else it is found later.
            log.debug("monitor: %s", cause)
        else:
            self._watch(_THEN, descriptor, self._read_monitor)

    def _accept_debugger(self, _: int) -> None:
        assert self._listening.gdb is not None
        connection = self._stack.enter_context(self._accepted(self._listening.gdb))
        self._debugger = Debugger(connection)
        self._watch(_THEN, connection.fileno(), self._read_debugger)

    def _accepted(self, listener: socket.socket) -> socket.socket:
        connection, _ = listener.accept()
        self._sources.unregister(listener)
        return connection

    def _read_monitor(self, descriptor: int) -> None:
        if not self._monitor.listen():
            self._sources.unregister(descriptor)
        if self._monitor.stopped is not None:
            raise self._failure(f"QEMU stopped the guest ({self._monitor.stopped})")

    def _read_debugger(self, descriptor: int) -> None:
        assert self._debugger is not None
        try:
            if not self._debugger.hear():
                self._sources.unregister(descriptor)
        except ReamError as cause:
            raise self._failure(str(cause)) from cause

    def _read_port(self, descriptor: int) -> None:
        chunk = self._take(descriptor)
        if chunk:
            self._heard_at = time.monotonic()
        *whole, self._partial = (self._partial + chunk).split(b"\n")
        for line in whole:
            self._accept_message(line)
        if len(self._partial) > MESSAGE_MOST_BYTES:
            raise self._failure("the guest sent a message without end")

    def _accept_message(self, line: bytes) -> None:
        try:
            message = json.loads(line)
        except ValueError:
            message = None
        if not isinstance(message, dict):
            raise self._failure(f"the guest sent what is no message: {line[:200]!r}")
        if "error" in message:
            self._error = str(message["error"].get("text", message["error"]))
            self._doom()
        elif self._error is None:
            self._ended = self._ended or "end" in message
            self._messages.append(message)

    # --- its end -----------------------------------------------------------------------

    def _doom(self) -> None:
        """Mark the guest as failed; it has GRACE_S for the rest of its output."""
        if self._doomed_at is None:
            self._doomed_at = time.monotonic() + GRACE_S

    def _check_end(self) -> None:
        if self._doomed_at is not None:
            raise self._complaint()
        try:
            code = self._process.wait(QEMU_EXIT_S)
        except subprocess.TimeoutExpired as cause:
            raise self._failure("QEMU closed its console but did not end") from cause
        if self._partial:
            raise self._failure(f"the guest's last message is cut short: {self._partial[:200]!r}")
        if found := _TERMINATED.search(self._said.decode(errors="replace")):
            raise self._failure(f"QEMU was ended from outside ({found[0]})")
        if code < 0:
            name = signal.Signals(-code).name
            raise self._failure(f"QEMU was killed by {name}")
        if code:
            raise self._qemu_failure(code)
        if not self._ended:
            raise self._failure("the guest powered off before its end")

    def _complaint(self) -> ReamError:
        """Return why the guest failed; the kernel's complaint comes before those of programs."""
        if self._console.splat:
            where = f"the guest's kernel complained; its console is in {self._log}"
            return KernelComplained("\n".join([where, *self._console.splat]))
        return self._failure(f"the guest cannot go on: {self._error}")

    def _qemu_failure(self, code: int) -> ReamError:
        said = self._qemu_said()
        if _NO_MEMORY.search(said):
            return CannotRunHere(f"this machine has not the memory for such a guest: {said}")
        if _NO_KVM.search(said):
            return CannotRunHere(f"KVM cannot be used here: {said}; an emulated guest needs none")
        return self._failure(f"QEMU ended with {code}")

    def _failure(self, what: str) -> ReamError:
        said = self._qemu_said()
        lines = [f"{what}: {said}" if said else what]
        if self._console.lines:
            lines += [f"the last {LINES_SHOWN} lines of its console, {self._log}:"]
            lines += [self._console.last_lines()]
        else:
            lines[0] += "; nothing was on its console"
        return ReamError("\n".join(lines))

    def _qemu_said(self) -> str:
        """Return the first line of QEMU's errors, or its warnings if there are no errors."""
        lines = self._said.decode(errors="replace").strip().splitlines()
        errors = [line for line in lines if ": warning: " not in line] or lines
        return _NAME_OF_QEMU.sub("", errors[0]) if errors else ""

    @property
    def _log(self) -> Path:
        return self._listening.log


class _Listening:
    """Sockets that are created before QEMU starts and connects: no polling, and nothing is lost."""

    def __init__(
        self, port: Path, qmp: Path, gdb: Path | None, log_path: Path, stack: ExitStack
    ) -> None:
        self.port = _listen(port, stack)
        self.qmp = _listen(qmp, stack)
        self.gdb = _listen(gdb, stack) if gdb else None
        self.log = log_path

    def all(self) -> tuple[socket.socket, ...]:
        return (self.port, self.qmp, *((self.gdb,) if self.gdb else ()))


def _listen(path: Path, stack: ExitStack) -> socket.socket:
    path.unlink(missing_ok=True)
    listener = stack.enter_context(socket.socket(socket.AF_UNIX))
    try:
        listener.bind(str(path))
    except OSError as cause:
        raise CannotRunHere(f"{path}: cannot make a socket there ({cause}); set TMPDIR") from cause
    stack.callback(path.unlink, missing_ok=True)
    listener.listen(1)
    return listener


@contextmanager
def boot(
    argv: Sequence[str],
    *,
    log: Path,
    port: Path,
    qmp: Path,
    gdb: Path | None = None,
    deadline_s: float,
    silence_s: float,
) -> Iterator[Guest]:
    """Run QEMU exactly for the duration of the `with` block; its console goes to `log`.

    argv: qemu_command() with the same port, qmp and gdb. deadline_s: limit for all of messages(),
    without the caller's own time. silence_s: limit without a byte on console or port.
    QEMU ends with this process even if that is killed, through a parent death signal.
    Raises CannotRunHere if QEMU is not installed; messages() raises other errors.
    """
    with ExitStack() as stack:
        sink = stack.enter_context(log.open("wb", buffering=0))
        listening = _Listening(port, qmp, gdb, log, stack)
        process = stack.enter_context(
            spawn(Command(tuple(argv), Path.cwd(), deadline_s), tied=True)
        )
        guest = Guest(process, sink, listening, deadline_s, silence_s)
        stack.callback(guest.close)
        stack.callback(process.kill)  # killed first, since QEMU may hang
        yield guest


@contextmanager
def boot_in_private(
    command: Callable[[Path], Sequence[str]],
    *,
    log: Path,
    deadline_s: float,
    silence_s: float,
    debugged: bool = False,
) -> Iterator[Guest]:
    """Call boot() with sockets in a temporary directory.

    command: returns qemu_command() with `port`, `qmp` and, if debugged, `gdb` in the directory that
    it is given.
    """
    # A socket's path is limited to about a hundred characters, so it is not below the cache.
    with tempfile.TemporaryDirectory(prefix="ream-") as name:
        sockets = Path(name)
        with boot(
            command(sockets),
            log=log,
            port=sockets / "port",
            qmp=sockets / "qmp",
            gdb=sockets / "gdb" if debugged else None,
            deadline_s=deadline_s,
            silence_s=silence_s,
        ) as guest:
            yield guest
