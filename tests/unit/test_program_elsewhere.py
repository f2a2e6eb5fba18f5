# SPDX-License-Identifier: GPL-2.0-only
"""The machine and the kernel that programs get in a guest."""

from pathlib import Path

import pytest

from ream.errors import CannotRunHere, ReamError
from ream.program import elsewhere
from ream.program.elsewhere import MIB, OWN_MIB, guest_kernel, guest_machine, run_live
from ream.program.text import parse

SMALL = parse("memory 64M 32M\ncpus 2\np0 mmap a 1 anon private rw\n")
LARGE = parse("memory 128M\ncpus 4\nswap 16M\np0 mmap a 1 anon private rw\n")


def test_a_guest_has_the_most_that_any_program_declares(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(elsewhere, "choose_accel", lambda *_, **__: ("tcg", "max", ""))
    machine = guest_machine([SMALL, LARGE], tmp_path)
    assert (machine.cpus, machine.accel) == (4, "tcg")
    sizes = [node.memory_bytes // MIB for node in machine.nodes]
    assert sizes == [128 + OWN_MIB, 32]
    assert machine.memory_bytes == sum(sizes) * MIB


def test_rules_know_of_a_guest_what_programs_declare() -> None:
    kernel = guest_kernel([SMALL, LARGE], "6.12.117")
    assert (kernel.version, kernel.nr_nodes, kernel.has_swap) == ((6, 12), 2, True)
    assert not guest_kernel([SMALL], "7.3.4").has_swap


def test_a_program_that_cannot_make_its_files_or_dies_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(elsewhere, "build_program", lambda _, to: to)
    ends = elsewhere.EXIT_CANNOT_RUN, "", "open: no space left"
    monkeypatch.setattr(elsewhere, "finished", lambda *_, **__: ends)
    with pytest.raises(CannotRunHere, match="cannot make its files in .*: open: no space left"):
        run_live(SMALL, tmp_path)
    monkeypatch.setattr(elsewhere, "finished", lambda *_, **__: (-11, "", ""))
    with pytest.raises(ReamError, match="the program ended with -11"):
        run_live(SMALL, tmp_path)
    said = '{"step": "mmap"}\n'
    monkeypatch.setattr(elsewhere, "finished", lambda *_, **__: (0, said, ""))
    assert run_live(SMALL, tmp_path) == [{"step": "mmap"}]
