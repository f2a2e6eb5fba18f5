# SPDX-License-Identifier: GPL-2.0-only
"""Architectures of hosted kernels: how to compile for them, and how to run the result."""

import platform
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from ream.errors import BadUsage, CannotRunHere
from ream.nearest import hint


@dataclass(frozen=True)
class Target:
    """The target of a kernel build. arch: kbuild's ARCH. cross: the prefix of the tools' names."""

    arch: str = "x86_64"
    cross: str = ""


@dataclass(frozen=True, eq=False)
class Arch:
    """An architecture. There is one object for each."""

    name: str
    """The value of kbuild's ARCH."""
    folder: str
    """The folder of its code in the kernel, below arch/."""
    machine: str
    """The machine name that `uname -m` prints."""
    cross: str
    """The prefix of the tools' names on machines of other architectures."""
    emulator: str
    image: str
    """The bootable kernel: a target of kbuild, and the name of a file in its folder boot/."""
    cpus: Mapping[str, str]
    """The emulator's CPU models for counting, by name; the first is the default."""
    reached_twice: str | None = None
    """A folder of objects that kbuild reaches in two ways, see `plan_objects`."""
    forbidden_base: int = 0x60000000
    """Address of undefined symbols in programs: within the range of calls, and never mapped."""
    link_flags: tuple[str, ...] = ()
    """Additional linker flags of programs."""
    defines_late: bool = False
    """Whether undefined symbols get addresses only in the last link, because ld 2.40 for arm64
    crashes on calls of local absolute symbols."""

    @property
    def is_here(self) -> bool:
        """Whether this machine has this architecture."""
        return platform.machine() == self.machine

    @property
    def target(self) -> Target:
        """The target for kbuild on this machine."""
        return Target(self.name, "" if self.is_here else self.cross)

    def tool(self, name: str) -> str:
        """Return the name of a program of the tool chain."""
        return f"{self.target.cross}{name}"

    @property
    def default_cpu(self) -> str:
        """The name of the default CPU for counting."""
        return next(iter(self.cpus))

    def cpu_model(self, name: str | None) -> str:
        """Return the emulator's model of a CPU; raises BadUsage if there is none of that name."""
        if name is None:
            return self.cpus[self.default_cpu]
        if name not in self.cpus:
            raise BadUsage(
                f"--cpu {name}: {self.name} has {', '.join(self.cpus)}{hint(name, self.cpus)}"
            )
        return self.cpus[name]

    def emulated(self, cpu: str | None) -> tuple[str, ...]:
        """Return the command line before a program that runs it on the CPU of this name.

        Alternatives are then the same on every machine. Raises BadUsage as `cpu_model` does.
        """
        return (self.emulator, "-cpu", self.cpu_model(cpu))

    def require_tools(self) -> None:
        """Raise CannotRunHere if programs for it cannot be made or run here."""
        wanted = (self.tool("gcc"), *(() if self.is_here else (self.emulator,)))
        if lacking := [name for name in wanted if shutil.which(name) is None]:
            raise CannotRunHere(
                f"{self.name}: {', '.join(lacking)}: not installed; `make setup` installs what ream"
                " drives"
            )


def _cpu(*words: str) -> str:
    return ",".join(words)


X86_64 = Arch(
    name="x86_64",
    folder="x86",
    machine="x86_64",
    cross="x86_64-linux-gnu-",
    emulator="qemu-x86_64",
    image="bzImage",
    # Without ERMS and FSRM the kernel copies with `rep movsq`, which counts once for each word,
    # separately from other instructions.
    cpus=MappingProxyType(
        {
            "qemu64": _cpu(
                *("qemu64", "enforce"),
                *("+popcnt", "+sse4.1", "+sse4.2", "+ssse3", "+bmi1", "+bmi2"),
                *("+clflushopt", "+clwb", "-erms", "-fsrm"),
            )
        }
    ),
    reached_twice="arch/x86/lib/",
)
ARM64 = Arch(
    name="arm64",
    folder="arm64",
    machine="aarch64",
    cross="aarch64-linux-gnu-",
    emulator="qemu-aarch64",
    image="Image",
    # The first two have single atomic instructions, the last has loops of exclusive accesses.
    cpus=MappingProxyType({name: name for name in ("neoverse-n1", "max", "cortex-a72")}),
    reached_twice="arch/arm64/lib/",
    # A call reaches 128 MiB. The addresses are below the program, where nothing else is.
    forbidden_base=0x1000000,
    link_flags=("-Wl,-Ttext-segment=0x8000000",),
    defines_late=True,
)
ARCHES: Mapping[str, Arch] = MappingProxyType({one.name: one for one in (X86_64, ARM64)})


def arch_of(name: str) -> Arch:
    """Return an architecture by name; raises BadUsage if its kernels cannot be hosted."""
    if name not in ARCHES:
        raise BadUsage(f"--arch {name}: there are {', '.join(ARCHES)}{hint(name, ARCHES)}")
    return ARCHES[name]


def native_arch() -> str:
    """Return the name of the default architecture: this machine's if its kernels can be hosted."""
    return next((one.name for one in ARCHES.values() if one.is_here), X86_64.name)
