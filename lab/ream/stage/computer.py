# SPDX-License-Identifier: GPL-2.0-only
"""A computer in a process: it links whole folders of a kernel's objects, one program per variant.

A folder describes it. `objects` lists what is linked, `kernel` and `check` have the sources that
kbuild compiles beside the kernel, and `host` is the program around it. An ordinary native program
contains several kernels and hosts some functions of each (ream.stage.link); this one boots one
kernel.
"""

import hashlib
import json
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from typing import Any

from ream.command import Command, finished
from ream.errors import ReamError
from ream.kernel.arch import X86_64
from ream.kernel.build import BUILD, build_objects, options
from ream.kernel.cache import Step
from ream.kernel.probes import SUFFIX
from ream.kernel.series import Patch
from ream.kernel.source import Tree
from ream.kernel.uncompiled import naming_the_patch
from ream.kernel.variant import HOME, assemble, compiled_for
from ream.paths import KERNEL_CONFIG, KERNEL_MODULES, NATIVE
from ream.stage.confine import Confinement
from ream.stage.fault import pieces
from ream.stage.interrupts import without_interrupt_flag
from ream.stage.link import (
    ARCH_SIDE,
    COMPILER_FLAGS,
    FORBIDDEN_BYTES,
    HOST_HEADERS,
    LINK_FLAGS,
    check_alternatives,
    expose,
    map_of,
    run_tool,
    symbols_of,
)
from ream.stage.native import Counts

ARCH = X86_64.name
"""The only architecture whose MMU is modelled."""

KERNEL_SIDE = ("kernel", "check")
"""Folders of sources that kbuild compiles."""

SHARED_KERNEL_SIDE = (
    *(NATIVE / "host" / name for name in ("host.h", "plan.def")),
    NATIVE / "host" / "kernel" / "kernel.h",
    NATIVE / "host" / "optional" / "memmove.c",
    ARCH_SIDE / ARCH / "kernel",
)
"""Sources that are compiled into all hosted kernels."""

SHARED_HOST_SIDE = (
    NATIVE / "host" / "fault.c",
    NATIVE / "host" / "reach.c",
    ARCH_SIDE / ARCH / "alternatives.c",
    ARCH_SIDE / ARCH / "machine.c",
)
"""Parts of the program around other hosted kernels that this program shares."""

PROBES = (NATIVE / "host" / f"host{SUFFIX}", KERNEL_MODULES / "memmap" / f"page{SUFFIX}")

OF_THE_LAST_LINK = ("host_", "__start_runtime_", "__stop_runtime_")
"""Prefixes of symbols that the program around the kernel defines in the last link."""

SOURCES = (".c", ".h", ".def", ".lds", ".config")
"""Suffixes of a computer's own files, besides `objects`."""

LEFT_OUT = (".init.", ".exit.", ".ref.", ".altinstr")
"""Prefixes of sections whose code runs only at boot or never, or is only copied."""

_INCLUDED = re.compile(r'^#include "\.\./(\S+)\.c"$', re.MULTILINE)

RUN_S = 120.0
"""Time limit of a program; the longest take some seconds."""


@dataclass(frozen=True)
class Listed:
    """The contents of a file `objects`.

    folders: folders of which every object that kbuild makes is linked. exposed: static symbols that
    are made global, by object. as_needed: folders of which the linker takes only what is called.
    excepted: objects of either kind of folder that are left out. wrapped: functions that are
    replaced by one of ream's in calls from other objects.
    """

    folders: tuple[str, ...]
    excepted: frozenset[str]
    objects: tuple[str, ...]
    exposed: dict[str, tuple[str, ...]]
    as_needed: tuple[str, ...]
    wrapped: tuple[str, ...]


