# SPDX-License-Identifier: GPL-2.0-only
"""What a person sees of a run while it goes on."""

import os
import sys

import pytest

from in_process import Terminal
from ream.progress import Reporter


def test_what_was_done_before_is_no_part_of_the_time_left(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    monkeypatch.setattr("ream.progress.time.monotonic", lambda: now[0])
    reporter = Reporter()
    with reporter.measuring(100.0) as advance:
        with reporter.again():
            advance(60.0, "replayed")
        now[0] = 20.0
        advance(20.0, "measured")
    assert "measured, 50 %, about 20 s left" in capsys.readouterr().err


def test_words_of_others_move_no_cursor(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ream.progress.QUIET_S", -1.0)
    reporter = Reporter()
    reporter.step("error: \x1b[2Jgone\nmore")
    with reporter.measuring(1.0) as advance:
        advance(0.5, "\x1b]0;name\x07")
    said = capsys.readouterr().err
    assert "\x1b" not in said
    assert "error: ?[2Jgone\nmore" in said


def test_a_quiet_reporter_says_nothing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ream.progress.QUIET_S", -1.0)
    reporter = Reporter(quiet=True)
    reporter.step("a step")
    with reporter.measuring(1.0) as advance:
        advance(0.5, "measured")
    assert capsys.readouterr() == ("", "")
    assert reporter.measured_since is not None


def test_a_run_goes_on_where_nobody_can_be_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ream.progress.QUIET_S", -1.0)
    with open("/dev/full", "w", buffering=1) as gone:  # noqa: PTH123
        monkeypatch.setattr(sys, "stderr", gone)
        reporter = Reporter()
        reporter.step("a step")
        with reporter.measuring(2.0) as advance:
            advance(1.0, "measured")
        monkeypatch.undo()
        os.dup2(os.open(os.devnull, os.O_WRONLY), gone.fileno())


@pytest.mark.parametrize(
    ("more", "moves"),
    [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False), ({"NO_COLOR": ""}, True)],
)
def test_escape_codes_come_only_where_they_are_wanted(
    monkeypatch: pytest.MonkeyPatch, more: dict[str, str], moves: bool
) -> None:
    for name, value in {"TERM": "xterm-256color", "NO_COLOR": "", **more}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("ream.progress.QUIET_S", -1.0)
    monkeypatch.setattr(sys, "stderr", shown := Terminal())
    reporter = Reporter()
    reporter.step("a step of [bold]work[/bold]")
    with reporter.measuring(2.0) as advance:
        advance(1.0, "measured")
    assert "ream: a step of [bold]work[/bold]" in shown.getvalue()
    assert ("\x1b" in shown.getvalue()) is moves
    assert moves or "measured, 50 %" in shown.getvalue()
