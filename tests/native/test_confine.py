# SPDX-License-Identifier: GPL-2.0-only
"""A hosted kernel gets no network, no file of the user and no other process."""

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from named_rows import row_of
from ream.command import Command, finished
from ream.errors import WrongVariant
from ream.experiment.section import SECTION_BYTES
from ream.kernel import confine, store
from ream.kernel.build import BUILD, make
from ream.kernel.confine import building
from ream.kernel.series import load_series
from ream.kernel.source import Tree
from ream.kernel.variant import assemble
from ream.stage import fault
from ream.stage.bench import NATIVE_CONFIG
from ream.stage.confine import build_confinement

pytestmark = pytest.mark.xdist_group("faults")

ROW = row_of(
    "zone-device",
    name="device",
    rounds=1,
    threads=1,
    device_bytes=SECTION_BYTES,
    order=0,
    type="FS_DAX",
)
PATCHES = Path(__file__).parent / "patches"
SIGSYS_CODES = (-31, 128 + 31)

TRIES = """\
import ctypes, os, sys
calls = {
    "socket": lambda: __import__("socket").socket(),
    "fork": lambda: os.fork(),
    "kill": lambda: os.kill(os.getppid(), 0),
    "home": lambda: open(os.path.expanduser("~/.profile")).read(),
    "write": lambda: open(sys.argv[2], "w"),
    "thread": lambda: __import__("_thread").start_new_thread(int, ()),
    "memory": lambda: bytearray(int(sys.argv[2])),
    "own": lambda: open(sys.argv[2]).read(),
    "clock": lambda: print(step_ns()),
}


def step_ns():
    import time

    seen = {time.process_time_ns() for _ in range(10_000)}
    return min(later - earlier for earlier, later in zip(sorted(seen), sorted(seen)[1:]))


calls[sys.argv[1]]()
print("done")
"""


def test_a_kernel_that_opens_a_socket_is_ended_with_its_function(patched: Callable) -> None:
    with pytest.raises(WrongVariant) as told:
        patched("opens-socket").run([ROW])
    assert told.value.variant == "opens-socket"
    head = str(told.value).splitlines()[0]
    assert "makes system call 41 of the machine's kernel, which is forbidden to it" in head
    assert "memmap_init_zone_device() (mm/mm_init.c:" in head


def test_a_kernel_that_reads_a_file_gets_none(patched: Callable) -> None:
    rig = patched("reads-file")
    samples, _ = rig.run([ROW])
    assert any(sample.subject == "reads-file" for sample in samples)
    # That it would get one unconfined is what makes this a test.
    free = replace(rig, program=replace(rig.program, confinement=None))
    with pytest.raises(WrongVariant, match="BUG at mm/mm_init.c"):
        free.run([ROW])


@pytest.fixture
def tried(tmp_path: Path) -> Callable[..., tuple[int, str, str]]:
    """Run a line of Python as confined as an emulated runner."""
    confinement = build_confinement(tmp_path, [])
    own = tmp_path / "own"
    own.mkdir()
    (own / "file").write_text("x")
    (own / "tries.py").write_text(TRIES)

    def run(*words: str) -> tuple[int, str, str]:
        argv = ("/usr/bin/python3", "-I", "-S", str(own / "tries.py"), *words)
        started = (*confinement.words(own, emulator=()), *argv)
        return finished(Command(started, own, 60.0))

    return run


@pytest.mark.parametrize("call", ["socket", "fork", "kill"])
def test_a_call_that_no_kernel_makes_ends_the_program(tried: Callable, call: str) -> None:
    code, said, _ = tried(call)
    assert (code in SIGSYS_CODES, said) == (True, "")


