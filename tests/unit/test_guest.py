# SPDX-License-Identifier: GPL-2.0-only
"""What is made of a guest's console, port and end. Recorded consoles, and a QEMU that is played."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from ream.errors import CannotRunHere, ReamError
from ream.paths import CHECKOUT
from ream.stage import guest as guest_module
from ream.stage.guest import Guest, Message, boot
from ream.stage.qemu import QEMU, GuestMachine, qemu_command

CONSOLES = CHECKOUT / "tests" / "console"
HELLO = '{"hello": {"version": 1, "release": "6.12.117-ream"}}'
BIND = '{"bind": {"number": 0, "calls": [], "message": "", "bind_ns": 1, "unbind_ns": null}}'
END = '{"end": {"ok": true}}'

SOON_S = 50.0
"""Long enough on a busy machine; nothing here takes it if it works."""

Play = Callable[..., AbstractContextManager[Guest]]


@pytest.fixture(autouse=True)
def little_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guest_module, "GRACE_S", 0.5)


@pytest.fixture
def play(tmp_path: Path) -> Play:
    """A guest that does these steps of fake_qemu.py."""

    @contextmanager
    def played(
        *steps: tuple[str, str],
        deadline_s: float = SOON_S,
        silence_s: float = SOON_S,
        gdb: Path | None = None,
    ) -> Iterator[Guest]:
        port, qmp = tmp_path / "port", tmp_path / "qmp"
        argv = [sys.executable, str(CONSOLES / "fake_qemu.py"), str(port), str(qmp)]
        argv += [word for step in steps for word in step]
        with boot(
            argv,
            log=tmp_path / "console.log",
            port=port,
            qmp=qmp,
            gdb=gdb,
            deadline_s=deadline_s,
            silence_s=silence_s,
        ) as guest:
            yield guest
        assert not port.exists()
        assert not qmp.exists()

    return played


def replay(name: str) -> tuple[str, str]:
    return "replay", str(CONSOLES / f"{name}.log")


def kinds(messages: Iterator[Message]) -> list[str]:
    return [key for message in messages for key in message]


def why(play: AbstractContextManager[Guest], seen: Sequence[str] = ()) -> str:
    """How it failed, after these messages."""
    told: list[str] = []

    def run() -> None:
        with play as guest:
            for message in guest.messages():
                told.extend(message)

    with pytest.raises(ReamError) as failure:
        run()
    assert told == list(seen)
    return str(failure.value)


def is_gone(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return True
    return state in "ZX"


def wait_until(true: Callable[[], bool]) -> None:
    until = time.monotonic() + SOON_S
    while not true():
        assert time.monotonic() < until
        time.sleep(0.02)


# --- a good run --------------------------------------------------------------------------


def test_a_guest_tells_its_messages_waits_for_answers_and_leaves_its_console(
    play: Play, tmp_path: Path
) -> None:
    steps = (("tell", HELLO), ("tell", BIND), ("await", "next"), replay("clean"), ("tell", END))
    told = []
    with play(*steps) as guest:
        for message in guest.messages():
            told += message
            if "bind" in message:
                guest.answer("next")
    assert told == ["hello", "bind", "end"]
    assert (tmp_path / "console.log").read_bytes() == (CONSOLES / "clean.log").read_bytes()
    assert guest.console[-1].endswith("reboot: Power down")
    assert "ok 2 fsdax rebind 1" in guest.console


def test_memory_is_saved_between_two_messages(play: Play, tmp_path: Path) -> None:
    saved = tmp_path / "saved"
    steps = (("tell", BIND), ("await", "next"), ("tell", END))
    with play(*steps) as guest:
        for message in guest.messages():
            if "bind" in message:
                guest.save(0xFFFFEA0004000000, 4096, saved)
                guest.answer("next")
    assert saved.read_bytes() == b"\x5a" * 4096


def test_memory_that_qemu_cannot_save_is_named(play: Play, tmp_path: Path) -> None:
    with play(("tell", BIND), ("await", "next")) as guest:
        next(guest.messages())
        with pytest.raises(ReamError, match="8 bytes of guest memory at 0x1000: .*Invalid addr"):
            guest.save(0x1000, 8, tmp_path / "saved")


@pytest.mark.vm
def test_the_callers_own_time_is_not_the_guests(play: Play) -> None:
    steps = (("tell", HELLO), ("await", "next"), ("tell", END))
    with play(*steps, deadline_s=3.0, silence_s=2.0) as guest:
        messages = guest.messages()
        next(messages)
        time.sleep(3.5)
        guest.answer("next")
        assert kinds(messages) == ["end"]


def test_messages_come_in_any_pieces(play: Play) -> None:
    steps = [("tell-part", HELLO[:20]), ("sleep", "0.1"), ("tell-part", HELLO[20:] + "\n" + END)]
    with play(*steps, ("sleep", "0.1"), ("tell", "")) as guest:
        assert kinds(guest.messages()) == ["hello", "end"]


# --- what the kernel and its programs say ----------------------------------------------


@pytest.mark.parametrize(
    ("name", "first"),
    [
        ("panic", "Kernel panic - not syncing: VFS: Unable to mount root fs"),
        ("warn", "WARNING: CPU: 0 PID: 1 at mm/mm_init.c:1012"),
        ("kasan", "BUG: KASAN: slab-out-of-bounds in memcpy_streaming_tail"),
        ("lockdep", "WARNING: possible recursive locking detected"),
    ],
)
def test_a_kernel_that_complains_has_failed_even_if_it_ends_cleanly(
    play: Play, name: str, first: str
) -> None:
    said = why(play(replay(name), ("tell", END)))
    assert first in said
    assert "console.log" in said
    if name == "warn":
        assert "pmem_attach_disk" in said


@pytest.mark.parametrize(
    "line",
    [
        "BUG: unable to handle page fault for address: ffffea0004000000",
        "[   12.345678] Oops: Oops: 0002 [#1] PREEMPT SMP NOPTI",
        "[   12.345678][    T1] general protection fault, probably for non-canonical address",
        "[   12.345678] rcu: INFO: rcu_sched self-detected stall on CPU",
        "[   12.345678] INFO: task init:1 blocked for more than 120 seconds.",
        "[   12.345678] UBSAN: array-index-out-of-bounds in mm/mm_init.c:1:2",
        "[   12.345678] watchdog: BUG: soft lockup - CPU#0 stuck for 22s! [init:1]",
        "[   12.345678] kernel BUG at mm/memory_hotplug.c:380!",
        "INFO: possible circular locking dependency detected",
    ],
)
def test_what_a_sound_kernel_never_says_is_noticed(play: Play, line: str) -> None:
    assert line in why(play(("print", line), ("tell", END)))


def test_words_that_only_look_like_a_complaint_are_none(play: Play) -> None:
    steps = [
        ("print", "[    0.1] Spectre V2 : WARNING: Unprivileged eBPF is enabled with eIBRS on"),
        ("print", "[    0.1] pci 0000:00:1f.0: BUG-compatible mode"),
        ("print", "# memcpy_streaming: a test of what no BUG: may do"),
        ("tell", END),
    ]
    with play(*steps) as guest:
        assert kinds(guest.messages()) == ["end"]


def test_a_complaint_that_the_caller_judges_ends_nothing_but_others_do(play: Play) -> None:
    race = ("print", "[    1.0] BUG: KCSAN: data-race in do_nanosleep / hrtimer_wakeup")
    with play(race, ("tell", END)) as guest:
        guest.overlook("BUG: KCSAN: data-race in ")
        assert kinds(guest.messages()) == ["end"]
    with play(race, replay("warn"), ("tell", END)) as guest:
        guest.overlook("BUG: KCSAN: data-race in ")
        with pytest.raises(ReamError, match="WARNING: CPU: 0"):
            list(guest.messages())


def test_a_complaint_ends_a_guest_that_would_go_on(play: Play) -> None:
    began = time.monotonic()
    assert "WARNING: CPU: 0" in why(play(replay("warn"), ("sleep", "60")))
    assert time.monotonic() - began < SOON_S


def test_a_guest_that_cannot_go_on_says_why(play: Play) -> None:
    error = '{"error": {"text": "ndctl: create-namespace: No space left on device"}}'
    said = why(play(("tell", HELLO), ("tell", error), replay("silent")), seen=["hello"])
    assert "the guest cannot go on: ndctl: create-namespace: No space left on device" in said
    assert "Run /init" in said


def test_the_kernels_complaint_comes_before_that_of_its_programs(play: Play) -> None:
    error = '{"error": {"text": "bind: EIO"}}'
    assert "WARNING: CPU: 0" in why(play(("tell", error), replay("warn")))


def test_what_is_no_message_is_shown(play: Play) -> None:
    assert "what is no message: b'[1]'" in why(play(("tell", "[1]")))
    assert "what is no message: b'helo'" in why(play(("tell", "helo"), ("sleep", "60")))


# --- how it ends ---------------------------------------------------------------------------


def test_a_guest_that_powers_off_before_its_end_has_failed(play: Play) -> None:
    said = why(play(("tell", HELLO), replay("truncated")), seen=["hello"])
    assert "powered off before its end" in said
    assert "memmap_init_zone_device i" in said.splitlines()[-1]


def test_a_message_cut_short_is_no_message(play: Play) -> None:
    assert "last message is cut short" in why(play(("tell-part", END[:9])))


def test_a_silent_guest_is_killed_and_shows_its_last_words(play: Play) -> None:
    said = why(play(replay("silent"), ("sleep", "60"), silence_s=1.5))
    assert "said nothing for 1.5 s" in said
    assert "Run /init as init process" in said


def test_a_guest_that_prints_without_pause_meets_its_deadline(play: Play) -> None:
    assert "not finished after 1 s" in why(play(("chatter", "tick"), deadline_s=1.0))


def test_a_guest_that_fills_the_disk_is_ended(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ream.stage.console.LOG_MOST_BYTES", 1 << 20)
    assert "filled its console" in why(play(("chatter", "tick")))


def test_qemus_own_failure_is_its_own_line(play: Play) -> None:
    warned = ("complain", "qemu-system-x86_64: warning: TCG doesn't support something")
    said = why(play(warned, ("complain", "qemu-system-x86_64: -foo: bad"), ("exit", "1")))
    assert said == "QEMU ended with 1: -foo: bad; nothing was on its console"
    said = why(play(("complain", "qemu-system-aarch64: -foo: bad"), ("exit", "1")))
    assert said.startswith("QEMU ended with 1: -foo: bad;")


def test_a_qemu_killed_from_outside_says_so(play: Play) -> None:
    assert "QEMU was killed by SIGKILL" in why(play(replay("silent"), ("signal", "SIGKILL")))
    terminated = "qemu-system-x86_64: terminating on signal 15 from pid 1 (init)"
    said = why(play(("complain", terminated), ("exit", "0")))
    assert "ended from outside (terminating on signal 15 from pid 1 (init))" in said


def test_qemu_stopping_the_guest_is_seen_after_we_have_stopped_it_ourselves(
    play: Play, tmp_path: Path
) -> None:
    """Our own stop and cont leave events behind; theirs must not hide among them."""
    steps = (("tell", BIND), ("await", "next"), ("sleep", "0.5"), ("event", "STOP"))
    with play(*steps, ("sleep", "60")) as guest:
        messages = guest.messages()
        next(messages)
        guest.save(0xFFFFEA0004000000, 4096, tmp_path / "saved")
        guest.answer("next")
        with pytest.raises(ReamError, match="QEMU stopped the guest .internal-error"):
            list(messages)


def test_a_complaint_behind_a_line_that_init_has_begun_is_seen(play: Play) -> None:
    line = "ok 1 fsdax[    3.141592] BUG: kernel NULL pointer dereference"
    with (
        play(("print", line), ("tell", HELLO), ("tell", END)) as guest,
        pytest.raises(ReamError, match="BUG: kernel NULL pointer dereference"),
    ):
        list(guest.messages())


def test_a_guest_that_qemu_stops_has_failed(play: Play) -> None:
    steps = (("complain", "KVM internal error. Suberror: 1"), ("sleep", "0.5"), ("event", "STOP"))
    said = why(play(*steps, ("sleep", "60")))
    assert "QEMU stopped the guest (internal-error): KVM internal error. Suberror: 1" in said


@pytest.mark.vm
def test_a_qemu_that_closes_its_console_and_stays_is_not_waited_for(
    play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guest_module, "QEMU_EXIT_S", 0.5)
    monkeypatch.setattr("ream.stage.monitor.CONNECT_S", 0.5)
    steps = (("greet", "no"), ("close", ""), ("sleep", "60"))
    assert "not finished after 3 s" in why(play(*steps, deadline_s=3.0))


# --- nothing is left behind ----------------------------------------------------------------


def test_ctrl_c_in_the_block_leaves_no_process(play: Play) -> None:
    pids = []

    def interrupted() -> None:
        with play(("tell", HELLO), ("sleep", "60")) as guest:
            next(guest.messages())
            pids.append(guest.pid)
            assert not is_gone(guest.pid)
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert is_gone(pids[0])


def test_qemu_dies_with_us_even_if_we_are_killed(tmp_path: Path) -> None:
    port, qmp = tmp_path / "port", tmp_path / "qmp"
    ours = """
