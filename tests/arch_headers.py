# SPDX-License-Identifier: GPL-2.0-only
"""The oracle's PTE layouts judged by the kernel's own headers, of every architecture.

For each one the headers of the tree are compiled by its compiler into a program (native/arch),
which runs under QEMU's emulation of a process and applies their functions to entries.
"""

import hashlib
import json
import random
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ream.command import Command, require, run
from ream.errors import ReamError, VerificationFailed
from ream.kernel.arch import Target
from ream.kernel.build import (
    CONFIGURE_S,
    PREPARE_S,
    VERSION_S,
    make,
    unmet_options,
)
from ream.kernel.cache import (
    LAYOUT,
    Step,
    appearing,
    disk_faults,
    locked,
    long_ago,
    need_space,
    prune,
    stamp_of,
    sweep,
    touch,
)
from ream.kernel.source import Tree
from ream.oracle import pte
from ream.oracle.pte import PteLayout
from ream.paths import NATIVE

FOLDER = NATIVE / "arch"
BUILD_BYTES = 100_000_000
"""Disk that one architecture takes while its programs are made; they themselves take 2 MB."""

COMPILE_S = 120.0
RUN_S = 60.0

NR_RANDOM = 100
"""Random entries per layout, beside all the edges; every one goes through each function."""

NR_SHOWN = 5
"""Differences that an error names: the first ones say it all."""

# --- What there is to judge --------------------------------------------------------------


@dataclass(frozen=True)
class Config:
    """A configuration of one architecture: what it asks for over allnoconfig."""

    name: str
    options: tuple[str, ...]

    @property
    def fragment(self) -> str:
        """Configuration fragment for kconfig."""
        return "".join(f"CONFIG_{option}\n" for option in ("EXPERT=y", *self.options))


@dataclass(frozen=True)
class Machine:
    """An architecture: what compiles for it, and what runs the result here."""

    target: Target
    configs: tuple[Config, ...]
    qemu: tuple[str, ...] = ()
    link: tuple[str, ...] = ()
    long_bits: int = 64
    strip: tuple[str, ...] = ()
    """Symbols to take from the kernel's object: what they claim clashes with libc."""

    @property
    def name(self) -> str:
        """kbuild's name of the architecture."""
        return self.target.arch

    @property
    def programs(self) -> tuple[str, ...]:
        """What has to be installed."""
        return (f"{self.target.cross}gcc", *self.qemu[:1])


@dataclass(frozen=True)
class Subject:
    """One layout, the configuration that has it, and whether its processor's feature is on."""

    layout: PteLayout
    machine: Machine
    config: str
    feature: bool = False

    @property
    def name(self) -> str:
        """For people and tests."""
        return f"{self.layout.name}{', feature' if self.feature else ''} of {self.config}"


_X86_64 = Machine(
    Target(),
    (
        Config(
            "x86_64",
            (
                *("64BIT=y", "PROC_FS=y", "CHECKPOINT_RESTORE=y", "MEM_SOFT_DIRTY=y"),
                *("USERFAULTFD=y", "PTE_MARKER_UFFD_WP=y", "X86_USER_SHADOW_STACK=y"),
                *("CPU_SUP_INTEL=y", "X86_INTEL_MEMORY_PROTECTION_KEYS=y"),
                "CPU_MITIGATIONS=n",  # they call what is not here
            ),
        ),
    ),
    # pte_mkwrite() shares its file with functions that need a whole kernel.
    link=("-Wl,--unresolved-symbols=ignore-all",),
)
# How kernels would pass floating point does not matter: they pass none.
_FLOAT_MISMATCH = ("-Wl,--no-warn-mismatch",)
_ARM = Machine(
    Target("arm", "arm-linux-gnueabihf-"),
    (
        Config("arm", ("MMU=y", "ARCH_MULTI_V7=y")),
        Config("arm-lpae", ("MMU=y", "ARCH_MULTI_V7=y", "ARM_LPAE=y")),
    ),
    qemu=("qemu-arm",),
    link=_FLOAT_MISMATCH,
    long_bits=32,
)
_ARM64 = Machine(
    Target("arm64", "aarch64-linux-gnu-"),
    (
        Config("arm64-4k", ("ARM64_4K_PAGES=y", "ARM64_VA_BITS_48=y")),
        Config("arm64-64k-lpa", ("ARM64_64K_PAGES=y", "ARM64_PAN=y", "ARM64_PA_BITS_52=y")),
        Config(
            "arm64-4k-lpa2",
            ("ARM64_4K_PAGES=y", "ARM64_VA_BITS_52=y", "ARM64_PA_BITS_52=y"),
        ),
        Config(
            "arm64-16k-lpa2",
            ("ARM64_16K_PAGES=y", "ARM64_VA_BITS_52=y", "ARM64_PA_BITS_52=y"),
        ),
    ),
    qemu=("qemu-aarch64",),
)
_RISCV = Machine(
    Target("riscv", "riscv64-linux-gnu-"),
    (Config("riscv64", ("NONPORTABLE=y", "ARCH_RV64I=y", "MMU=y")),),
    qemu=("qemu-riscv64",),
    link=_FLOAT_MISMATCH,
)
_POWERPC = Machine(
    Target("powerpc", "powerpc64le-linux-gnu-"),
    tuple(
        Config(
            f"book3s64-{size}k",
            ("PPC64=y", "PPC_BOOK3S_64=y", "CPU_LITTLE_ENDIAN=y", f"PPC_{size}K_PAGES=y"),
        )
        for size in (4, 64)
    ),
    qemu=("qemu-ppc64le",),
)
_S390 = Machine(
    Target("s390", "s390x-linux-gnu-"),
    (Config("s390x", ("MARCH_Z13=y",)),),
    # A base leaves the guest's address 0 free, where this architecture keeps its lowcore.
    qemu=("qemu-s390x", "-B", "0x10000000000"),
)
_SPARC64 = Machine(
    Target("sparc64", "sparc64-linux-gnu-"),
    (Config("sparc64", ("64BIT=y",)),),
    qemu=("qemu-sparc64",),
    link=(f"-Wl,-T,{FOLDER / 'sparc64.lds'}",),
    strip=("current_thread_info_reg",),  # register %g6
)

