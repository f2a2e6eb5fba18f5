# SPDX-License-Identifier: GPL-2.0-only
"""Options asked for and got; the commands that drive kbuild."""

import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

from in_process import Terminal
from ream.errors import CannotRunHere, ReamError
from ream.kernel.arch import ARM64
from ream.kernel.build import (
    ARCH,
    BUILD,
    build_objects,
    compiler_version,
    make,
    options,
    plan_objects,
    suited,
    unmet_options,
)
from ream.paths import KERNEL_CONFIG
from ream.progress import Reporter, labelled


def test_options_are_read_from_either_form() -> None:
    text = 'CONFIG_SMP=y\n# CONFIG_KASAN is not set\nCONFIG_NAME="a=b"\n# a comment\n\n'
    assert options(text) == {"SMP": "y", "KASAN": "n", "NAME": '"a=b"'}


def test_every_unmet_option_is_named_at_once() -> None:
    fragment = "CONFIG_A=y\nCONFIG_B=y\nCONFIG_C=512\n# CONFIG_D is not set\nCONFIG_E=y\n"
    config = "CONFIG_A=y\n# CONFIG_B is not set\nCONFIG_C=64\nCONFIG_D=y\n"
    assert unmet_options(fragment, config) == (
        "CONFIG_B: asked for y, got n",
        "CONFIG_C: asked for 512, got 64",
        "CONFIG_D: asked for n, got y",
        "CONFIG_E: asked for y, got n",
    )


def test_an_option_whose_dependency_is_off_is_off() -> None:
    assert unmet_options("# CONFIG_KASAN is not set\n", "CONFIG_SMP=y\n") == ()


def test_a_line_may_be_for_trees_that_have_an_option_or_lack_it(tmp_path: Path) -> None:
    (tmp_path / "mm").mkdir()
    (tmp_path / "Kconfig").write_text("config NEW\n\tbool\n")
    (tmp_path / "mm" / "Kconfig.debug").write_text("\tmenuconfig DEEP\nconfig NEWER\n")
    fragment = (
        "# About it.\nCONFIG_A=y\nCONFIG_B=y # with NEW\nCONFIG_C=y # without NEW\n"
        "CONFIG_D=y  # with DEEP\nCONFIG_E=y # with GONE\n# CONFIG_F is not set # without GONE"
    )
    assert suited(fragment, tmp_path) == (
        "# About it.\nCONFIG_A=y\nCONFIG_B=y\nCONFIG_D=y\n# CONFIG_F is not set"
    )
    assert options(fragment)["C"] == "y"
    (tmp_path / "none").mkdir()
    assert "CONFIG_C=y" in suited(fragment, tmp_path / "none")
    assert suited("CONFIG_A=y\n", tmp_path / "nowhere") == "CONFIG_A=y\n"


def test_the_native_fragment_asks_for_nothing_twice() -> None:
    text = (KERNEL_CONFIG / "native.config").read_text()
    lines = [line for line in text.splitlines() if options(line)]
    assert len(lines) == len(options(text))


def test_a_users_environment_does_not_reach_kbuild() -> None:
    command = make(Path("/tree"), ["prepare"], deadline_s=1)
    assert {"ARCH=x86_64", "CROSS_COMPILE=", "LLVM=", "KCFLAGS=", "O=build"} <= set(command.argv)
    assert command.env["MAKEFLAGS"] == ""
    assert command.argv[-1] == "prepare"


def test_objects_that_kbuild_reaches_twice_are_made_one_after_the_other() -> None:
    plan = plan_objects(Path("/tree"), ["mm/mm_init.o", "arch/x86/lib/memcpy_64.o"])
    assert [command.argv[-1] for command in plan] == ["mm/mm_init.o", "arch/x86/lib/memcpy_64.o"]
    assert "-j1" in plan[1].argv


def fake_tree(tmp_path: Path, recipe: str) -> Path:
    """A variant whose Makefile stands in for kbuild."""
    tree = tmp_path / "variant" / "key" / "linux"
    (tree / BUILD / "mm").mkdir(parents=True)
    says = "@echo '  CC      $@'"
    (tree / "Makefile").write_text(f"mm/%.o:\n\t{says}\n\t{recipe}\n")
    return tree


def test_objects_are_built_once(tmp_path: Path) -> None:
    tree = fake_tree(tmp_path, "echo x >>$(O)/$@")
    said: list[str] = []
    for _ in range(2):
        objects = build_objects(
            tree, ["mm/a.o", "mm/b.o"], step=said.append, named="6.12 for libmm"
        )
    assert objects == {name: tree / BUILD / name for name in ("mm/a.o", "mm/b.o")}
    assert (tree / BUILD / "mm" / "a.o").read_text() == "x\n"
    doing = "compiling 6.12 for libmm"
    assert said == [doing, f"{doing} took 0 s: 2 objects"]
    build_objects(tree, ["mm/a.o", "mm/c.o"], step=said.append)
    assert said[-1].endswith(" took 0 s: 1 object")


