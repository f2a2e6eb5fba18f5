# SPDX-License-Identifier: GPL-2.0-only
"""What doctor advises can be done as it is written."""

import shlex
from pathlib import Path

import pytest

from ream import doctor


def advice(monkeypatch: pytest.MonkeyPatch, uid: int) -> str | None:
    monkeypatch.setattr(doctor.os, "geteuid", lambda: uid)
    monkeypatch.setattr(doctor, "why_not", lambda kib: None if kib == 4 else "only root may")
    return doctor._live().fix


def test_a_user_is_sent_to_root_by_a_command_that_needs_no_path(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sudo, command, *words = shlex.split(advice(monkeypatch, 1000) or "")
    assert (sudo, words) == ("sudo", ["doctor"])
    assert Path(command).is_absolute()
    assert Path(command).stat().st_mode & 0o111


def test_root_is_not_sent_to_root(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "sudo" not in (advice(monkeypatch, 0) or "")