MACHINES: tuple[Machine, ...] = (_X86_64, _ARM, _ARM64, _RISCV, _POWERPC, _S390, _SPARC64)
"""All that can be compiled: Debian has no compiler for nios2."""

SUBJECTS: tuple[Subject, ...] = (
    Subject(pte.X86_64, _X86_64, "x86_64"),
    Subject(pte.X86_64, _X86_64, "x86_64", feature=True),
    Subject(pte.ARM, _ARM, "arm"),
    Subject(pte.ARM_LPAE, _ARM, "arm-lpae"),
    Subject(pte.ARM64_4K, _ARM64, "arm64-4k"),
    Subject(pte.ARM64_64K_LPA, _ARM64, "arm64-64k-lpa"),
    Subject(pte.ARM64_4K, _ARM64, "arm64-4k-lpa2"),
    Subject(pte.ARM64_4K_LPA2, _ARM64, "arm64-4k-lpa2", feature=True),
    Subject(pte.ARM64_16K, _ARM64, "arm64-16k-lpa2"),
    Subject(pte.ARM64_16K_LPA2, _ARM64, "arm64-16k-lpa2", feature=True),
    Subject(pte.RISCV64, _RISCV, "riscv64"),
    Subject(pte.BOOK3S64_4K, _POWERPC, "book3s64-4k"),
    Subject(pte.BOOK3S64_64K, _POWERPC, "book3s64-64k"),
    Subject(pte.S390X, _S390, "s390x", feature=True),
    Subject(pte.SPARC64_SUN4U, _SPARC64, "sparc64"),
    Subject(pte.SPARC64_SUN4V, _SPARC64, "sparc64", feature=True),
)

# --- Judging -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Vector:
    """A function of the headers, what it is applied to, and what the oracle says it gives."""

    op: str
    entry: int
    nr: int
    expected: int

    def __str__(self) -> str:
        return f"{self.op}({self.entry:#x}, {self.nr:#x})"


def judge(subject: Subject, tree: Tree, *, cache: Path, step: Step, seed: int = 0) -> int:
    """Compare a layout with what the tree's headers compute; return how many results agree.

    seed: of the random entries. Raises VerificationFailed with the first differences,
    CannotRunHere if a compiler or emulator is missing, ReamError with a tool's first error.
    """
    asked = vectors(subject, seed)
    given = apply(subject, asked, tree, cache=cache, step=step)
    wrong = [
        f"{subject.name}: {vector}: headers {value:#x}, oracle {vector.expected:#x}"
        for vector, value in zip(asked, given, strict=True)
        if value != vector.expected
    ]
    if wrong:
        more = [f"and {len(wrong) - NR_SHOWN} more"] if len(wrong) > NR_SHOWN else []
        raise VerificationFailed("\n".join(wrong[:NR_SHOWN] + more))
    return len(asked)


def missing(machine: Machine) -> tuple[str, ...]:
    """What this system lacks of what builds and runs a machine's programs."""
    return tuple(program for program in machine.programs if shutil.which(program) is None)