def test_a_terminal_shows_how_many_objects_of_how_many_are_compiled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both targets of a new tree are counted beforehand; what a tool is made of is no object."""
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setattr(sys, "stderr", shown := Terminal())
    tree = fake_tree(tmp_path, "@echo '  CC      /tools/x.o'; echo x >$(O)/$@")
    step = labelled(Reporter().step, "before: ")
    build_objects(tree, ["mm/a.o", "mm/b.o"], step=step, named="6.12 for libmm")
    doing = "compiling 6.12 for libmm"
    assert f"before: {doing}: 2 of 2 objects" in shown.getvalue()
    assert " left" in shown.getvalue()
    assert f"ream: before: {doing} took 0 s: 2 objects" in shown.getvalue()


def test_a_log_says_when_compiling_begins_and_ends_and_nothing_between(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("ream.progress.QUIET_S", -1.0)
    tree = fake_tree(tmp_path, "echo x >$(O)/$@")
    build_objects(tree, ["mm/a.o", "mm/b.o"], step=Reporter().step, named="6.12 for libmm")
    begins, ends = capsys.readouterr().err.splitlines()
    assert begins == "ream: compiling 6.12 for libmm"
    assert ends.endswith("2 objects")


def test_a_build_that_was_cut_short_is_taken_up_again(tmp_path: Path) -> None:
    tree = fake_tree(tmp_path, "echo whole >$(O)/$@")
    (tree / BUILD / "mm" / "a.o").write_text("half")
    build_objects(tree, ["mm/a.o"], step=print)
    assert (tree / BUILD / "mm" / "a.o").read_text() == "whole\n"


def test_the_compilers_first_error_is_shown(tmp_path: Path) -> None:
    tree = fake_tree(tmp_path, "@echo 'mm/a.c:7:1: error: expected expression' >&2; exit 1")
    with pytest.raises(ReamError, match=r"mm/a.c:7:1: error: expected expression") as caught:
        build_objects(tree, ["mm/a.o"], step=print)
    assert caught.value.exit_code == 6


def test_a_build_under_make_does_not_inherit_its_options(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`make -n test` or `make -j test` would else reach every build the tests start."""
    monkeypatch.setenv("MAKEFLAGS", "n")
    build_objects(fake_tree(tmp_path, "echo x >$(O)/$@"), ["mm/a.o"], step=print)
    assert (tmp_path / "variant/key/linux/build/mm/a.o").exists()


def test_the_compiler_is_named_by_its_first_line() -> None:
    first = subprocess.run(["gcc", "--version"], capture_output=True, text=True, check=True)
    assert compiler_version() == first.stdout.splitlines()[0]


def test_another_architecture_is_compiled_for_by_a_compiler_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    monkeypatch.setenv("PATH", "")
    with pytest.raises(CannotRunHere, match="x86_64-linux-gnu-gcc: not installed"):
        compiler_version()
    with pytest.raises(CannotRunHere, match="^gcc: not installed"):
        compiler_version(arch=ARM64)
    with pytest.raises(CannotRunHere, match="--cc clang: kernels of another architecture"):
        compiler_version("clang")


def test_a_build_directory_says_for_which_architecture_it_is(tmp_path: Path) -> None:
    (tmp_path / "build").mkdir()
    (tmp_path / "build" / ARCH).write_text("arm64")
    words = set(make(tmp_path, ["prepare"], deadline_s=1).argv)
    assert {"ARCH=arm64", f"CROSS_COMPILE={ARM64.target.cross}"} <= words
    plan = plan_objects(tmp_path, ["mm/mm_init.o", "arch/arm64/lib/memcpy.o"])
    assert [command.argv[-1] for command in plan] == ["mm/mm_init.o", "arch/arm64/lib/memcpy.o"]


def test_a_line_of_a_fragment_may_be_of_one_architecture(tmp_path: Path) -> None:
    for folder, name in (("x86", "X86_64"), ("arm64", "ARM64")):
        (tmp_path / "arch" / folder).mkdir(parents=True)
        (tmp_path / "arch" / folder / "Kconfig").write_text(f"config {name}\n\tdef_bool y\n")
    fragment = "CONFIG_A=y # with X86_64\nCONFIG_B=y # with ARM64\nCONFIG_C=y\n"
    assert options(suited(fragment, tmp_path)) == {"A": "y", "C": "y"}
    assert options(suited(fragment, tmp_path, ARM64)) == {"B": "y", "C": "y"}


def test_a_machine_without_a_compiler_cannot_build(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(CannotRunHere, match="gcc: not installed"):
        compiler_version()


def test_all_cpus_we_may_use_compile() -> None:
    argv = make(Path("/tree"), [], deadline_s=1).argv
    assert f"-j{len(os.sched_getaffinity(0))}" in argv
