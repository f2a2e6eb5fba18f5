# SPDX-License-Identifier: GPL-2.0-only
"""Settings are put back, whatever happens; on a file system made up for each test."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from ream.errors import CannotRunHere, ReamError
from ream.paths import CHECKOUT
from ream.session.restore import restore_settings
from ream.settings import ENDING, JOURNAL, Door, Setting, chosen, sole_door

SIZES = (16, 64, 2048)
ENABLED = "/sys/kernel/mm/transparent_hugepage/hugepages-{}kB/enabled"
WANTED = tuple(
    Setting(ENABLED.format(kib), "madvise" if kib == SIZES[1] else "never") for kib in SIZES
)

KILLED = """
import os, signal, sys
from pathlib import Path
from ream.session.restore import restore_settings
from ream.settings import Setting, sole_door

root, path, value = sys.argv[1:]
with sole_door(say=print, root=Path(root), state=Path(root, "state")) as door:
    with door.applied([Setting(path, value)]):
        os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A file system with a boot id and three settings, as a kernel shows them."""
    (tmp_path / "proc/sys/kernel/random").mkdir(parents=True)
    (tmp_path / "proc/sys/kernel/random/boot_id").write_text("first-boot\n")
    (tmp_path / "run/lock").mkdir(parents=True)
    for kib in SIZES:
        path = tmp_path / ENABLED.format(kib).lstrip("/")
        path.parent.mkdir(parents=True)
        path.write_text("always [inherit] madvise never\n")
    return tmp_path


@pytest.fixture(autouse=True)
def _handlers() -> Iterator[None]:
    before = [signal.getsignal(number) for number in ENDING]
    yield
    assert [signal.getsignal(number) for number in ENDING] == before


@contextmanager
def door_of(root: Path, said: list[str] | None = None) -> Iterator[Door]:
    say = [].append if said is None else said.append
    with sole_door(say=say, root=root, state=root / "state") as door:
        yield door


def values(root: Path) -> list[str]:
    return [chosen((root / setting.path.lstrip("/")).read_text()) for setting in WANTED]


def journal(root: Path) -> Path:
    return root / "state" / JOURNAL


UNTOUCHED = ["inherit"] * len(SIZES)
APPLIED = [setting.value for setting in WANTED]


def kill_one_that_sets(root: Path, path: str, value: str) -> int:
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(root), path, value],
        env={**os.environ, "PYTHONPATH": str(CHECKOUT / "lab")},
    )
    assert process.wait(timeout=60) == -signal.SIGKILL
    return process.pid


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("always [madvise] never\n", "madvise"),
        ("[always] inherit madvise never\n", "always"),
        ("4096\n", "4096"),
        ("0 0 7\n", "0 0 7"),
        ("[alone]\n", "[alone]"),
        ("", ""),
    ],
)
def test_of_several_words_the_one_in_brackets_is_the_value(text: str, value: str) -> None:
    assert chosen(text) == value


def test_a_setting_reads_as_a_line_for_a_shell() -> None:
    assert str(Setting("/sys/a b", "1 2")) == "echo '1 2' > '/sys/a b'"


def test_settings_hold_within_the_block_and_not_after_it(root: Path) -> None:
    with door_of(root) as door:
        with door.applied(WANTED):
            assert values(root) == APPLIED
        assert values(root) == UNTOUCHED
        assert not journal(root).exists()


def test_an_exception_puts_them_back(root: Path) -> None:
    with door_of(root) as door:
        with pytest.raises(ZeroDivisionError), door.applied(WANTED):
            raise ZeroDivisionError
        assert values(root) == UNTOUCHED


def test_the_journal_is_written_before_any_value(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = Door._write
    seen = []

    def watched(self: Door, path: str, value: str) -> None:
        seen.append([entry["path"] for entry in json.loads(self.journal.read_text())["entries"]])
        write(self, path, value)

    monkeypatch.setattr(Door, "_write", watched)
    with door_of(root) as door, door.applied(WANTED):
        pass
    assert len(seen) == 2 * len(WANTED)
    assert all(paths == [setting.path for setting in WANTED] for paths in seen)


def test_a_value_that_is_right_already_is_not_written(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Door, "_write", None)
    with door_of(root) as door, door.applied([Setting(WANTED[0].path, "inherit")]):
        assert not journal(root).exists()


def test_what_somebody_else_changed_meanwhile_stays(root: Path) -> None:
    said: list[str] = []
    with door_of(root, said) as door, door.applied(WANTED):
        (root / WANTED[0].path.lstrip("/")).write_text("[always] inherit madvise never\n")
    assert values(root) == ["always", *UNTOUCHED[1:]]
    told = (
        f"{WANTED[0].path}: somebody made it 'always' since we wrote 'never'; left so, it was"
        " 'inherit'"
    )
    assert said == [told]


def test_a_setting_that_is_not_there_changes_nothing(root: Path) -> None:
    missing = Setting("/sys/nowhere", "1")
    with (
        door_of(root) as door,
        pytest.raises(CannotRunHere, match="/sys/nowhere: No such file"),
        door.applied([*WANTED, missing]),
    ):
        pass
    assert values(root) == UNTOUCHED


def test_a_value_that_the_kernel_takes_for_another_is_refused(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Door, "_write", lambda _door, _path, _value: None)
    with (
        door_of(root) as door,
        pytest.raises(CannotRunHere, match="holds 'inherit' after writing 'never'"),
        door.applied(WANTED),
    ):
        pass


def test_the_next_run_puts_back_what_a_killed_one_left(root: Path) -> None:
    pid = kill_one_that_sets(root, WANTED[0].path, "always")
    assert values(root)[0] == "always"
    said: list[str] = []
    with door_of(root, said):
        assert values(root) == UNTOUCHED
    assert said == [
        f"pid {pid} was killed before it put its settings back; doing so now",
        f"{WANTED[0].path}: inherit again",
    ]
    with door_of(root, said):
        assert len(said) == 2, "once is enough"


def test_what_was_journalled_and_not_yet_written_needs_no_putting_back(root: Path) -> None:
    kill_one_that_sets(root, WANTED[0].path, "always")
    (root / WANTED[0].path.lstrip("/")).write_text("always [inherit] madvise never\n")
    said: list[str] = []
    with door_of(root, said):
        assert values(root) == UNTOUCHED
    assert len(said) == 1
    assert not journal(root).exists()


def test_a_journal_of_an_earlier_boot_is_dropped(root: Path) -> None:
    kill_one_that_sets(root, WANTED[0].path, "always")
    (root / "proc/sys/kernel/random/boot_id").write_text("second-boot\n")
    said: list[str] = []
    with door_of(root, said):
        assert values(root)[0] == "always", "this boot's own value"
    assert said == ["settings that an earlier boot left changed went with it"]
    assert not journal(root).exists()


def test_a_journal_whose_run_still_lives_is_left_to_it(root: Path) -> None:
    kill_one_that_sets(root, WANTED[0].path, "always")
    with subprocess.Popen(["sleep", "60"]) as other:
        try:
            stat = Path(f"/proc/{other.pid}/stat").read_text()
            left = json.loads(journal(root).read_text())
            left |= {"pid": other.pid, "started": int(stat.rpartition(")")[2].split()[19])}
            journal(root).write_text(json.dumps(left))
            with pytest.raises(CannotRunHere, match=f"pid {other.pid} "), door_of(root):
                pass
            left["started"] -= 1  # another process, long gone, that had its pid
            journal(root).write_text(json.dumps(left))
            with door_of(root):
                assert values(root) == UNTOUCHED
        finally:
            other.kill()


def state_of(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def test_a_killed_run_that_nobody_has_asked_for_yet_is_none(root: Path) -> None:
    path = WANTED[0].path
    with subprocess.Popen(
        (sys.executable, "-c", KILLED, root, path, "never"),
        env={**os.environ, "PYTHONPATH": str(CHECKOUT / "lab")},
    ) as process:
        ends_at = time.monotonic() + 60
        while state_of(process.pid) != "Z":
            assert time.monotonic() < ends_at
            time.sleep(0.01)
        with sole_door(say=print, root=root, state=root / "state") as door:
            assert door.read(path) == "inherit"
    assert process.returncode == -signal.SIGKILL


def test_restore_waits_for_the_end_of_a_run_and_says_for_whom(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = WANTED[0].path
    lives = KILLED.replace("os.kill(os.getpid(), signal.SIGKILL)", "print(flush=True); input()")
    with subprocess.Popen(
        (sys.executable, "-c", lives, root, path, "never"),
        env={**os.environ, "PYTHONPATH": str(CHECKOUT / "lab")},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        said: list[str] = []

        def say(text: str) -> None:
            said.append(text)
            process.kill()  # not before we wait for it

        monkeypatch.setattr(
            "ream.session.restore.sole_door", partial(sole_door, root=root, state=root / "state")
        )
        monkeypatch.setattr("ream.session.restore.WAIT_S", 60.0)
        assert restore_settings(say) == 0
    assert said[0] == f"waiting up to 60 s for pid {process.pid} to end"
    assert said[-1] == "1 put back"
    assert chosen((root / path.lstrip("/")).read_text()) == "inherit"


def test_restore_waits_no_longer_than_it_says(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    here = {"root": root, "state": root / "state"}
    monkeypatch.setattr("ream.session.restore.sole_door", partial(sole_door, **here))
    monkeypatch.setattr("ream.session.restore.WAIT_S", 0.3)
    with (
        sole_door(say=print, **here),
        pytest.raises(CannotRunHere, match=f"held by pid {os.getpid()}, .* wait until it ends"),
    ):
        restore_settings(said.append)
    assert said == [f"waiting up to 0.3 s for pid {os.getpid()} to end"]


def test_half_a_journal_beside_its_place_means_that_nothing_was_changed(root: Path) -> None:
    (root / "state").mkdir()
    journal(root).with_suffix(".partial").write_text('{"schema": 1, "boot')
    with door_of(root) as door, door.applied(WANTED):
        assert values(root) == APPLIED
    assert values(root) == UNTOUCHED


@pytest.mark.parametrize(
    "text",
    ['{"schema": 1, "boot', "", "[]", '{"schema": 2}', '{"schema": 1, "entries": [{"path": "/"}]}'],
)
def test_what_is_no_journal_is_neither_believed_nor_removed(root: Path, text: str) -> None:
    (root / "state").mkdir()
    journal(root).write_text(text)
    with pytest.raises(ReamError, match="not a journal of settings"), door_of(root):
        pass
    assert journal(root).read_text() == text


def test_a_value_that_cannot_be_put_back_keeps_the_journal(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with door_of(root) as door:
        with door.applied(WANTED):
            with monkeypatch.context() as patched:
                patched.setattr(Door, "_write", _refused)
                with pytest.raises(ReamError, match="ream restore"):
                    door.put_back()
            assert journal(root).exists()
        assert values(root) == UNTOUCHED, "the end of the block tried again, and could"


def _refused(_door: Door, path: str, _value: str) -> None:
    raise CannotRunHere(f"{path}: Read-only file system")


def test_only_one_run_of_a_host_has_the_door(root: Path) -> None:
    held = f"held by pid {os.getpid()}, "
    with door_of(root), pytest.raises(CannotRunHere, match=held), door_of(root):
        pass
    with door_of(root):
        pass


def test_without_run_lock_the_lock_lies_by_the_journal(root: Path) -> None:
    (root / "run/lock").rmdir()
    with door_of(root), pytest.raises(CannotRunHere, match=str(root / "state")), door_of(root):
        pass


def test_a_place_that_cannot_be_written_is_named(root: Path) -> None:
    (root / "state").write_text("not a folder")
    with pytest.raises(CannotRunHere, match="XDG_STATE_HOME"), door_of(root):
        pass


@pytest.fixture
def a_hangup_ends() -> Iterator[None]:
    """Restore the default action of SIGHUP, which nohup may have set to ignore."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.mark.usefixtures("a_hangup_ends")
