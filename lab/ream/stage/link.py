# SPDX-License-Identifier: GPL-2.0-only
"""Links kernel objects into a plain program: one relocatable object per variant, then the program.

Every variant has its own copy of everything. Its symbols are made local, so that several copies fit
into one program. An undefined symbol is either one of the few functions of native/host/host.h, or
gets an address where nothing is mapped, so that reaching it ends the run with the symbol's name.
"""

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from ream.command import Command, run
from ream.errors import ReamError
from ream.kernel.arch import X86_64, Arch
from ream.kernel.build import compiler_version
from ream.kernel.cache import Step, appearing, disk_faults, locked, long_ago, prune, stamp_of, touch
from ream.paths import NATIVE
from ream.progress import counting
from ream.stage.confine import Confinement
from ream.stage.interrupts import without_interrupt_flag

HOST_FUNCTIONS = frozenset(
    f"host_{name}"
    for name in (
        *("alloc", "cancel", "drain", "free", "note_invalidations", "now_ns", "patch", "say"),
        *("sleep", "sleep_for", "submit", "wake", "withdraw", "yield"),
    )
)
"""Functions that the program provides to variants; see native/host/host.h."""

FORBIDDEN_BYTES = 4096
"""Address space of each undefined symbol, so that access to a variable's member faults, too."""

WRAP = "__wrap_"
"""Prefix of functions in glue.c that are called instead of a kernel's function; see ld(1)."""

COMPILER_FLAGS = (
    *("-std=gnu11", "-O2", "-g", "-fno-pie", "-pthread", "-Wall", "-Wextra", "-Wshadow"),
    # A fill is a short loop of stores. On some CPUs its alignment changes its time by a quarter.
    *("-falign-functions=64", "-falign-loops=64"),
)
LINKER_SCRIPT = NATIVE / "host" / "variant.lds"
ARCH_SIDE = NATIVE / "host" / "arch"
"""Folders with the code of each architecture: for the program and, in `kernel`, for kbuild."""
LINK_FLAGS = ("-static", "-no-pie", "-pthread", "-Wl,-z,noexecstack,--no-warn-execstack")
DEADLINE_S = 120.0
RELATIVE_BRANCHES = {0xE8, 0xE9}


@dataclass(frozen=True)
class Kernel:
    """One variant's objects and what they leave undefined."""

    name: str
    objects: tuple[Path, ...]
    """The objects as kbuild made them."""
    linked: tuple[Path, ...]
    """The objects as linked. Those with exposed functions or replaced instructions are copies."""
    undefined: tuple[str, ...]
    wrapped: tuple[str, ...]
    """Functions that are replaced by one in another object."""
    arch: Arch = X86_64


@dataclass(frozen=True)
class Program:
    """A linked runner: its kernels in link order, and the addresses of undefined symbols."""

    path: Path
    order: tuple[str, ...]
    forbidden: Path
    kernels: tuple[Kernel, ...] = ()
    trees: tuple[int, ...] = ()
    """The number of each kernel's kind; empty if there is only one."""
    nr_trees: int = 1
    """Number of kinds of kernels in the whole plan; a program may lack some."""
    confinement: Confinement | None = None
    """How its runners are confined; None: they are not."""
    arch: Arch = X86_64
    emulator: tuple[str, ...] = ()
    """The emulator's command line before its own, if this machine has another architecture."""


def map_of(linked: Path) -> Path:
    """Return the path of a linked file's map."""
    return linked.with_name(f"{linked.name}.map")


def run_tool(argv: Sequence[str], cwd: Path) -> str:
    """Run one of the compiler's tools; return its output. Raises what ream.command.run() does."""
    return run(Command(tuple(argv), cwd, DEADLINE_S))


def linker_scripts(arch: Arch) -> tuple[Path, ...]:
    """Return the linker script of a variant's objects, followed by those that it includes."""
    own = ARCH_SIDE / arch.name / LINKER_SCRIPT.name
    return (own, LINKER_SCRIPT) if own.exists() else (LINKER_SCRIPT,)


def _relocatable(
    objects: Sequence[Path],
    out: Path,
    *,
    arch: Arch,
    wrapped: Sequence[str],
    pad_bytes: int,
    addresses: Mapping[str, int],
) -> None:
    """Link objects into one; calls of each wrapped NAME go to __wrap_NAME."""
    arguments = out.with_suffix(".args")
    arguments.write_text(
        "".join(f"--wrap={name}\n" for name in wrapped)
        + "".join(f"--defsym={name}={address:#x}\n" for name, address in addresses.items())
    )
    run_tool(
        [arch.tool("ld"), "-r", "-z", "noexecstack", "--no-warn-execstack"]
        + [f"--defsym=ream_pad={pad_bytes}", f"-L{LINKER_SCRIPT.parent}"]
        + [
            "-T",
            str(linker_scripts(arch)[0]),
            f"@{arguments}",
            "-o",
            str(out),
            f"-Map={map_of(out)}",
        ]
        + [str(path) for path in objects],
        out.parent,
    )


def symbols_of(nm: str) -> tuple[str, ...]:
    """Return the symbols in the output of nm(1), in order."""
    return tuple(sorted({line.split()[-1] for line in nm.splitlines() if line.strip()}))