def test_files_that_are_not_its_own_are_refused(tried: Callable, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_text("x")
    for words in (("own", str(outside)), ("write", str(outside)), ("own", "/etc/passwd")):
        code, said, error = tried(*words)
        assert (code, said) == (1, "")
        assert "Permission denied" in error
    assert outside.read_text() == "x"


def test_threads_and_its_own_files_are_not(tried: Callable, tmp_path: Path) -> None:
    for words in (("thread",), ("own", str(tmp_path / "own/file"))):
        assert tried(*words)[:2] == (0, "done\n")


def test_more_memory_than_the_machine_has_is_refused(tried: Callable) -> None:
    code, said, error = tried("memory", str(1 << 46))
    assert (code, said) == (1, "")
    assert "MemoryError" in error


def test_the_clock_of_cpu_time_advances_by_less_than_10_us(tried: Callable) -> None:
    code, said, _ = tried("clock")
    assert code == 0
    assert int(said.split()[0]) < 10_000


def test_a_launch_tells_the_step_of_its_clock_of_cpu_time(patched: Callable) -> None:
    _, end = patched("reads-file").run([ROW])
    assert 0 < end.cpu_clock_step_ns < 10_000


def told_by(build: Path, script: str, *given: str) -> tuple[int, str, str]:
    """What a build's script comes to, confined as make is."""
    words = (*confine.words(build), "/usr/bin/python3", "-I", "-S", "-c", script, *given)
    return finished(Command(words, build, 60.0))


@pytest.mark.parametrize(
    "script",
    [
        "os.kill(int(sys.argv[1]), 0)",
        "signal.pthread_kill(threading.get_ident(), 0)",
        "os.setsid()",
        "os.setpgid(0, 0)",
    ],
)
def test_a_build_signals_nobody_and_stays_in_its_group(tmp_path: Path, script: str) -> None:
    imports = "import os, signal, sys, threading; "
    code, _, error = told_by(tmp_path, imports + script, str(os.getpid()))
    assert code == 1
    assert "Operation not permitted" in error


def test_a_build_gets_limits(tmp_path: Path) -> None:
    script = "from resource import *; print(*getrlimit(RLIMIT_CPU), *getrlimit(RLIMIT_DATA))"
    code, said, _ = told_by(tmp_path, script)
    assert code == 0
    assert all(int(limit) > 0 for limit in said.split())


def test_words_that_a_build_recorded_are_confined_when_they_are_used_again(tmp_path: Path) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    (root / "work").mkdir(parents=True)
    (root / ".rmap.o.cmd").write_text(f"savedcmd_mm/rmap.o := sh -c 'touch {outside}'\n")

    def again() -> bool:
        fault.compile_with_lines(root / "rmap.o", root, root / "work/0.o")
        return outside.exists()

    assert not again()
    # That it is made unconfined is what makes this a test.
    with building(confined=False):
        assert again()


def test_kbuild_writes_where_it_builds_and_has_no_network(
    kernel: Tree, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path / "written"
    monkeypatch.setenv("REAM_TEST_ELSEWHERE", str(elsewhere))
    patches = load_series(PATCHES / "kbuild-writes.patch").patches
    place = assemble(kernel, patches, cache=cache, fragments=[NATIVE_CONFIG], homes=[], step=print)
    told = place / BUILD / "mm/told"

    def said() -> str:
        told.unlink(missing_ok=True)
        finished(make(place, ["mm/mmzone.o"], deadline_s=600))
        return told.read_text()

    assert not {"wrote", "network"} & {*said().split()}
    assert "Operation not permitted" in told.read_text()
    assert not elsewhere.exists()
    # That it does both unconfined is what makes this a test.
    with building(confined=False):
        assert {"wrote", "network"} <= {*said().split()}
    assert elsewhere.exists()


def test_ccache_writes_into_the_store_and_nowhere_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tools = tmp_path / "bin"
    tools.mkdir()
    (tools / "ccache").write_text('#!/bin/sh\necho >"$CCACHE_DIR/entry" && exec "$@"\n')
    (tools / "ccache").chmod(0o755)
    (tmp_path / "one.c").write_text("int one = 1;\n")
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    # What confines is in the user's cache, which is another's from here on.
    with building(confined=True):
        confine.words()
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
        monkeypatch.setenv("TMPDIR", str(tmp_path))
        argv = (*confine.words(tmp_path), "ccache", "gcc", "-c", "one.c", "-o", "one.o")
    code, _, err = finished(Command(argv, tmp_path, 60, store.environment()))
    assert code == 0, err
    assert (tmp_path / "one.o").exists()
    assert (tmp_path / "cache/ream/objects/entry").exists()
