# SPDX-License-Identifier: GPL-2.0-only
"""What `make lint` judges. A missing tool is a skip at home and a failure in CI."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from checkout import absent, files, named, none_of
from ream.errors import CannotRunHere
from ream.folders import names
from ream.kernel.arch import ARCHES, X86_64, Arch
from ream.kernel.source import fetch_tree
from ream.paths import CHECKOUT, EXPERIMENTS, GUEST, NATIVE, WORKLOADS, cache_dir
from ream.stage.link import ARCH_SIDE, COMPILER_FLAGS, host_headers, is_kernel_side

LONGEST_FILE = 600

PYTHON = ("lab", "experiments", "tests", "conftest.py")

SPDX = "SPDX-License-Identifier: GPL-2.0-only"

# git am's form and data have no place for a comment; COPYING is the licence itself.
WITHOUT_SPDX = (
    ".patch",
    ".json",
    ".jsonl",
    ".txt",
    ".log",
    ".gz",
    ".zip",
    ".png",
    ".svg",
    "COPYING",
    "SHA256SUMS",
    ".tsv",
)

WRITTEN_BY_HAND = (".py", ".c", ".h", ".S", ".sh", ".toml", ".md", ".config", "Makefile")

# User space has neither the kernel's types nor its macros, and takes libc's names as they are. What
# stands between a program and the kernel may say that a call is not there.
CHECKPATCH_IGNORES = (
    "PREFER_KERNEL_TYPES,CAMELCASE,BIT_MACRO,ARRAY_SIZE,PREFER_DEFINED_ATTRIBUTE_MACRO,ENOSYS"
    ",TRAILING_SEMICOLON"  # of macros that files of one entry a line expand
)


def first_lines(path: Path, count: int) -> str:
    with path.open(encoding="utf-8", errors="replace") as opened:
        return "".join(line for _, line in zip(range(count), opened, strict=False))


def scripts() -> list[Path]:
    shebangs = ("#!/bin/sh", "#!/usr/bin/env bash", "#!/bin/bash")
    return [path for path in files() if first_lines(path, 1).startswith(shebangs)]


def c_files() -> list[Path]:
    return [path for path in files() if path.suffix in (".c", ".h")]


def user_side_c() -> list[Path]:
    """What an ordinary compiler compiles; the rest is kbuild's, which warns by itself."""
    sources = [path for path in c_files() if path.suffix == ".c"]
    by_kbuild = (
        *("kernel/modules/", "kernel/reach/", "native/host/kernel/", "native/host/optional/"),
        *("tests/native/", "tests/vm/broken/", "tests/vm/hurried/"),
        *(f"{named(one)}/" for one in EXPERIMENTS.glob("*/tests/native")),
        *(f"native/host/arch/{name}/kernel/" for name in ARCHES),
        *("native/libmm/kernel/", "native/libmm/check/"),
    )
    return [
        path
        for path in sources
        if not named(path).startswith(by_kbuild) and not is_kernel_side(path)
    ]


def arch_of_file(path: Path) -> Arch:
    """The architecture that a file is for; this machine's, if it is for all."""
    return next((one for one in ARCHES.values() if path.parent == ARCH_SIDE / one.name), X86_64)


def shared_by(path: Path) -> Path:
    """The folder of the headers that files like this one share; two of these have one program.h."""
    if path.parent.name == "workloads":
        return WORKLOADS
    return GUEST if path.name == "guest.c" else NATIVE / "host"


def need(program: str) -> None:
    if shutil.which(program) is None:
        absent(f"{program}: not installed; `make setup` as root installs it")