import sys, time
from pathlib import Path
from ream.stage.guest import boot
here = Path(sys.argv[1])
argv = [sys.executable, *sys.argv[2:], "sleep", "60"]
with boot(argv, log=here / "log", port=here / "port", qmp=here / "qmp",
          deadline_s=60, silence_s=60) as guest:
    print(guest.pid, flush=True)
    time.sleep(60)
"""
    argv = [sys.executable, "-c", ours, str(tmp_path), str(CONSOLES / "fake_qemu.py")]
    with subprocess.Popen(
        [*argv, str(port), str(qmp)],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(CHECKOUT / "lab")},
    ) as process:
        try:
            assert process.stdout is not None
            pid = int(process.stdout.readline())
            wait_until(lambda: b"fake_qemu" in Path(f"/proc/{pid}/cmdline").read_bytes())
            assert not is_gone(pid)
        finally:
            process.send_signal(signal.SIGKILL)
    wait_until(lambda: is_gone(pid))


def test_a_missing_qemu_is_a_missing_program(tmp_path: Path) -> None:
    with (
        pytest.raises(CannotRunHere, match="no-such-qemu: not installed"),
        boot(
            ["no-such-qemu"],
            log=tmp_path / "log",
            port=tmp_path / "port",
            qmp=tmp_path / "qmp",
            deadline_s=1.0,
            silence_s=1.0,
        ),
    ):
        pass


def test_a_path_too_long_for_a_socket_is_named(tmp_path: Path) -> None:
    deep = tmp_path / ("d" * 120)
    deep.mkdir()
    files = {"log": deep / "log", "port": deep / "port", "qmp": deep / "qmp"}
    with (
        pytest.raises(CannotRunHere, match="port: cannot make a socket there .*; set TMPDIR"),
        boot(["true"], **files, deadline_s=1.0, silence_s=1.0),
    ):
        pass


# --- the real QEMU ---------------------------------------------------------------------------


@pytest.fixture
def real(tmp_path: Path, request: pytest.FixtureRequest) -> Play:
    """A boot of the real QEMU, which ends before it has a guest."""
    qemu = request.getfixturevalue("qemu_path")

    @contextmanager
    def booted(
        kernel: Path, *, memory_bytes: int = 1 << 30, options: tuple[str, ...] = ()
    ) -> Iterator[Guest]:
        port, qmp = tmp_path / "a,port", tmp_path / "qmp"
        argv = qemu_command(
            GuestMachine("tcg", memory_bytes=memory_bytes, options=options),
            kernel=kernel,
            initramfs=None,
            append=(),
            init=(),
            port=port,
            qmp=qmp,
        )
        with boot(
            [qemu, *argv[1:]],
            log=tmp_path / "console.log",
            port=port,
            qmp=qmp,
            deadline_s=SOON_S,
            silence_s=SOON_S,
        ) as guest:
            yield guest

    return booted


def test_a_kernel_that_is_not_there_is_named(real: Play, tmp_path: Path) -> None:
    assert "could not open kernel file" in why(real(tmp_path / "bzImage"))


def test_a_kernel_that_is_none_is_refused(real: Play, tmp_path: Path) -> None:
    kernel = tmp_path / "bzImage"
    kernel.write_bytes(b"not a kernel" * 1000)
    assert "QEMU ended with 1" in why(real(kernel))


def test_an_option_that_qemu_lacks_is_shown(real: Play, tmp_path: Path) -> None:
    said = why(real(tmp_path / "bzImage", options=("-no-such-option",)))
    assert said.startswith("QEMU ended with 1: -no-such-option: invalid option")


def test_a_guest_larger_than_any_address_space_cannot_run_here(real: Play, tmp_path: Path) -> None:
    with (
        pytest.raises(CannotRunHere, match="has not the memory"),
        real(tmp_path / "bzImage", memory_bytes=1 << 50) as guest,
    ):
        assert kinds(guest.messages()) == []


@pytest.fixture
def qemu_path() -> str:
    path = shutil.which(QEMU)
    if path is None:
        pytest.skip(f"{QEMU} is not installed")
    return path


# --- a debugger ------------------------------------------------------------------------


def test_a_guest_stands_where_it_is_told_to_and_then_says_the_rest(
    play: Play, tmp_path: Path
) -> None:
    gdb = tmp_path / "gdb"
    steps = (("stand", str(gdb)), ("print", "one"), ("arrive", ""), ("print", "two"))
    with play(*steps, ("arrive", ""), ("tell", HELLO), ("tell", END), gdb=gdb) as guest:
        guest.run_to(0x1000)
        guest.run_to(0x2000)
        assert "two" in guest.console
        guest.leave()
        assert kinds(guest.messages()) == ["hello", "end"]


def test_time_in_which_a_guest_stands_is_not_its_own(play: Play, tmp_path: Path) -> None:
    gdb = tmp_path / "gdb"
    steps = (("stand", str(gdb)), ("arrive", ""), ("sleep", "0.2"), ("tell", END))
    with play(*steps, gdb=gdb, deadline_s=3.0, silence_s=2.0) as guest:
        guest.run_to(0x1000)
        time.sleep(3.5)
        guest.leave()
        assert kinds(guest.messages()) == ["end"]


def test_a_guest_that_never_comes_there_is_told(play: Play, tmp_path: Path) -> None:
    gdb = tmp_path / "gdb"

    def run(*steps: tuple[str, str]) -> None:
        with play(("stand", str(gdb)), *steps, gdb=gdb) as guest:
            guest.run_to(0x1000)

    with pytest.raises(ReamError, match="the guest never came to 0x1000"):
        run(("tell", END))
    with pytest.raises(ReamError, match="powered off before its end"):
        run(("print", "reboot: Power down"))
    with pytest.raises(ReamError, match="Kernel panic"):
        run(replay("panic"))


def test_a_stop_that_a_debugger_asked_for_is_no_failure(play: Play, tmp_path: Path) -> None:
    gdb = tmp_path / "gdb"
    steps = (("stand", str(gdb)), ("status", "debug"), ("event", "STOP"), ("sleep", "0.5"))
    with play(*steps, ("arrive", ""), ("tell", END), gdb=gdb) as guest:
        guest.run_to(0x1000)
        guest.leave()
        assert kinds(guest.messages()) == ["end"]