def listed(folder: Path, tree: Path) -> Listed:
    """Read a file `objects` for a tree; raises ReamError for an invalid line.

    An object marked `perhaps` is included if the tree has its source, and one marked `with` an
    option if the tree is configured with that option.
    """
    folders, objects, as_needed, wrapped = list[str](), list[str](), list[str](), list[str]()
    excepted, exposed = set[str](), dict[str, tuple[str, ...]]()
    for line in (folder / "objects").read_text(encoding="ascii").splitlines():
        match line.partition("#")[0].split():
            case []:
                pass
            case ["except", *names]:
                excepted.update(names)
            case ["expose", name, *symbols]:
                exposed[name] = tuple(symbols)
            case ["wrap", name]:
                wrapped.append(name)
            case ["as", "needed", name]:
                as_needed.append(name)
            case ["perhaps" | "with", *asked, name]:
                objects += [name] if _is_there(tree, asked, name) else []
            case [name] if name.endswith("/"):
                folders.append(name)
            case [name] if name.endswith(".o"):
                objects.append(name)
            case _:
                raise ReamError(f"{folder / 'objects'}: not understood: {line}")
    its = tuple(folders), frozenset(excepted), tuple(objects)
    return Listed(*its, exposed, tuple(as_needed), tuple(wrapped))


def _is_there(tree: Path, asked: Sequence[str], name: str) -> bool:
    """Whether a tree has the source of an object and is configured with all options asked for."""
    if not (tree / name).with_suffix(".c").exists():
        return False
    held = options((tree / BUILD / ".config").read_text(encoding="utf-8")) if asked else {}
    return all(held.get(one) == "y" for one in asked)


class Checks(Enum):
    """When all of memory is checked: never, after each step, after the last, or every eighth."""

    NEVER = 0
    EACH = 1
    LAST = 2
    SOME = 3


@dataclass(frozen=True)
class Computer:
    """A variant's linked computer: the program, and the names of its undefined symbols.

    tree: the variant's source. objects: the kernel's objects by name. boot: parameters of its boot.
    """

    program: Path
    forbidden: Path
    undefined: tuple[str, ...]
    tree: Path
    objects: Mapping[str, Path]
    confinement: Confinement | None = None
    boot: tuple[str, ...] = ()

    def report(
        self,
        lines: str,
        *,
        checks: Checks = Checks.EACH,
        deadline_s: float = RUN_S,
        ram: int | None = None,
        blocks: Path | None = None,
        only_measured: bool = False,
        counter: Counts | None = None,
        goes_on: bool = False,
    ) -> tuple[int, list[dict[str, Any]]]:
        """Run a program, given as lines for the computer; return its exit code and report.

        ram: descriptor of a memory file to use as RAM, whatever it contains; None: a new file,
        whose pages have to be allocated first. blocks: a file of ascending code addresses; the
        report's last line lists those that were executed, in the measured step if only_measured.
        counter: counts the measured step, under an emulator. goes_on: continue after an alarm; each
        rule then raises at most one. Raises ReamError if a line of the report is invalid, or if the
        program does not end in time.
        """
        with tempfile.NamedTemporaryFile("w", dir=self.program.parent, suffix=".lines") as file:
            file.write(lines)
            file.flush()
            words = [*self._confined(counter), *(counter.argv if counter else ())]
            words += [str(self.program), "--forbidden", str(self.forbidden)]
            words += ["--program", file.name, "--checks", f"{checks.value}"]
            words += ["--boot", " ".join(self.boot)] if self.boot else []
            words += ["--goes-on", "1"] if goes_on else []
            words += [] if ram is None else ["--ram", f"{ram}"]
            words += ["--blocks", str(blocks)] if blocks else []
            words += ["--measured", "1"] if only_measured else []
            place, passed = self.program.parent, () if ram is None else (ram,)
            command = Command(tuple(words), place, deadline_s, pass_fds=passed)
            code, said, wrong = finished(command)
        try:
            return code, [json.loads(line) for line in said.splitlines()]
        except ValueError as cause:
            raise ReamError(f"the computer ended with {code}: {said[-200:]} {wrong}") from cause

    def _confined(self, counter: Counts | None) -> tuple[str, ...]:
        if self.confinement is None:
            return ()
        loads = counter.loads if counter else None
        return self.confinement.words(self.program.parent, emulator=loads)


