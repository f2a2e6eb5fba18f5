# SPDX-License-Identifier: GPL-2.0-only
"""Signals that end us: at any time, once, with the code that the shell expects."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ream.cli.main import _Ended, _Unwind
from ream.paths import CHECKOUT

WAITS = ("-P", "-m", "ream", "run", "--cell", "-")
"""A command that reads standard input, and so goes on until that ends."""


AS_A_SHELL = ("env", "--default-signal=HUP")
"""Starts a program that a hangup ends, though nohup may have the tests ignore it."""


def started(words: tuple[str, ...], home: Path) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        (*AS_A_SHELL, *words),
        env={
            **os.environ,
            "PYTHONPATH": str(CHECKOUT / "lab"),
            "XDG_DATA_HOME": str(home / "data"),
            "HOME": str(home),
            "REAM_NO_INSTALL": "1",
        },
        cwd=home,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def until_it_catches(process: "subprocess.Popen[str]", number: signal.Signals) -> None:
    ends_at = time.monotonic() + 60
    caught = 0
    while not caught >> number - 1 & 1:
        assert process.poll() is None
        assert time.monotonic() < ends_at
        time.sleep(0.02)
        status = Path(f"/proc/{process.pid}/status").read_text()
        caught = int(status.partition("SigCgt:")[2].split()[0], 16)


@pytest.mark.parametrize("delay_ms", range(10, 410, 40))
def test_ctrl_c_at_the_very_start_leaves_no_trace(tmp_path: Path, delay_ms: int) -> None:
    with started((str(CHECKOUT / "ream"), *WAITS[3:]), tmp_path) as process:
        time.sleep(delay_ms / 1000)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    # A shell, too, reports 130 for a process that SIGINT killed.
    assert process.returncode in (130, -signal.SIGINT)
    assert out == ""
    assert err in ("", "ream: interrupted; nothing was recorded\n")
    assert not list(tmp_path.iterdir())


def test_ctrl_c_while_python_imports_us_is_exit_130(tmp_path: Path) -> None:
    asks = "import os, signal; os.kill(os.getpid(), signal.SIGINT)"
    (tmp_path / "typer.py").write_text(f"{asks}\nraise SystemExit(7)\n")
    (tmp_path / "run.py").write_text(
        f"import runpy, sys\nsys.path.insert(0, {str(tmp_path)!r})\n"
        "try:\n    runpy.run_module('ream', run_name='__main__')\n"
        "except KeyboardInterrupt:\n    sys.exit(1)\n"
    )
    with started((sys.executable, str(tmp_path / "run.py")), tmp_path) as process:
        process.communicate(timeout=60)
    assert process.returncode == 7  # it came no further, and was not interrupted within


IN_A_CALLBACK = """
import os, time, weakref
from ream.cli.main import _Ended, _take_signals, _Unwind

def ask(_):
    os.kill(os.getpid(), {number})
    time.sleep(0.1)

_take_signals(_Unwind())
try:
    thing = type("Thing", (), dict())()
    reference = weakref.ref(thing, ask)
    del thing
    time.sleep(30)
except {exception}:
    raise SystemExit(7)
"""


@pytest.mark.parametrize(
    ("number", "exception"), [(2, "KeyboardInterrupt"), (15, "_Ended"), (1, "_Ended")]
)
def test_a_signal_in_a_callback_of_python_is_not_dropped(
    tmp_path: Path, number: int, exception: str
) -> None:
    """Python ignores exceptions in such callbacks, for example that of an import lock."""
    text = IN_A_CALLBACK.format(number=number, exception=exception)
    with started((sys.executable, "-P", "-c", text), tmp_path) as process:
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (7, "", "")


BECOMES_AN_ERROR = """
import os
from ream.cli.main import _run

def app(**_):
    try:
        os.kill(os.getpid(), {number})
    except BaseException as stop:
        said = repr(stop)
    raise RuntimeError(said)

_run.__globals__["app"] = app
raise SystemExit(_run())
"""


@pytest.mark.parametrize(
    ("number", "code", "said"),
    [(2, 130, "interrupted"), (15, 143, "ended by SIGTERM"), (1, 129, "ended by SIGHUP")],
)
def test_an_error_that_a_signal_became_is_no_bug(
    tmp_path: Path, number: int, code: int, said: str
) -> None:
    """Python 3.11 replaces the exception in __set_name__(), pydantic's core in a model's schema."""
    text = BECOMES_AN_ERROR.format(number=number)
    with started((sys.executable, "-P", "-c", text), tmp_path) as process:
        _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (code, f"ream: {said}; nothing was recorded\n")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGHUP, 129), (signal.SIGTERM, 143)])
def test_a_signal_that_ends_us_is_named(tmp_path: Path, number: signal.Signals, code: int) -> None:
    with started((sys.executable, *WAITS), tmp_path) as process:
        until_it_catches(process, number)
        process.send_signal(number)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (code, "")
    assert err == f"ream: ended by {number.name}; nothing was recorded\n"


def test_what_runs_under_nohup_goes_on_when_its_terminal_goes(tmp_path: Path) -> None:
    with started(("nohup", sys.executable, *WAITS), tmp_path) as process:
        until_it_catches(process, signal.SIGTERM)
        process.send_signal(signal.SIGHUP)
        time.sleep(0.2)
        assert process.poll() is None
        _, err = process.communicate("no cell", timeout=60)
    assert process.returncode == 2
    assert "ended by" not in err


def test_a_second_signal_does_not_interrupt_what_the_first_one_cleans_up() -> None:
    unwind = _Unwind()
    with pytest.raises(_Ended):
        unwind(signal.SIGHUP, None)
    unwind(signal.SIGHUP, None)
    unwind(signal.SIGTERM, None)
