# SPDX-License-Identifier: GPL-2.0-only
"""The machine and the kernel that programs get in a guest."""

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

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
    monkeypatch.setattr(elsewhere, "build_program", lambda _, to, **_how: to)
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


SWAPS = parse("memory 64M\nswap 16M\np0 mmap a 1 anon private rw\np0 write a\n")


def test_a_guest_runs_one_program_after_another_and_swaps_to_memory_if_one_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[tuple[list[str], tuple[str, ...]]] = []

    class Start:
        def __init__(self, machine: Any, kernel: Any, log: Path, append: tuple[str, ...]) -> None:
            assert (machine.cpus, kernel.image, log) == (2, tmp_path / "bzImage", tmp_path / "log")
            self.append = append

        def messages(self, words: list[str], **limits: float) -> Iterator[dict[str, Any]]:
            assert limits["silence_s"] <= limits["deadline_s"]
            started.append((words, self.append))
            yield {"boots": 1}
            for number in range(2):
                yield {"begins": number}
                yield {"step": {"line": number}}

    monkeypatch.setattr(elsewhere, "Start", Start)
    monkeypatch.setattr(elsewhere, "build_program", lambda _, to, **_how: to)
    monkeypatch.setattr(elsewhere, "build_init", lambda *_, **__: tmp_path / "init")
    monkeypatch.setattr(elsewhere, "guest_initramfs", lambda *_, **__: tmp_path / "initramfs")
    monkeypatch.setattr(elsewhere, "choose_accel", lambda *_, **__: ("tcg", "max", ""))
    image: Any = SimpleNamespace(arch=None, bootable=tmp_path / "bzImage")
    where: Any = {"cache": tmp_path, "work": tmp_path, "log": tmp_path / "log"}
    said = elsewhere.run_in_guest([SMALL, SWAPS], image, **where)
    assert said == [[{"line": 0}], [{"line": 1}]]
    elsewhere.run_in_guest([SMALL], image, **where)
    (both, swapping), (alone, not_swapping) = started
    assert both == ["experiment=programs", "run=/p0,/p1", "swap=/dev/ram0"]
    assert swapping == ("rootfstype=ramfs", "ramdisk_size=16384")
    assert (alone, not_swapping) == (["experiment=programs", "run=/p0"], ("rootfstype=ramfs",))