def examine_kernel(
    name: str,
    objects: Sequence[Path],
    work: Path,
    *,
    exposed: Mapping[Path, Sequence[str]] = MappingProxyType({}),
    interrupts: bool = True,
    arch: Arch = X86_64,
) -> Kernel:
    """Find a variant's undefined symbols, and check that its alternatives can be applied.

    exposed: static functions and variables that glue.c uses, by object. They are made global before
    the link; NAME? if one may be missing. interrupts: whether cli and sti are kept.
    Raises ReamError if another one is missing (it may be inlined), or if a replacement has an
    operand relative to its own address that is not a plain call or jump, which would be patched
    wrongly.
    """
    linked = tuple(expose(name, path, exposed.get(path, ()), work, arch) for path in objects)
    if not interrupts and arch == X86_64:
        with ThreadPoolExecutor() as at_once:
            linked = tuple(at_once.map(lambda path: _without_interrupts(name, path, work), linked))
    probe = work / f"{name}.probe.o"
    defined = symbols_of(
        run_tool([arch.tool("nm"), "-g", "--defined-only", *map(str, linked)], work)
    )
    wrapped = tuple(n.removeprefix(WRAP) for n in defined if n.startswith(WRAP))
    _relocatable(linked, probe, arch=arch, wrapped=wrapped, pad_bytes=0, addresses={})
    undefined = tuple(
        n for n in symbols_of(run_tool([arch.tool("nm"), "-u", str(probe)], work)) if n
    )
    if arch == X86_64:
        check_alternatives(name, probe, work)
    undefined = tuple(n for n in undefined if n not in HOST_FUNCTIONS)
    return Kernel(name, tuple(objects), linked, undefined, wrapped, arch)


def expose(variant: str, path: Path, symbols: Sequence[str], work: Path, arch: Arch) -> Path:
    """Return a copy of an object with these symbols global; the object itself if there are none."""
    if not symbols:
        return path
    defined = set(symbols_of(run_tool([arch.tool("nm"), "--defined-only", str(path)], work)))
    names = [name.removesuffix("?") for name in symbols]
    for name in symbols:
        if name not in defined and not name.endswith("?"):
            raise ReamError(
                f"{variant}: {path.name} has no {name} to make global: it was renamed or"
                " inlined; see the experiment's file `objects`"
            )
    out = work / f"{variant}.{path.name}"
    changes = [f"--globalize-symbol={name}" for name in names if name in defined]
    run_tool([arch.tool("objcopy"), *changes, str(path), str(out)], work)
    return out


def _without_interrupts(variant: str, path: Path, work: Path) -> Path:
    """Return a copy of an object without cli and sti; the object itself if it has none."""
    copy = work / f"{variant}.without.{path.name}"
    return copy if without_interrupt_flag(path, copy) else path


def check_alternatives(name: str, probe: Path, work: Path) -> None:
    """Raise ReamError for an alternative that native/host/arch/x86_64 cannot apply."""
    code = work / f"{name}.altinstr"
    section = ".altinstr_replacement"
    run_tool(["objcopy", "-O", "binary", f"--only-section={section}", str(probe), str(code)], work)
    replacement = code.read_bytes()
    in_section = False
    for line in run_tool(["readelf", "-rW", str(probe)], work).splitlines():
        if line.startswith("Relocation section"):
            in_section = f"'.rela{section}'" in line
        elif in_section and (found := re.match(r"([0-9a-f]{16})\s", line)):
            offset = int(found[1], 16)
            if offset < 1 or replacement[offset - 1] not in RELATIVE_BRANCHES:
                raise ReamError(
                    f"{name}: the alternative at {section}+{offset:#x} is not a plain call or jump;"
                    " native/host/arch/x86_64/alternatives.c cannot apply it"
                )


HOST_HEADERS = (NATIVE / "host", NATIVE / "host" / "optional")
"""Folders of headers of the program around the kernels; the second serves both sides."""


def is_kernel_side(source: Path) -> bool:
    """Whether kbuild compiles this file of an experiment's folder beside the kernel's files."""
    return source.name == "glue.c" or source.name.startswith("kernel_")


def host_headers(arch: Arch = X86_64) -> tuple[Path, ...]:
    """Return the folders of headers of the program around the kernels."""
    return (*HOST_HEADERS, ARCH_SIDE / arch.name)


def host_sources(folder: Path, arch: Arch = X86_64) -> list[Path]:
    """Return the sources of the program around the kernels; their headers are beside them."""
    ours = (path for path in sorted(folder.glob("*.c")) if not is_kernel_side(path))
    homes = (NATIVE / "host", ARCH_SIDE / arch.name)
    return [*(path for home in homes for path in sorted(home.glob("*.c"))), *ours]


def host_files(folder: Path, arch: Arch = X86_64) -> list[Path]:
    """Return all files that the program around the kernels may contain, except system headers."""
    homes = (NATIVE / "host", ARCH_SIDE / arch.name, folder)
    found = {path for home in homes for path in home.rglob("*")}
    return sorted(path for path in found if path.suffix in (".c", ".h", ".def") and path.is_file())