@dataclass(frozen=True)
class Parts:
    """The objects that computers of a variant are linked from, each with its own layout."""

    name: str
    tree: Path
    """The variant's source."""
    objects: tuple[Path, ...]
    archive: Path
    """Archive of objects of which the linker takes only what is called."""
    host: tuple[Path, ...]
    """The program around the kernel."""
    script: Path
    config_sha256: str
    of_kernel: Mapping[str, Path]
    """The objects of the kernel's own sources, by kbuild's name."""
    wrapped: tuple[str, ...] = ()
    """Functions that are replaced by one of ream's."""
    boot: tuple[str, ...] = ()
    """Parameters of the boot; see native/libmm/kernel/patched.c."""

    def link(
        self,
        work: Path,
        *,
        order: Sequence[int] | None = None,
        pad_bytes: int = 0,
        confinement: Confinement | None = None,
    ) -> Computer:
        """Link a computer into its own directory.

        order: the order of the objects; None: as listed. pad_bytes: the offset of writable data in
        a page. Raises ReamError if an alternative cannot be applied.
        """
        work.mkdir(parents=True, exist_ok=True)
        joined, kernel = work / "joined.o", work / "kernel.o"
        ordered = [self.objects[at] for at in order] if order else self.objects
        argv = ["ld", "-r", "-z", "noexecstack", "--no-warn-execstack"]
        argv += [f"--defsym=ream_pad={pad_bytes}", "-T", str(self.script)]
        argv += [f"--wrap={name}" for name in self.wrapped]
        argv += [f"-Map={map_of(joined)}", "-o", str(joined), *map(str, ordered)]
        run_tool([*argv, "--start-group", str(self.archive), "--end-group"], work)
        check_alternatives(self.name, joined, work)
        left = symbols_of(run_tool(["nm", "-u", str(joined)], work))
        undefined = tuple(name for name in left if not name.startswith(OF_THE_LAST_LINK))
        run_tool(["objcopy", "--wildcard", "--localize-symbol=*", str(joined), str(kernel)], work)
        without_interrupt_flag(kernel, kernel, with_counter=False)
        return self._program(kernel, undefined, work, confinement)

    def _program(
        self, kernel: Path, undefined: tuple[str, ...], work: Path, confinement: Confinement | None
    ) -> Computer:
        """Link a kernel with the program; each undefined symbol gets its own address."""
        places = {
            name: X86_64.forbidden_base + at * FORBIDDEN_BYTES for at, name in enumerate(undefined)
        }
        defines = work / "undefined.args"
        defines.write_text("".join(f"--defsym={name}={at:#x}\n" for name, at in places.items()))
        forbidden = work / "forbidden.txt"
        forbidden.write_text("".join(f"{at:x} {self.name} {it}\n" for it, at in places.items()))
        program = work / "computer"
        argv = ["gcc", *LINK_FLAGS, "-Wl,-z,norelro", f"-Wl,@{defines}"]
        argv += [f"-Wl,-Map={map_of(program)}", "-o", str(program)]
        run_tool([*argv, *map(str, self.host), str(kernel)], work)
        its = program, forbidden, undefined, self.tree, self.of_kernel
        return Computer(*its, confinement, self.boot)


def build_parts(
    tree: Tree,
    patches: Sequence[Patch],
    folder: Path,
    *,
    cache: Path,
    work: Path,
    step: Step,
) -> Parts:
    """Build a variant's objects, reusing those of a variant with fewer of its patches.

    folder: the computer's folder. work: a directory of this computer alone. Raises what assemble()
    and build_objects() raise.
    """
    place = assemble(
        tree,
        patches,
        cache=cache,
        fragments=[KERNEL_CONFIG / "native.config", *sorted(folder.glob("*.config"))],
        homes=_homes(folder),
        probes=(*PROBES, *sorted(folder.glob(f"*{SUFFIX}"))),
        step=step,
    )
    its = listed(folder, place)
    wanted = [*its.folders, *its.objects, *its.as_needed, f"{HOME}/"]
    with naming_the_patch(patches, place):
        named = compiled_for(tree, patches, folder.name)
        build_objects(place, wanted, step=step, named=named)
    step("linking")
    return replace(_parts(place, its, folder, work), boot=tree.setup.boot)


