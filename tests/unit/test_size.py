# SPDX-License-Identifier: GPL-2.0-only
"""What a change adds to code is counted, and what only moves adds nothing."""

import subprocess
from pathlib import Path

from ream.kernel.size import text_bytes

SOURCE = """\
static const int primes[] = { 2, 3, 5, 7 };
int counter = 7;
int zeroed[16];
int outside(int);
int prime(int number) { return primes[number & 3]; }
int last(int kind) { counter += kind; return outside(kind) - 1; }
"""
FLAGS = ("-O2", "-fno-pie", "-mcmodel=kernel", "-ffreestanding", "-fno-inline", "-c")
LONGER = "int last(int kind) { outside(1); outside(2); counter += kind; return outside(kind) - 1; }"


def compiled(where: Path, text: str) -> Path:
    where.mkdir()
    (where / "code.c").write_text(text)
    subprocess.run(["gcc", *FLAGS, "code.c", "-o", "code.o"], cwd=where, check=True)
    return where / "code.o"


def test_code_that_grows_is_counted_in_both_builds(tmp_path: Path) -> None:
    before = compiled(tmp_path / "before", SOURCE)
    after = compiled(tmp_path / "after", SOURCE.replace(SOURCE.splitlines()[-1], LONGER))
    small, large = text_bytes({"mm/code.o": before}, {"mm/code.o": after})
    assert 0 < small < large


def test_objects_that_do_not_differ_do_not_count(tmp_path: Path) -> None:
    one = compiled(tmp_path / "one", SOURCE)
    moved = compiled(tmp_path / "moved", f"\n\n{SOURCE}")
    assert text_bytes({"mm/code.o": one}, {"mm/code.o": moved}) == (0, 0)


def test_objects_that_only_one_build_has_count(tmp_path: Path) -> None:
    nothing, some = text_bytes({}, {"mm/code.o": compiled(tmp_path / "only", SOURCE)})
    assert nothing == 0
    assert some > 0
