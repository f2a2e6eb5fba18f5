# SPDX-License-Identifier: GPL-2.0-only
"""Linking: what an experiment has in the place of a kernel's function."""

import subprocess
from pathlib import Path

from ream.stage.link import examine_kernel

KERNEL = "int twice(int n) { return 2 * n; }"
CALLER = "int twice(int n); int called(int n) { return twice(n); }"
GLUE = """
int __real_twice(int n);
int __real_missing(int n);
int __wrap_twice(int n) { return __real_twice(n) + 1; }
int __wrap_missing(int n) { return __real_missing(n); }
"""
PROGRAM = """
int called(int n);
int missing(int n) { return n; }
int main(void) { return called(20); }
"""


def compiled(text: str, out: Path) -> Path:
    source = out.with_suffix(".c")
    source.write_text(text)
    subprocess.run(("gcc", "-O2", "-fno-pie", "-c", str(source), "-o", str(out)), check=True)
    return out


def test_a_wrapper_is_called_in_the_place_of_what_it_wraps(tmp_path: Path) -> None:
    texts = {"kernel": KERNEL, "caller": CALLER, "glue": GLUE}
    objects = [compiled(text, tmp_path / f"{name}.o") for name, text in texts.items()]
    kernel = examine_kernel("v", objects, tmp_path)
    # What a variant does not have is nobody's to call, with a wrapper or without.
    assert kernel.undefined == ("missing",)
    program = compiled(PROGRAM, tmp_path / "program.o")
    linked = ["gcc", "-no-pie", str(program), str(tmp_path / "v.probe.o"), "-o", "program"]
    subprocess.run(linked, check=True, cwd=tmp_path)
    assert subprocess.run((str(tmp_path / "program"),), check=False).returncode == 41