@pytest.mark.parametrize("number", ENDING)
def test_a_signal_amid_writing_waits_until_all_is_written(
    root: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    monkeypatch.setattr(Door, "_write", _signalling(number))
    with door_of(root) as door:
        with pytest.raises((KeyboardInterrupt, SystemExit)) as ended, door.applied(WANTED):
            pytest.fail("the block began all the same")
        assert values(root) == UNTOUCHED
    if number != signal.SIGINT:
        assert ended.value.code == 128 + number


def _signalling(number: signal.Signals) -> Callable[[Door, str, str], None]:
    write = Door._write

    def signalled(self: Door, path: str, value: str) -> None:
        signal.raise_signal(number)
        write(self, path, value)
        signal.raise_signal(number)

    return signalled


def test_a_second_interrupt_does_not_keep_settings_from_going_back(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with door_of(root) as door:
        with pytest.raises(KeyboardInterrupt), door.applied(WANTED):  # noqa: PT012 -- one block
            monkeypatch.setattr(Door, "_write", _signalling(signal.SIGINT))
            signal.raise_signal(signal.SIGINT)
        assert values(root) == UNTOUCHED


def test_a_signal_amid_putting_back_comes_after_it(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with door_of(root) as door:
        with pytest.raises(KeyboardInterrupt), door.applied(WANTED):
            monkeypatch.setattr(Door, "_write", _signalling(signal.SIGINT))
        assert values(root) == UNTOUCHED


class _Dying:
    """Sends us a signal as it goes, where Python ignores whatever is raised."""

    def __init__(self, number: signal.Signals) -> None:
        self._number = number

    def __del__(self) -> None:
        signal.raise_signal(self._number)


@pytest.mark.usefixtures("a_hangup_ends")
@pytest.mark.parametrize("number", ENDING)
def test_a_signal_as_an_object_goes_is_not_lost(root: Path, number: signal.Signals) -> None:
    hook = sys.unraisablehook
    with door_of(root) as door:
        with pytest.raises((KeyboardInterrupt, SystemExit)), door.applied(WANTED):  # noqa: PT012
            _Dying(number)
            time.sleep(10)
            pytest.fail("the signal was lost")
        assert values(root) == UNTOUCHED
    assert sys.unraisablehook == hook


class _Interrupter:
    """Sends SIGINT as the n-th line runs, counted in settings.py and contextlib.py."""

    def __init__(self, at: set[int]) -> None:
        self._at = at
        self._count = 0

    def __call__(self, frame: FrameType, event: str, _argument: object) -> Any:
        if not frame.f_code.co_filename.endswith(("ream/settings.py", "contextlib.py")):
            return None
        if event == "line":
            self._count += 1
            if self._count in self._at:
                self._at.discard(self._count)
                signal.raise_signal(signal.SIGINT)
        return self


def _interrupted_run(root: Path, at: set[int]) -> bool:
    """Whether a run was interrupted at a line of those numbers, counted from 1."""
    old_trace = sys.gettrace()
    try:
        sys.settrace(_Interrupter(at))
        with door_of(root) as door, door.applied(WANTED):
            pass
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(old_trace)
    return False


@pytest.fixture
def _quick_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hundreds of runs of which none ends in a power cut."""
    monkeypatch.setattr(os, "fsync", lambda _descriptor: None)


@pytest.mark.usefixtures("_quick_disk")
@pytest.mark.filterwarnings("ignore::ResourceWarning")  # the lock, if not yet in its `with`
def test_an_interrupt_at_any_line_leaves_all_as_it_was(root: Path) -> None:
    line = 1
    while _interrupted_run(root, {line}):
        assert values(root) == UNTOUCHED, f"interrupted at line {line} of the run"
        assert not journal(root).exists()
        line += 1
    assert line > 100, "so many lines there are at least"


STORMED = """
import sys
from pathlib import Path
from ream.session.restore import restore_settings
from ream.settings import Setting, sole_door

root, *paths = sys.argv[1:]
with sole_door(say=print, root=Path(root), state=Path(root, "state")) as door:
    print("ready", flush=True)
    while True:
        with door.applied([Setting(path, "always") for path in paths]):
            pass
"""


def test_a_storm_of_interrupts_leaves_all_as_it_was(root: Path) -> None:
    draw = random.Random(5)
    for _ in range(25):
        with subprocess.Popen(
            [sys.executable, "-c", STORMED, str(root), *(setting.path for setting in WANTED)],
            env={**os.environ, "PYTHONPATH": str(CHECKOUT / "lab")},
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        ) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
            time.sleep(draw.uniform(0, 0.02))
            while process.poll() is None:
                process.send_signal(signal.SIGINT)
        assert values(root) == UNTOUCHED
        assert not journal(root).exists()