def build_host(folder: Path, *, cache: Path, step: Step, arch: Arch = X86_64) -> tuple[Path, ...]:
    """Compile the program around the kernels: native/host, and the experiment's own folder.

    Once for each content of its files: the objects stay in the cache.
    """
    cc = (arch.tool("gcc"), *COMPILER_FLAGS)
    words = (*cc, *(f"-I{home}" for home in (*host_headers(arch), folder)))
    sources = host_sources(folder, arch)
    digest = hashlib.sha256("\0".join((compiler_version(arch=arch), *words)).encode())
    for path in host_files(folder, arch):
        digest.update(f"{path}\0{hashlib.sha256(path.read_bytes()).hexdigest()}".encode())
    entry = cache / "host" / digest.hexdigest()

    def compiled(source: Path, place: Path) -> None:
        out = place / _object_of(source)
        run_tool([*words, "-c", str(source), "-o", str(out)], place)

    with disk_faults(cache, "compiling the program around the kernels"), locked(entry, step):
        if stamp_of(entry) is None:
            prune(entry.parent, unused_since=long_ago())
            doing = f"compiling the program around the kernels of {folder.name}"
            with (
                appearing(entry, dict) as place,
                counting(step, doing, "object", lambda: len(sources)) as done,
                ThreadPoolExecutor() as at_once,
            ):
                for _ in at_once.map(lambda source: compiled(source, place), sources):
                    done()
        touch(entry)
    return tuple(entry / _object_of(source) for source in sources)


def _object_of(source: Path) -> str:
    return f"{source.parent.name}-{source.stem}.o"


def _isolate(kernel: Kernel, out: Path, *, pad_bytes: int, addresses: Mapping[str, int]) -> None:
    """Link a variant's copy with all symbols local, and undefined ones at these addresses."""
    tool, late = kernel.arch.tool, kernel.arch.defines_late
    _relocatable(
        kernel.linked,
        out,
        arch=kernel.arch,
        wrapped=kernel.wrapped,
        pad_bytes=pad_bytes,
        addresses={} if late else addresses,
    )
    left = {_late_name(kernel, name) for name in addresses} if late else set()
    if late:
        renamed = out.with_suffix(".renamed")
        renamed.write_text("".join(f"{one} {_late_name(kernel, one)}\n" for one in addresses))
        run_tool([tool("objcopy"), f"--redefine-syms={renamed}", str(out)], out.parent)
    # Local symbols of several copies do not clash, nor do libc's functions with the kernel's.
    run_tool([tool("objcopy"), "--wildcard", "--localize-symbol=*", str(out)], out.parent)
    exported = symbols_of(run_tool([tool("nm"), "-g", "--defined-only", str(out)], out.parent))
    undefined = set(symbols_of(run_tool([tool("nm"), "-u", str(out)], out.parent)))
    missing = undefined - HOST_FUNCTIONS - left
    if exported or missing:  # objcopy does not report patterns without a match
        raise ReamError(f"{kernel.name}: still global {exported}, undefined {sorted(missing)}")


def _late_name(kernel: Kernel, symbol: str) -> str:
    """Return the name of a variant's undefined symbol in the last link."""
    return f"ream.{kernel.name.encode().hex()}.{symbol}"  # ld parses a hyphen as a minus


def link_program(
    kernels: Iterable[Kernel],
    host: Sequence[Path],
    work: Path,
    *,
    pad_bytes: int,
    arch: Arch = X86_64,
) -> Program:
    """Link a launch's program: the kernels in this order, their data at pad_bytes in a page."""
    work.mkdir(parents=True, exist_ok=True)
    held = tuple(kernels)
    undefined = [(kernel, symbol) for kernel in held for symbol in kernel.undefined]
    places = {
        (kernel.name, symbol): arch.forbidden_base + at * FORBIDDEN_BYTES
        for at, (kernel, symbol) in enumerate(undefined)
    }

    def isolated(kernel: Kernel) -> Path:
        copy = work / f"{kernel.name}.o"
        addresses = {symbol: places[kernel.name, symbol] for symbol in kernel.undefined}
        _isolate(kernel, copy, pad_bytes=pad_bytes, addresses=addresses)
        return copy

    with ThreadPoolExecutor() as at_once:
        copies = list(at_once.map(isolated, held))
    forbidden = work / "forbidden.txt"
    forbidden.write_text("".join(f"{at:x} {name} {its}\n" for (name, its), at in places.items()))
    late = work / "late.args"
    late.write_text(
        "".join(
            f"--defsym={_late_name(kernel, symbol)}={places[kernel.name, symbol]:#x}\n"
            for kernel, symbol in undefined
            if arch.defines_late
        )
    )
    program = work / "runner"
    run_tool(
        [arch.tool("gcc"), *LINK_FLAGS, *arch.link_flags, f"-Wl,@{late}"]
        + [f"-Wl,-Map={map_of(program)}", "-o", str(program)]
        + [str(path) for path in (*host, *copies)],
        work,
    )
    return Program(program, tuple(kernel.name for kernel in held), forbidden, held, arch=arch)