def judge(*words: str) -> None:
    """Fail with what a judge says, if it objects."""
    verdict = subprocess.run(
        words,
        cwd=CHECKOUT,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    if verdict.returncode != 0:
        pytest.fail(f"{words[0]}:\n{verdict.stdout}", pytrace=False)


def test_nothing_is_left_by_patch_or_a_merge() -> None:
    assert [named(path) for path in files() if path.suffix in {".orig", ".rej"}] == []


def test_python_obeys_ruff() -> None:
    judge(sys.executable, "-m", "ruff", "check", *PYTHON)


def test_python_is_formatted() -> None:
    judge(sys.executable, "-m", "ruff", "format", "--check", "--diff", *PYTHON)


def test_python_is_typed() -> None:
    judge(sys.executable, "-m", "mypy")


def test_every_file_names_its_licence() -> None:
    none_of(
        f"{named(path)}: no `{SPDX}` in its first lines"
        for path in files()
        if not path.name.endswith(WITHOUT_SPDX) and SPDX not in first_lines(path, 3)
    )


def test_no_file_is_longer_than_it_can_be_read() -> None:
    lengths = {
        path: len(path.read_bytes().splitlines())
        for path in files()
        if path.name.endswith(WRITTEN_BY_HAND)
    }
    none_of(
        f"{named(path)}: {length} lines, at most {LONGEST_FILE}"
        for path, length in lengths.items()
        if length > LONGEST_FILE
    )


NAMED_ALL_THE_SAME = {
    **{
        f"lab/ream/program/{name}.py": "programs have system calls, by which experiments are named"
        for name in (
            "drawn_kernel",
            "drawn_pool",
            "drawn_spaces",
            "drawn_uffd",
            "drawn_vmas",
            "meeting",
            "generate",
            "vary",
        )
    },
    "lab/ream/program/grammar.py": "programs have system calls, by which experiments are named",
    "lab/ream/program/rules.py": "programs have system calls, by which experiments are named",
}


def test_the_engine_names_no_experiment() -> None:
    """Neither as a text nor as a folder: what it knows of them it finds by listing."""
    # Of those one has a name that JSON has, too.
    known = {name for one in names() if one != "null" for name in (one, one.replace("-", "_"))}
    either = "|".join(map(re.escape, sorted(known)))
    wanted = re.compile(rf"""["']({either})["']|experiments[./]({either})\b""")
    engine = ("lab/", "native/host/", "guest/", "Makefile", "ream", "pyproject.toml")
    none_of(
        f"{named(path)}: {found[0]}"
        for path in files()
        if named(path).startswith(engine) and named(path) not in NAMED_ALL_THE_SAME
        if path.suffix != ".gz" and (found := wanted.search(path.read_text("utf-8")))
    )


def test_the_lock_file_names_no_place_to_load_from() -> None:
    lock = (CHECKOUT / "requirements.lock").read_text()
    assert "://" not in lock
    assert "--index" not in lock


def test_shell_scripts_obey_shellcheck() -> None:
    need("shellcheck")
    judge("shellcheck", *map(str, scripts()))


@pytest.mark.native
def test_c_compiles_without_a_warning() -> None:
    for arch in ARCHES.values():
        need(arch.tool("gcc"))
    if not user_side_c():
        pytest.skip("no C yet")
    for path in user_side_c():
        # As build_host() and build_workload() have them.
        arch = arch_of_file(path)
        homes = (shared_by(path), path.parent, path.parent.parent, *host_headers(arch))
        places = (f"-I{home}" for home in homes)
        flags = (*COMPILER_FLAGS, "-Werror", "-fsyntax-only", *places)
        judge(arch.tool("gcc"), *flags, str(path))


@pytest.mark.native
def test_c_obeys_checkpatch() -> None:
    need("perl")
    paths = c_files()
    if not paths:
        pytest.skip("no C yet")
    try:
        tree = fetch_tree(None, cache=cache_dir(), step=print)
    except CannotRunHere as cause:
        absent(str(cause))
    options = ("--no-tree", "--strict", "--terse", "--no-summary", "--show-types")
    checkpatch = ("perl", str(tree.path / "scripts" / "checkpatch.pl"), *options)
    judge(*checkpatch, "--ignore", CHECKPATCH_IGNORES, "-f", *map(str, paths))
