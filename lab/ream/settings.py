# SPDX-License-Identifier: GPL-2.0-only
"""Changes settings of the running kernel, and always restores them.

Before a value is changed, a journal on disk records the old and the new value. It is removed when
everything is restored: at the end of a `with applied(...)`, however it ends, at the latest when the
process ends, or after SIGKILL by `recover`, which the next run calls first. A value that another
process changed meanwhile is not restored.
"""

import atexit
import fcntl
import json
import os
import shlex
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any, TextIO

from ream.errors import CannotRunHere, ReamError

SCHEMA = 1
JOURNAL = "settings.json"
LOCK = "ream-settings.lock"

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""What people and systems ask a process with to end."""

WAIT_S = 30.0
"""For another run: a killed one gives gigabytes back before it is gone, others change settings for
seconds at a time."""

LOOK_S = 0.1
"""Between two looks whether another run has ended."""

AGAIN_S = 0.05
"""Before a signal is sent again that came where Python ignores what it raises."""

Say = Callable[[str], None]


def state_dir() -> Path:
    """Where the journal lies: $XDG_STATE_HOME/ream, or ~/.local/state/ream."""
    value = os.environ.get("XDG_STATE_HOME", "")
    # The XDG specification says a relative path is to be ignored.
    base = Path(value) if value.startswith("/") else Path.home() / ".local/state"
    return base / "ream"


@dataclass(frozen=True)
class Setting:
    """A file of sysfs or procfs, by its absolute path, and the value it is to hold."""

    path: str
    value: str

    def __str__(self) -> str:
        """A line to paste into a root shell."""
        return f"echo {shlex.quote(self.value)} > {shlex.quote(self.path)}"


def chosen(text: str) -> str:
    """The value in what a settings file says: of `always [madvise] never` it is `madvise`."""
    words = text.split()
    marked = [word[1:-1] for word in words if word.startswith("[") and word.endswith("]")]
    return marked[0] if len(words) > 1 and len(marked) == 1 else text.strip()


@dataclass(frozen=True)
class SettingChange:
    """One change: what a file held, and what we write."""

    path: str
    old: str
    new: str


@dataclass(frozen=True)
class SettingsJournal:
    """Everything that one process changes at a time."""

    boot_id: str
    pid: int
    started: int
    """In clock ticks after boot: with the pid, it names one process and no later one."""
    entries: tuple[SettingChange, ...]

    def to_json(self) -> str:
        """Return the journal in the form that it has on disk."""
        return json.dumps({"schema": SCHEMA, **asdict(self)}, indent=1)

    @classmethod
    def load(cls, path: Path) -> "SettingsJournal | None":
        """Read a journal; None if there is none.

        Raises ReamError for anything else that lies there: a change it does not tell of cannot
        be undone. We never leave half a journal, since it is renamed into place.
        """
        try:
            said: dict[str, Any] = json.loads(path.read_text())
            if said.pop("schema") != SCHEMA:
                raise ValueError("of another version of ream")
            entries = tuple(SettingChange(**entry) for entry in said.pop("entries"))
            return cls(entries=entries, **said)
        except FileNotFoundError:
            return None
        except (OSError, ValueError, TypeError, KeyError, AttributeError) as cause:
            raise ReamError(
                f"{path}: not a journal of settings ({cause}); put back by hand what it names, if"
                " anything, and remove it"
            ) from cause


class _Signals:
    """The signals that end us, held back while settings are neither the old nor the new.

    At most one of them raises, as the handler before us would have; those after it are dropped.
    So what unwinds from it is not interrupted by a second Ctrl-C. Nothing unwinds where Python
    ignores exceptions, as in a `__del__`: there the signal comes again a moment later.
    """

    def __init__(self) -> None:
        self.held = True
        self._raised = False
        self._noted: list[int] = []
        self._before: dict[int, Any] = {}
        self._number = 0
        self._hook_before = sys.unraisablehook

    def install(self) -> None:
        """Take the signals over, held. Main thread only, as Python wants it."""
        self._hook_before, sys.unraisablehook = sys.unraisablehook, self._ignored
        for number in ENDING:
            before = signal.getsignal(number)
            if before not in (signal.SIG_IGN, None):  # nohup stays nohup
                self._before[number] = before
                signal.signal(number, self._handle)

    def let_go(self) -> None:
        """From now on a signal raises; one that came before does it here."""
        self.held = False
        if self._noted:
            self._handle(self._noted.pop(0), None)

    def uninstall(self) -> None:
        """Give the signals back; one that was held back comes now, unless one has raised."""
        # None can come in between, so either all or none of the handlers are ours.
        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
        for number, before in self._before.items():
            signal.signal(number, before)
        sys.unraisablehook = self._hook_before
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        if self._noted and not self._raised:
            signal.raise_signal(signal.Signals(self._noted[0]))

    def _handle(self, number: int, frame: FrameType | None) -> None:
        before = self._before[number]
        if self.held or self._raised:
            self._noted.append(number)
            return
        self._raised = True
        self._number = number
        if not callable(before):
            raise SystemExit(128 + number)
        before(number, frame)
        self._raised = False  # it came back: that was no end

    def _ignored(self, unraisable: "sys.UnraisableHookArgs", /) -> None:
        # Kept, the exception would keep what was interrupted from being closed: its frames are.
        raised_in = [frame.f_code for frame, _ in traceback.walk_tb(unraisable.exc_traceback)]
        if _Signals._handle.__code__ not in raised_in:
            self._hook_before(unraisable)
            return
        self._raised = False
        threading.Timer(AGAIN_S, os.kill, (os.getpid(), self._number)).start()


@dataclass
class Door:
    """Reads and writes settings; one process of a host has one, from `sole_door`."""

    root: Path
    journal: Path
    say: Say
    wait_s: float = 0.0
    """How long to wait for the end of another run."""
    _changed: tuple[SettingChange, ...] = field(default=(), init=False)

    def read(self, path: str) -> str:
        """The value of a setting. Raises CannotRunHere if it cannot be read."""
        try:
            return chosen(self._at(path).read_text())
        except OSError as cause:
            raise CannotRunHere(f"{path}: {cause.strerror}") from cause

    @contextmanager
    def applied(self, settings: Iterable[Setting]) -> Iterator[None]:
        """Let settings hold for the length of a `with` block; not for a block within another.

        A signal that ends us does so when all are applied, or when all are put back. Raises
        CannotRunHere if one cannot be read or written, or if the kernel takes it for another.
        """
        if self._changed:
            raise ValueError("settings are applied already")
        signals = _Signals()
        try:
            try:
                signals.install()
                # A signal can raise in the machinery of `with`, where no `finally` of ours is.
                atexit.register(self.put_back)
                self._apply(tuple(settings))
                signals.let_go()
                yield
            finally:
                signals.held = True
        finally:  # again: a signal may have raised in the finally above, but now none will
            signals.held = True
            try:
                self.put_back()
            finally:
                signals.uninstall()

    def _apply(self, settings: tuple[Setting, ...]) -> None:
        old = {setting.path: self.read(setting.path) for setting in settings}
        changes = tuple(
            SettingChange(setting.path, old[setting.path], setting.value)
            for setting in settings
            if old[setting.path] != setting.value
        )
        if not changes:
            return
        started = _started("self")
        assert started is not None
        self._write_journal(SettingsJournal(_boot_id(self.root), os.getpid(), started, changes))
        self._changed = changes
        for change in changes:
            self._write(change.path, change.new)
            if (now := self.read(change.path)) != change.new:
                raise CannotRunHere(f"{change.path}: holds {now!r} after writing {change.new!r}")

    def put_back(self) -> None:
        """Put back what is changed now; nothing if nothing is.

        Raises ReamError if a value cannot be written; the journal stays then.
        """
        if self._changed:
            self._undo(self._changed, loudly=False)
            self._changed = ()
        atexit.unregister(self.put_back)

    def recover(self) -> int:
        """Put back what a killed run left changed, and say so; the number of values put back.

        Raises CannotRunHere if that run still goes on, ReamError as `put_back` and for a journal
        that cannot be read.
        """
        left = SettingsJournal.load(self.journal)
        if left is None:
            return 0
        if left.boot_id != _boot_id(self.root):
            self.say("settings that an earlier boot left changed went with it")
            self._forget()
            return 0
        who = f"pid {left.pid}"
        if left.pid != os.getpid() and not _comes(
            lambda: _started(str(left.pid)) != left.started, self.wait_s, self.say, lambda: who
        ):
            raise CannotRunHere(f"{who} has settings changed; wait until it ends")
        self.say(f"pid {left.pid} was killed before it put its settings back; doing so now")
        return self._undo(left.entries, loudly=True)

    def _undo(self, entries: tuple[SettingChange, ...], *, loudly: bool) -> int:
        """Any number of times, by any number of processes: it only goes back."""
        nr_back = 0
        failed: list[str] = []
        for entry in reversed(entries):
            try:
                now = self.read(entry.path)
                if now == entry.new:
                    self._write(entry.path, entry.old)
                    nr_back += 1
                    if loudly:
                        self.say(f"{entry.path}: {entry.old} again")
                elif now != entry.old:
                    self.say(
                        f"{entry.path}: somebody made it {now!r} since we wrote {entry.new!r};"
                        f" left so, it was {entry.old!r}"
                    )
            except CannotRunHere as cause:
                failed.append(str(cause))
        if failed:
            raise ReamError(
                "\n".join((*failed, "not put back; `ream restore` as root tries it again"))
            )
        self._forget()
        return nr_back

    def _write(self, path: str, value: str) -> None:
        try:
            self._at(path).write_text(value)
        except OSError as cause:
            raise CannotRunHere(
                f"{path}: {cause.strerror} (writing {value!r}); settings are root's to change"
            ) from cause

    def _write_journal(self, journal: SettingsJournal) -> None:
        partial = self.journal.with_suffix(".partial")
        try:
            with partial.open("w") as to:
                to.write(journal.to_json())
                to.flush()
                os.fsync(to.fileno())
            partial.replace(self.journal)
            _sync_folder(self.journal.parent)
        except OSError as cause:
            raise CannotRunHere(
                f"{self.journal}: {cause.strerror}; without this journal no setting is changed;"
                " XDG_STATE_HOME chooses another place"
            ) from cause

    def _forget(self) -> None:
        self.journal.unlink(missing_ok=True)
        _sync_folder(self.journal.parent)

    def _at(self, path: str) -> Path:
        return self.root / path.lstrip("/")


@contextmanager
def sole_door(
    *,
    say: Say,
    root: Path = Path("/"),
    state: Path | None = None,
    recover: bool = True,
    wait_s: float = 0.0,
) -> Iterator[Door]:
    """Within the block, be the only process of this host that changes settings.

    say: called with a line on what a killed run left, and what another process changed.
    root: the directory to use as the root of the file system. state: the folder of the journal.
    recover: whether to restore first what a killed run left changed. wait_s: how long to wait for
    the end of another run; a run that was killed may need seconds.
    Raises CannotRunHere if another run is still active, and what Door.recover raises.
    """
    folder = state_dir() if state is None else state
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as cause:
        raise CannotRunHere(
            f"{folder}: {cause.strerror}; XDG_STATE_HOME chooses another place"
        ) from cause
    with _host_lock((root / "run/lock", folder), say, wait_s):
        door = Door(root, folder / JOURNAL, say, wait_s)
        if recover:
            door.recover()
        try:
            yield door
        finally:
            door.put_back()  # before the lock goes, if a signal kept `applied` from it


@contextmanager
def _host_lock(folders: Sequence[Path], say: Say, wait_s: float) -> Iterator[None]:
    """A lock that goes with its process; the file stays, or two could lock two of that name."""
    lock, path = _open_lock(folders)
    with lock:
        if not _comes(lambda: _locked(lock), wait_s, say, lambda: _holder(lock)):
            raise CannotRunHere(
                f"{path}: held by {_holder(lock)}, which may change settings; wait until it ends"
            )
        yield


def _locked(lock: TextIO) -> bool:
    with suppress(BlockingIOError):
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    return False


def _comes(asked: Callable[[], bool], wait_s: float, say: Say, who: Callable[[], str]) -> bool:
    """Whether something comes true, now or while we wait; says for whom we wait, if we do."""
    if asked():
        return True
    ends_at = time.monotonic() + wait_s
    if wait_s > 0:
        say(f"waiting up to {wait_s:g} s for {who()} to end")
    while time.monotonic() < ends_at:
        time.sleep(LOOK_S)
        if asked():
            return True
    return False


def _open_lock(folders: Sequence[Path]) -> tuple[TextIO, Path]:
    """The first that can be had; read-only is enough to lock what another user made."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC
    failed = ""
    for folder in folders:
        path = folder / LOCK
        # A kernel with fs.protected_regular refuses O_CREAT on what another user made here.
        for more in (0, os.O_CREAT):
            try:
                return os.fdopen(os.open(path, flags | more, 0o644)), path
            except OSError as cause:
                failed = f"{path}: {cause.strerror}"
    raise CannotRunHere(f"{failed}; the lock on settings needs a place")


def _holder(lock: TextIO) -> str:
    """Name the process that holds a file's lock, found in /proc/locks by device and inode."""
    status = os.fstat(lock.fileno())
    device = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}"
    for line in Path("/proc/locks").read_text().splitlines():
        words = line.split()
        if words[1] == "FLOCK" and words[5] == f"{device}:{status.st_ino}":
            return f"pid {words[4]}"
    return "another run"


def _boot_id(root: Path) -> str:
    return (root / "proc/sys/kernel/random/boot_id").read_text().strip()


_DEAD = ("Z", "X")  # TASK_STATE_TO_CHAR_STR, include/linux/sched.h


def _started(pid: str) -> int | None:
    """When a process started, in clock ticks after boot; None if there is none of that pid.

    One that is dead, and which its parent has not asked for, is none.
    """
    try:
        stat = Path("/proc", pid, "stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    state, *fields = stat.rpartition(")")[2].split()  # a name may hold anything
    return None if state in _DEAD else int(fields[18])  # the 22nd of all


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