def vectors(subject: Subject, seed: int) -> tuple[Vector, ...]:
    """Every edge of a layout and random entries, with what the oracle says.

    What it refuses is left out: there the headers compute something, but no entry.
    """
    rng = random.Random(seed)
    return tuple(_facts(subject.layout)) + tuple(
        vector
        for pfn, prot in _pages(subject.layout, rng)
        for vector in _of_page(subject, pfn, prot)
    )


def _facts(layout: PteLayout) -> Iterator[Vector]:
    yield Vector("word_bits", 0, 0, layout.word_bits)
    yield Vector("page_shift", 0, 0, layout.page_shift)
    if layout.advances_by_adding is not None and not _is_arm64(layout):
        yield Vector("pfn_pte_shift", 0, 0, layout.advances_by_adding)
    yield Vector("none", layout.empty, 0, 1)
    yield Vector("decode", layout.empty, 0, 0)


def _is_arm64(layout: PteLayout) -> bool:
    """It never adds, whatever its configuration, and so names no PFN_PTE_SHIFT."""
    return layout.name.startswith("arm64")


def _pages(layout: PteLayout, rng: random.Random) -> Iterator[tuple[int, int]]:
    """PFNs with protections: every edge of the fields with all and no attributes, and random.

    None is of a group: no processor here has such, and headers then ignore the bit.
    """
    attributes = layout.attributes & ~layout.group
    last = (1 << layout.nr_pfn_bits) - 1
    steps = (*range(layout.nr_pfn_bits + 1), *(piece.pfn_bit for piece in layout.pieces))
    edges = {pfn for bit in steps for pfn in ((1 << bit) - 1, 1 << bit, last ^ (1 << bit) - 1)}
    fixed = (0, attributes, rng.getrandbits(64) & attributes)
    for pfn in sorted(pfn for pfn in edges if pfn <= last):
        for prot in fixed:
            yield pfn, prot
    bits = [bit for bit in range(layout.word_bits) if attributes >> bit & 1]
    for bit in bits:
        yield rng.randrange(last + 1), 1 << bit
    for _ in range(NR_RANDOM):
        # As many small PFNs as large ones.
        pfn = rng.getrandbits(rng.randrange(1, layout.nr_pfn_bits + 1))
        yield pfn, rng.getrandbits(64) & attributes


def _of_page(subject: Subject, pfn: int, prot: int) -> Iterator[Vector]:
    layout = subject.layout
    try:
        entry = layout.encode(pfn, prot)
        yield Vector("encode", prot, pfn, entry)
    except ValueError:
        return
    # A table's entry may lack what a new one always has, as s390's that is old.
    worn = entry & ~layout.attributes | prot
    for one in {entry, worn} - {0}:
        yield from _of_entry(subject, one)
        if layout.name == pte.X86_64.name:
            yield from _of_x86(one, subject.feature)


