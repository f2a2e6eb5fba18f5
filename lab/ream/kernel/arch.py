# SPDX-License-Identifier: GPL-2.0-only
"""Architectures whose kernels are hosted: what compiles for them, and what runs the result."""

import platform
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from ream.errors import BadUsage, CannotRunHere
from ream.nearest import hint


@dataclass(frozen=True)
class Target:
    """What kbuild builds for. arch: its ARCH. cross: the beginning of the tools' names."""

    arch: str = "x86_64"
    cross: str = ""


@dataclass(frozen=True, eq=False)
class Arch:
    """An architecture; there is one of each."""

    name: str
    """As kbuild's ARCH has it."""
    folder: str
    """Where the kernel has its code, below arch/."""
    machine: str
    """As uname(1) has it."""
    cross: str
    """The beginning of the tools' names on other machines."""
    emulator: str
    image: str
    """The kernel that boots, a target of kbuild's and the name of a file in its folder boot/."""
    cpus: Mapping[str, str]
    """What of the emulator's CPUs programs are counted on, by name; the first, unless asked for."""
    reached_twice: str | None = None
    """A folder of objects that kbuild reaches on two ways, see `plan_objects`."""
    forbidden_base: int = 0x60000000
    """Where programs have the symbols that nobody defines: in reach of calls, and never mapped."""
    link_flags: tuple[str, ...] = ()
    """What programs are linked with besides."""
    defines_late: bool = False
    """Whether those symbols get their addresses in the last link alone: ld 2.40 for arm64 crashes
    on calls of local symbols that are absolute."""

    @property
    def is_here(self) -> bool:
        """Whether this machine is one."""
        return platform.machine() == self.machine

    @property
    def target(self) -> Target:
        """What kbuild needs to know."""
        return Target(self.name, "" if self.is_here else self.cross)

    def tool(self, name: str) -> str:
        """A program of the tool chain."""
        return f"{self.target.cross}{name}"

    @property
    def default_cpu(self) -> str:
        """The name of the CPU that counts are of unless another one is asked for."""
        return next(iter(self.cpus))

    def cpu_model(self, name: str | None) -> str:
        """The emulator's words for a CPU; raises BadUsage if there is none of that name."""
        if name is None:
            return self.cpus[self.default_cpu]
        if name not in self.cpus:
            raise BadUsage(
                f"--cpu {name}: {self.name} has {', '.join(self.cpus)}{hint(name, self.cpus)}"
            )
        return self.cpus[name]

    def emulated(self, cpu: str | None) -> tuple[str, ...]:
        """The words before a program, to run it on the CPU of this name.

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
    # Without ERMS and FSRM the kernel copies with `rep movsq`, of which each word counts once,
    # apart from the rest.
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
    # The first two have atomic operations that are one instruction each, the last has loops.
    cpus=MappingProxyType({name: name for name in ("neoverse-n1", "max", "cortex-a72")}),
    reached_twice="arch/arm64/lib/",
    # A call reaches 128 MiB: they lie below the program, and nothing else does.
    forbidden_base=0x1000000,
    link_flags=("-Wl,-Ttext-segment=0x8000000",),
    defines_late=True,
)
ARCHES: Mapping[str, Arch] = MappingProxyType({one.name: one for one in (X86_64, ARM64)})


def arch_of(name: str) -> Arch:
    """An architecture by its name; raises BadUsage if kernels of it are not hosted."""
    if name not in ARCHES:
        raise BadUsage(f"--arch {name}: there are {', '.join(ARCHES)}{hint(name, ARCHES)}")
    return ARCHES[name]


def native_arch() -> str:
    """The name of the architecture that kernels are of unless another one is asked for."""
    return next((one.name for one in ARCHES.values() if one.is_here), X86_64.name)
