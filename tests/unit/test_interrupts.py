# SPDX-License-Identifier: GPL-2.0-only
"""Objects whose cli and sti are replaced before they are linked."""

import subprocess
from pathlib import Path

import pytest

from ream.errors import ReamError
from ream.stage import interrupts
from ream.stage.interrupts import without_interrupt_flag

SOURCE = """
int data = 0xfafb;
int guarded(int x)
{
        asm volatile("cli" ::: "memory");
        data += x + 0xfa;
        asm volatile("sti" ::: "memory");
        return data + 0xfb;
}
__attribute__((section(".text.unlikely"))) int seldom(int x)
{
        asm volatile("sti");
        return x - 0xfa;
}
"""


def compiled(tmp_path: Path, source: str) -> Path:
    path = tmp_path / "some.o"
    subprocess.run(
        ["gcc", "-O2", "-c", "-x", "c", "-", "-o", path], input=source, text=True, check=True
    )
    return path


def disassembled(path: Path) -> str:
    said = subprocess.run(
        ["objdump", "-d", "--no-show-raw-insn", path], capture_output=True, text=True, check=True
    )
    return said.stdout.partition("Disassembly")[2]


def test_the_two_instructions_become_nops_and_nothing_else_changes(tmp_path: Path) -> None:
    path, out = compiled(tmp_path, SOURCE), tmp_path / "other.o"
    assert without_interrupt_flag(path, out) == 3
    was, now = path.read_bytes(), out.read_bytes()
    changed = [(a, b) for a, b in zip(was, now, strict=True) if a != b]
    assert sorted(changed) == [(0xFA, 0x90), (0xFB, 0x90), (0xFB, 0x90)]
    wanted = disassembled(path).replace("\tcli", "\tnop").replace("\tsti", "\tnop")
    assert disassembled(out).split() == wanted.split()


def test_an_object_without_them_stays_as_it_is(tmp_path: Path) -> None:
    path, out = (
        compiled(tmp_path, "int data = 0xfafb; int f(void) { return 0xfa; }"),
        tmp_path / "o",
    )
    assert without_interrupt_flag(path, out) == 0
    assert out.read_bytes() == path.read_bytes()


def test_a_place_that_is_neither_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = compiled(tmp_path, SOURCE)
    monkeypatch.setattr(interrupts, "CLI", 0)
    with pytest.raises(ReamError, match=r"no cli or sti at byte 0x\w+, in .text"):
        without_interrupt_flag(path, tmp_path / "o")