def kernel_texts(program: Path) -> Iterator[tuple[int, int, Path, str]]:
    """Yield the pieces of kernel code in a computer: start, end, object and section."""
    inner = list(pieces(map_of(program.parent / "joined.o").read_text()))
    for whole in pieces(map_of(program).read_text(errors="replace")):
        if whole.file.name != "kernel.o" or whole.section.startswith(LEFT_OUT):
            continue
        for piece in inner:
            if piece.into == whole.section and piece.bytes:
                start = whole.start + piece.start
                yield start, start + piece.bytes, piece.file, piece.section


def computer_files(folder: Path) -> Iterator[Path]:
    """Yield ream's files that become part of a computer or describe it."""
    yield from (path for path in sorted(folder.rglob("*")) if path.suffix in SOURCES)
    yield from (folder / "objects", KERNEL_CONFIG / "native.config", *SHARED_HOST_SIDE)
    for home in (*SHARED_KERNEL_SIDE, *HOST_HEADERS, ARCH_SIDE / ARCH):
        yield from [home] if home.is_file() else sorted(home.glob("*.[ch]"))


def _homes(folder: Path) -> tuple[Path, ...]:
    own = (folder / name for name in KERNEL_SIDE)
    shared = (*sorted(folder.glob("*.h")), *sorted(folder.glob("*.def")))
    return (*own, *shared, *SHARED_KERNEL_SIDE)


# --- Linking -------------------------------------------------------------------------------


def _parts(tree: Path, its: Listed, folder: Path, work: Path) -> Parts:
    work.mkdir(parents=True, exist_ok=True)
    build = tree / BUILD
    whole = [name for one in its.folders for name in _made_in(build, one)]
    ours = [f"{HOME}/{path.name}" for path in sorted((build / HOME).glob("*.o"))]
    names = (*ours, *(name for name in whole if name not in its.excepted), *its.objects)
    objects = [
        expose(work.name, build / name, its.exposed.get(name, ()), work, X86_64) for name in names
    ]
    archive = work / "as-needed.a"
    needed = sorted({it for one in its.as_needed for it in _made_in(build, one)} - its.excepted)
    run_tool(["ar", "cDrs", str(archive), *needed], build)
    script = folder / f"{folder.name}.lds"
    config = hashlib.sha256((build / ".config").read_bytes()).hexdigest()
    host = tuple(_host(folder, work))
    kernels = {name: build / name for name in (*names, *needed) if not name.startswith(HOME)}
    kernels |= {name: build / own for name, own in _included(folder)}
    linked = work.name, tree, tuple(objects), archive, host, script, config
    return Parts(*linked, kernels, its.wrapped)


def _included(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield objects whose sources a file of ream's includes to call their static functions."""
    for path in sorted(folder.glob("kernel/*.c")):
        for name in _INCLUDED.findall(path.read_text(encoding="ascii")):
            yield f"{name}.o", f"{HOME}/{path.stem}.o"


def _host(folder: Path, work: Path) -> list[Path]:
    """Compile the program around the kernel; it contains no path of the working directory."""
    headers = (folder, *HOST_HEADERS, ARCH_SIDE / ARCH)
    words = [
        "gcc",
        *COMPILER_FLAGS,
        f"-ffile-prefix-map={work}=.",
        *(f"-I{one}" for one in headers),
    ]
    sources = (*sorted((folder / "host").glob("*.c")), *SHARED_HOST_SIDE)

    def compiled(source: Path) -> Path:
        out = work / f"{source.parent.name}-{source.stem}.o"
        run_tool([*words, "-c", str(source), "-o", str(out)], work)
        return out

    with ThreadPoolExecutor() as at_once:
        return list(at_once.map(compiled, sources))


def _made_in(build: Path, folder: str) -> Iterator[str]:
    """Yield the objects that kbuild made in a folder and below, by the names in its archives."""
    archives = sorted({*(build / folder).rglob("built-in.a"), *(build / folder).rglob("lib.a")})
    found = set[str]()
    for archive in (one.relative_to(build) for one in archives):
        # Names in a thin archive begin at the build directory for members in other folders.
        for name in run_tool(["ar", "t", str(archive)], build).splitlines():
            found.add(name if (build / name).is_file() else str(archive.parent / name))
    yield from sorted(name for name in found if (build / name).is_file())
