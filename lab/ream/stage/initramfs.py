# SPDX-License-Identifier: GPL-2.0-only
"""Builds a guest's initramfs: PID 1, the modules that it loads, the programs that it runs."""

import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from types import MappingProxyType

from ream.command import Command, last_words, require, run, spawn, still_running
from ream.errors import ReamError
from ream.kernel import confine
from ream.kernel.arch import Arch
from ream.kernel.image import Image
from ream.paths import GUEST
from ream.stage.workload import compile_command

FLAGS = ("-s",)
"""Compiler flags of PID 1 besides those of all programs: it is stripped, as the guest, which may
be emulated, reads every byte of it."""
ARCHIVE_DEADLINE_S = 60.0
LDD_DEADLINE_S = 10.0

EMPTY_FOLDERS = ("dev", "proc", "run", "sys", "tmp")
"""Mount points for guest/init.c. Those within sysfs and devtmpfs exist after mounting."""

NOT_DYNAMIC = "not a dynamic executable"
"""ldd's error for a static program."""


@dataclass(frozen=True)
class ArchiveEntry:
    """One file of the guest; source: the host's file with its contents."""

    path: PurePosixPath
    source: Path
    mode: int = 0o755


def init_sources(*folders: Path) -> list[Path]:
    """Return the sources of PID 1: the common ones, and those of experiments in these folders."""
    parts = (folder / "guest.c" for folder in folders)
    return [*sorted(GUEST.glob("*.c")), *(part for part in parts if part.is_file())]


def build_init(work: Path, *folders: Path, arch: Arch | None = None) -> Path:
    """Compile PID 1 into work, for experiments in these folders; return the program.

    arch: as in compile_command(). Raises CannotRunHere without gcc, ReamError with the
    compiler's first error.
    """
    out = work / "init"
    sources = map(str, init_sources(*folders))
    run(compile_command(out, *FLAGS, f"-I{GUEST}", *sources, work=work, arch=arch))
    return out


def namespace_programs() -> dict[str, Path]:
    """Return the host's programs for pmem namespaces, by their path in the guest.

    Raises CannotRunHere if they are not installed.
    """
    return {f"/usr/bin/{name}": _installed(name) for name in ("ndctl", "daxctl")}


def guest_initramfs(
    image: Image,
    name: str,
    *,
    init: Path,
    work: Path,
    modules: Iterable[str] = (),
    programs: Mapping[str, Path] = MappingProxyType({}),
) -> Path:
    """Write NAME.cpio, the initramfs of a guest with this kernel, to work; return it.

    modules: names of modules; those that the kernel has are packed. Other arguments and errors are
    those of build_initramfs().
    """
    return build_initramfs(
        work / f"{name}.cpio",
        gen_init_cpio=image.gen_init_cpio,
        init=init,
        modules={one: image.modules[one] for one in modules if one in image.modules},
        programs=programs,
        work=work,
    )


def build_initramfs(
    to: Path,
    *,
    gen_init_cpio: Path,
    init: Path,
    modules: Mapping[str, Path],
    programs: Mapping[str, Path],
    work: Path,
) -> Path:
    """Write an uncompressed initramfs to `to`; return it. The same files give the same bytes.

    gen_init_cpio: the kernel's own usr/gen_init_cpio, as built. modules: .ko files by the name
    that the guest loads them by. programs: files by their absolute path in the guest; the shared
    libraries that a program needs go with it, at the host's own paths.
    work: a folder of the caller's; holds links to the sources afterwards.
    Raises CannotRunHere without ldd, ReamError naming a file that is not there, a library that
    is not found, or what gen_init_cpio objects to.
    """
    entries = [ArchiveEntry(PurePosixPath("/init"), init)]
    entries += [
        ArchiveEntry(PurePosixPath(f"/modules/{name}.ko"), path, 0o644)
        for name, path in modules.items()
    ]
    entries += [ArchiveEntry(PurePosixPath(name), path) for name, path in programs.items()]
    for library in sorted({path for program in programs.values() for path in libraries(program)}):
        entries.append(ArchiveEntry(PurePosixPath(library), library))
    for entry in entries:
        if not entry.source.is_file():
            raise ReamError(f"{entry.source}: no such file, and the guest needs it: {entry.path}")
    # gen_init_cpio splits words at white space, so sources are linked under simple names.
    sources = work / "initramfs.d"
    shutil.rmtree(sources, ignore_errors=True)
    sources.mkdir(parents=True)
    for number, entry in enumerate(entries):
        (sources / str(number)).symlink_to(entry.source.resolve())
    listing = sources / "list"
    listing.write_text("".join(f"{line}\n" for line in archive_list(entries)))
    partial = to.with_name(f"{to.name}.partial")
    try:
        _archive(gen_init_cpio, listing, partial)
        partial.replace(to)
    finally:
        partial.unlink(missing_ok=True)
    return to


def archive_list(entries: Iterable[ArchiveEntry]) -> tuple[str, ...]:
    """Return the lines for usr/gen_init_cpio; the source of entry n is named n.

    Format: usage() in usr/gen_init_cpio.c. Folders come before their contents, since the kernel
    creates none by itself. The console exists before devtmpfs, for init's first output.
    """
    entries = tuple(entries)
    folders = {PurePosixPath("/", name) for name in EMPTY_FOLDERS}
    folders |= {parent for entry in entries for parent in entry.path.parents}
    folders.discard(PurePosixPath("/"))
    return (
        *(f"dir {folder} 0755 0 0" for folder in sorted(folders)),
        "nod /dev/console 0600 0 0 c 5 1",
        *(
            f"file {entry.path} {number} {entry.mode:04o} 0 0"
            for number, entry in enumerate(entries)
        ),
    )


def libraries(program: Path) -> tuple[Path, ...]:
    """Return the shared libraries and the loader that a program needs, at the paths it looks in.

    Empty for a static program and for one that is not ELF, such as a script.
    Raises CannotRunHere without ldd, ReamError if one of them is not found.
    """
    try:
        said = run(Command(("ldd", str(program.absolute())), program.parent, LDD_DEADLINE_S))
    except ReamError as error:
        if NOT_DYNAMIC in str(error):
            return ()
        raise
    return parse_ldd(said, program)


def parse_ldd(said: str, program: Path) -> tuple[Path, ...]:
    """Return the paths in ldd's output: `NAME => PATH (ADDRESS)` or `PATH (ADDRESS)`."""
    paths = []
    for line in said.splitlines():
        name, arrow, place = line.strip().partition(" => ")
        if place == "not found":
            raise ReamError(f"{program}: needs {name}, which is not found; is it installed whole?")
        path = (place if arrow else name).rpartition(" (")[0]
        if path.startswith("/"):
            paths.append(Path(path))
    return tuple(paths)


def _installed(program: str) -> Path:
    require(program)
    return Path(str(shutil.which(program)))


def _archive(gen_init_cpio: Path, listing: Path, to: Path) -> None:
    """Pack the archive without command.run(), which treats a program's output as text."""
    # The program is built from a kernel source with a series, which is not trusted.
    program = (str(gen_init_cpio.absolute()), "-t", "0", listing.name)
    argv = (*confine.words(), *program)
    command = Command(argv, listing.parent, ARCHIVE_DEADLINE_S)
    with (
        to.open("wb") as archive,
        still_running(command),
        spawn(command, stdout=archive) as process,
    ):
        _, said = process.communicate(timeout=command.deadline_s)
    if process.returncode != 0 or said:
        words = last_words(said.decode(errors="replace"))
        raise ReamError(f"{gen_init_cpio}: exit {process.returncode}: {words}")
