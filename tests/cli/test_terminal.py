# SPDX-License-Identifier: GPL-2.0-only
"""Results on a terminal: a pager where they are long, colours, and neither anywhere else."""

import os
import pty
import re
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from ream.cli.terminal import coloured, pager_of, wants_colours
from shipped import RECORDS, copied

RECORD = str(RECORDS / "20261128T232540Z-mremap-native-3e9e")
FORK = str(RECORDS / "20261128T232136Z-fork-native-011d")
MIGRATE = str(RECORDS / "20261128T233046Z-migrate-native-6c37")
EARLIER = str(RECORDS / "20261128T232546Z-migrate-native-a5d9")
GREEN, RED, PLAIN = "\x1b[32m", "\x1b[31m", "\x1b[39m"


def on_terminal(*words: str, code: int = 0, has_errors: bool = False, **environment: str) -> str:
    """What ream writes to a terminal; has_errors: with what it writes to standard error."""
    leader, follower = pty.openpty()
    its = {**os.environ, "TERM": "xterm", "PAGER": "cat", "PYTHONPATH": os.pathsep.join(sys.path)}
    its.pop("NO_COLOR", None)
    process = subprocess.Popen(
        (sys.executable, "-m", "ream", *words),
        stdin=subprocess.DEVNULL, stdout=follower,
        stderr=follower if has_errors else subprocess.DEVNULL,
        env={**its, **environment},
    )  # fmt: skip
    os.close(follower)
    said = bytearray()
    try:
        while chunk := os.read(leader, 1 << 16):
            said += chunk
    except OSError:  # the other end is closed
        pass
    os.close(leader)
    assert process.wait() == code
    return said.decode()


def test_a_terminal_that_has_the_verdict_is_not_told_again(ream) -> None:
    words = ("check", MIGRATE, "--baseline", EARLIER, "--unlike")
    alone = ream(*words)
    assert alone.code == 4
    (_, verdict) = alone.err.splitlines()[0].split(" against ", 1)[1].split(": ", 1)
    both = " ".join(on_terminal(*words, code=4, has_errors=True).split())
    assert both.count(verdict) == 1
    assert "more launches make intervals narrower" in both


def test_a_terminal_gets_colours_and_a_pipe_none(ream) -> None:
    shown = on_terminal("report", RECORD)
    assert GREEN in shown
    assert RED in shown
    assert "\x1b" not in ream("report", RECORD).out


def test_colours_change_no_other_character() -> None:
    plain = on_terminal("report", RECORD, NO_COLOR="1")
    assert "\x1b" not in plain
    shown = on_terminal("report", RECORD)
    for code in (GREEN, RED, PLAIN):
        shown = shown.replace(code, "")
    assert shown == plain


def test_json_has_no_colours() -> None:
    assert "\x1b" not in on_terminal("report", "--json", RECORD)


def test_a_pager_gets_the_whole_text(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    shown = on_terminal("report", RECORD, NO_COLOR="1", PAGER=f"tee {kept}")
    assert kept.read_text().splitlines() == shown.splitlines()
    assert kept.read_text().count("\n") > 40


def test_a_pager_that_is_left_early_is_no_error() -> None:
    assert on_terminal("report", RECORD, PAGER="head -1").count("\n") == 1


@pytest.mark.parametrize(
    ("words", "environment", "pager"),
    [
        (["report"], {"TERM": "xterm", "PAGER": "sh -c true"}, ["sh", "-c", "true"]),
        (["run", "fork"], {"TERM": "xterm", "PAGER": "sh"}, []),
        (["replicate", "--all"], {"TERM": "xterm", "PAGER": "sh"}, []),
        (["replicate", "--all", "--record", "last"], {"TERM": "xterm", "PAGER": "sh"}, ["sh"]),
        (["report"], {"TERM": "dumb", "PAGER": "sh"}, []),
        (["report"], {"TERM": "xterm", "PAGER": "cat"}, []),
        (["report"], {"TERM": "xterm", "PAGER": ""}, []),
        (["report"], {"TERM": "xterm", "PAGER": "no-such-pager"}, []),
        ([], {"TERM": "xterm", "PAGER": "sh"}, []),
    ],
)
def test_only_commands_that_look_have_a_pager(
    words: list[str], environment: Mapping[str, str], pager: list[str]
) -> None:
    assert pager_of(words, environment) == pager


@pytest.mark.parametrize(
    ("text", "colours"),
    [("1.34x faster", [GREEN]), ("1.3x slower, 2x fewer", [GREEN, RED]), ("10x moreover", []),
     ("linux-6.1x faster", []), ("verdict WRONG", [RED])],
)  # fmt: skip
def test_gains_are_green_and_losses_red(text: str, colours: list[str]) -> None:
    assert [one for one in (GREEN, RED) if one in coloured(text)] == colours


def test_a_cell_of_what_is_swept_is_green_above_1_and_red_below_it(ream) -> None:
    shown = on_terminal("report", FORK, COLUMNS="80")
    assert f"{GREEN}1.14x{PLAIN}" in shown
    assert f"{RED}0.96x{PLAIN}" in shown
    assert re.sub(r"\x1b\[\d+m", "", shown) == ream("report", FORK, COLUMNS="80").out.replace(
        "\n", "\r\n"
    )


@pytest.mark.parametrize(
    "line", ["  4        0.14 -> 0.13      7.05x", "no more than 1.79x", "  one  1.00x   =  ?"]
)
def test_what_is_no_cell_of_what_is_swept_or_no_gain_is_plain(line: str) -> None:
    assert coloured(line) == line


def test_no_colours_for_who_asks_for_none() -> None:
    assert wants_colours(["report"], {"TERM": "xterm"})
    assert not wants_colours(["report"], {"TERM": "xterm", "NO_COLOR": "1"})
    assert wants_colours(["report"], {"TERM": "xterm", "NO_COLOR": ""})
    assert not wants_colours(["report"], {})


@pytest.mark.parametrize("pager", ["less '", "/etc/hostname"])
def test_a_pager_that_cannot_be_run_is_left_out(pager: str) -> None:
    assert on_terminal("list", PAGER=pager).count("\n") > 5


def test_a_pager_gets_names_that_are_no_text(tmp_path: Path) -> None:
    strange = os.fsdecode(os.fsencode(tmp_path) + b"/r\xff")
    copied(Path(RECORD), Path(strange) / Path(RECORD).name)
    shown = on_terminal("show", "--runs", strange, Path(RECORD).name, PAGER="tee /dev/null")
    assert "mremap" in shown


def test_a_pager_does_not_outlive_an_interrupted_ream(tmp_path: Path) -> None:
    leader, follower = pty.openpty()
    started = tmp_path / "started"
    pager = tmp_path / "pager"
    pager.write_text(f"#!/bin/sh\ntrap '' INT\ncat >/dev/null\n: >{started}\nsleep 1\n")
    pager.chmod(0o755)
    its = {
        **os.environ,
        "TERM": "xterm",
        "PAGER": str(pager),
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    process = subprocess.Popen(
        (sys.executable, "-m", "ream", "list"),
        stdin=subprocess.DEVNULL, stdout=follower, stderr=subprocess.DEVNULL, env=its,
    )  # fmt: skip
    while not started.exists():
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    assert process.wait() == 0
    listed = subprocess.run(("ps", "-eo", "args"), capture_output=True, text=True, check=True)
    assert str(pager) not in listed.stdout
    os.close(leader)
    os.close(follower)
