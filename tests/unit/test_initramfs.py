# SPDX-License-Identifier: GPL-2.0-only
"""The list for gen_init_cpio, the libraries of programs, and PID 1 itself."""

import subprocess
from pathlib import Path, PurePosixPath

import pytest

from ream.errors import CannotRunHere, ReamError
from ream.paths import EXPERIMENTS
from ream.stage.initramfs import (
    ArchiveEntry,
    archive_list,
    build_init,
    build_initramfs,
    libraries,
    namespace_programs,
    parse_ldd,
)

LDD = """\
\tlinux-vdso.so.1 (0x00007fd49c762000)
\tlibndctl.so.6 => /lib/x86_64-linux-gnu/libndctl.so.6 (0x00007fd49c6ee000)
\t/lib64/ld-linux-x86-64.so.2 (0x00007fd49c764000)
"""

# Prints its list, as the real one prints its archive.
FAKE_GEN_INIT_CPIO = '#!/bin/sh\n[ "$1 $2" = "-t 0" ] || exit 1\ncat "$3"\n'


def executable(path: Path, text: str) -> Path:
    path.write_text(text)
    path.chmod(0o755)
    return path


@pytest.fixture
def gen_init_cpio(tmp_path: Path) -> Path:
    return executable(tmp_path / "gen_init_cpio", FAKE_GEN_INIT_CPIO)


@pytest.fixture
def init(tmp_path: Path) -> Path:
    return executable(tmp_path / "init", "#!/bin/sh\n")


def test_a_folder_comes_before_what_is_in_it() -> None:
    lines = archive_list([ArchiveEntry(PurePosixPath("/usr/bin/ndctl"), Path("anything"))])
    assert lines.index("dir /usr 0755 0 0") < lines.index("dir /usr/bin 0755 0 0")
    assert lines.index("dir /usr/bin 0755 0 0") < lines.index("file /usr/bin/ndctl 0 0755 0 0")
    assert lines.index("dir /dev 0755 0 0") < lines.index("nod /dev/console 0600 0 0 c 5 1")


def test_a_folder_is_made_once() -> None:
    lines = archive_list(ArchiveEntry(PurePosixPath(f"/usr/lib/{n}"), Path("x")) for n in "ab")
    assert len(lines) == len(set(lines))
    assert not any(line.startswith("dir / ") for line in lines)


def test_libraries_are_put_where_the_loader_looks_for_them() -> None:
    assert parse_ldd(LDD, Path("ndctl")) == (
        Path("/lib/x86_64-linux-gnu/libndctl.so.6"),
        Path("/lib64/ld-linux-x86-64.so.2"),
    )


def test_a_library_that_is_not_found_is_named_with_its_program() -> None:
    with pytest.raises(ReamError, match=r"ndctl: needs libndctl\.so\.6, which is not found"):
        parse_ldd("\tlibndctl.so.6 => not found\n", Path("ndctl"))


def test_a_static_program_needs_no_libraries(tmp_path: Path) -> None:
    (tmp_path / "empty.c").write_text("int main(void) { return 0; }\n")
    argv = ["gcc", "-static", "empty.c", "-o", "empty"]
    assert subprocess.run(argv, cwd=tmp_path, check=False).returncode == 0
    assert libraries(tmp_path / "empty") == ()


def test_a_script_needs_no_libraries(init: Path) -> None:
    assert libraries(init) == ()


def test_a_dynamic_program_brings_its_loader() -> None:
    assert any(path.name.startswith("ld-") for path in libraries(Path("/bin/ls")))


def test_absent_ndctl_names_the_way_out(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(CannotRunHere, match="ndctl: not installed; `make setup`"):
        namespace_programs()


def test_the_archive_holds_init_modules_and_programs(
    tmp_path: Path, gen_init_cpio: Path, init: Path
) -> None:
    module = tmp_path / "a module.ko"
    module.write_text("ELF")
    work = tmp_path / "work"
    to = build_initramfs(
        tmp_path / "initramfs",
        gen_init_cpio=gen_init_cpio,
        init=init,
        modules={"memmap": module},
        programs={"/tests/script": init},
        work=work,
    )
    files = [line.split() for line in to.read_text().splitlines() if line.startswith("file ")]
    held = {path: (work / "initramfs.d" / source).resolve() for _, path, source, *_ in files}
    assert held == {"/init": init, "/modules/memmap.ko": module, "/tests/script": init}


def test_the_same_files_give_the_same_archive_from_anywhere(
    tmp_path: Path, gen_init_cpio: Path, init: Path
) -> None:
    made = []
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        to = tmp_path / name / "initramfs"
        build_initramfs(
            to, gen_init_cpio=gen_init_cpio, init=init, modules={}, programs={}, work=to.parent
        )
        made.append(to.read_bytes())
    assert made[0] == made[1]


def test_a_file_that_is_not_there_is_named(tmp_path: Path, gen_init_cpio: Path) -> None:
    with pytest.raises(ReamError, match="nowhere: no such file, and the guest needs it: /init"):
        build_initramfs(
            tmp_path / "initramfs",
            gen_init_cpio=gen_init_cpio,
            init=tmp_path / "nowhere",
            modules={},
            programs={},
            work=tmp_path,
        )


def test_a_failed_archive_leaves_nothing_and_says_why(tmp_path: Path, init: Path) -> None:
    failing = executable(tmp_path / "failing", "#!/bin/sh\necho half\necho no room >&2\nexit 1\n")
    to = tmp_path / "initramfs.cpio"
    with pytest.raises(ReamError, match="exit 1: no room"):
        build_initramfs(
            to, gen_init_cpio=failing, init=init, modules={}, programs={}, work=tmp_path
        )
    assert not list(tmp_path.glob("*.cpio*"))


def test_pid_1_compiles_without_a_warning_and_is_static(tmp_path: Path) -> None:
    init = build_init(tmp_path, *EXPERIMENTS.glob("*"))
    assert init.stat().st_mode & 0o100
    assert libraries(init) == ()