def _of_entry(subject: Subject, entry: int) -> Iterator[Vector]:
    layout = subject.layout
    yield Vector("decode", entry, 0, layout.decode(entry))
    raw = entry.to_bytes(layout.word_bits // 8, layout.stored)
    yield Vector("stored", entry, 0, int.from_bytes(raw, "little"))
    room = (1 << layout.nr_pfn_bits) - 1 - layout.decode(entry)
    # The headers shift it in a long: on 32 bits some distances between entries are too far.
    farthest = (1 << subject.machine.long_bits - layout.page_shift) - 1
    for nr in {0, 1, 511, 1 << 20, room, *_to_edges(layout, entry)}:
        if nr > farthest:
            continue
        try:
            yield Vector("advance", entry, nr, layout.advance(entry, nr))
            if nr == 1:
                yield Vector("next", entry, 0, layout.advance(entry, 1))
        except ValueError:
            continue


def _to_edges(layout: PteLayout, entry: int) -> Iterator[int]:
    """How far it is to where one piece of the PFN carries into the next."""
    for piece in layout.pieces[1:]:
        yield -layout.decode(entry) % (1 << piece.pfn_bit)


_X86_TESTS = ("none", "present", "young", "dirty", "special", "uffd_wp", "soft_dirty")
_X86_CHANGES = (
    *("wrprotect", "mkclean", "mkold", "mkdirty"),
    *("clear_uffd_wp", "mkuffd_wp", "clear_soft_dirty"),
)


def _of_x86(entry: int, shadow_stack: bool) -> Iterator[Vector]:
    for name in (*_X86_TESTS, *_X86_CHANGES):
        yield Vector(name, entry, 0, int(getattr(pte, name)(entry)))
    yield Vector("write", entry, 0, int(pte.write(entry, shadow_stack=shadow_stack)))
    for is_stack in (False, True):
        expected = pte.mkwrite(entry, shadow_stack=is_stack)
        yield Vector("mkwrite", entry, int(is_stack), expected)
    kind, offset = entry >> 59, entry & (1 << 50) - 1
    yield Vector("swap_entry", kind, offset, pte.swap_entry(kind, offset))


def apply(
    subject: Subject, asked: Sequence[Vector], tree: Tree, *, cache: Path, step: Step
) -> tuple[int, ...]:
    """What the tree's headers compute for each vector; expectations are not looked at.

    Raises as `judge` does, but for VerificationFailed.
    """
    program = build(subject.machine, tree, cache=cache, step=step)[subject.config]
    with tempfile.TemporaryDirectory() as scratch:
        file = Path(scratch) / "vectors"
        file.write_text("".join(f"{one.op} {one.entry:x} {one.nr:x}\n" for one in asked))
        feature = ("feature",) if subject.feature else ()
        argv = (*subject.machine.qemu, str(program), str(file), *feature)
        said = run(Command(argv, program.parent, RUN_S)).splitlines()
    if len(said) != len(asked):
        raise ReamError(f"{subject.name}: {len(asked)} vectors, but {len(said)} results")
    return tuple(int(line, 16) for line in said)


# --- Building ----------------------------------------------------------------------------


def build(machine: Machine, tree: Tree, *, cache: Path, step: Step) -> Mapping[str, Path]:
    """A program for each configuration of a machine, by its name; from the cache if there.

    They are made one after the other in one build directory: kbuild's own tools, which take
    longest, then are compiled once. Raises CannotRunHere if a compiler or emulator is missing,
    ReamError with a tool's first error.
    """
    for program in machine.programs:
        require(program)
    cache = cache.resolve()
    entry = cache / "arch" / _key(machine, tree)
    with disk_faults(cache, "building programs of an architecture"), locked(entry, step):
        if stamp_of(entry) is not None:
            touch(entry)
        else:
            sweep(entry.parent, step)
            prune(entry.parent, unused_since=long_ago())
            need_space(entry.parent, BUILD_BYTES, f"a build for {machine.name}")
            stamp = {"machine": machine.name, "tree": tree.label}
            with appearing(entry, lambda: stamp) as partial:
                for config in machine.configs:
                    step(f"building with the headers of {config.name}")
                    _build_one(machine, config, tree, partial)
                shutil.rmtree(partial / "build")
                shutil.rmtree(partial / "ream")
    return {config.name: entry / config.name for config in machine.configs}


def _build_one(machine: Machine, config: Config, tree: Tree, place: Path) -> None:
    build_dir, home, fragment = place / "build", place / "ream", place / "fragment"
    build_dir.mkdir(exist_ok=True)
    shutil.rmtree(home, ignore_errors=True)
    shutil.copytree(FOLDER, home)
    fragment.write_text(config.fragment)

    def kbuild(*words: str, deadline_s: float) -> None:
        run(make(tree.path, words, deadline_s=deadline_s, out=build_dir, target=machine.target))

    kbuild("allnoconfig", f"KCONFIG_ALLCONFIG={fragment}", deadline_s=CONFIGURE_S)
    if unmet := unmet_options(config.fragment, (build_dir / ".config").read_text()):
        raise ReamError(f"{config.name}: not configured as asked:\n" + "\n".join(unmet))
    # The headers are then generated; the rest of `prepare` is objtool and vdso.
    kbuild("prepare0", deadline_s=PREPARE_S)
    kbuild(f"KBUILD_EXTMOD={home}", "glue.o", deadline_s=COMPILE_S)
    fragment.unlink()
    cross, glue = machine.target.cross, home / "glue.o"
    for symbol in machine.strip:
        run(Command((f"{cross}objcopy", f"--strip-symbol={symbol}", str(glue)), place, COMPILE_S))
    flags = ("-std=gnu11", "-O2", "-Wall", "-static", "-no-pie", "-Wl,-z,noexecstack")
    sources = (str(FOLDER / "main.c"), str(glue))
    argv = (f"{cross}gcc", *flags, *machine.link, *sources, "-o", str(place / config.name))
    run(Command(argv, place, COMPILE_S))


def _key(machine: Machine, tree: Tree) -> str:
    """All that its programs are made of."""
    gcc = f"{machine.target.cross}gcc"
    version = run(Command((gcc, "--version"), Path("/"), VERSION_S)).splitlines()[0]
    ours = [(path.name, path.read_text()) for path in sorted(FOLDER.iterdir())]
    how = [(config.name, config.fragment) for config in machine.configs]
    content = [
        LAYOUT,
        tree.key,
        gcc,
        version,
        ours,
        how,
        [Path(word).name for word in machine.link],
    ]
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()
