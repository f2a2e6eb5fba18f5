# SPDX-License-Identifier: GPL-2.0-only
"""Confines runners, because the kernel code that they host is not trusted.

native/confine/confine.c documents how. Without Landlock (Linux 5.13 and later) files cannot be
confined, so a runner reads and writes what its user may. Everything else is still confined.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from ream.command import Command, finished
from ream.kernel.confine import compiled, limited_memory

PROBE_S = 10.0

KERNEL_TELLS = (*("/proc/self", "/proc/stat", "/proc/cpuinfo", "/proc/meminfo"), "/sys/devices")
"""Files of procfs and sysfs that a runner, or libc for it, reads."""
POWER = ("/sys/class/powercap", "/sys/kernel/mm")
EMULATOR_READS = (
    *("/usr", "/lib", "/lib64", "/bin", "/etc/ld.so.cache", "/proc/sys/vm", "/dev/null"),
)
"""Paths from which an emulator and its libraries are loaded."""


@dataclass(frozen=True)
class Confinement:
    """How runners of one bench are confined."""

    program: Path
    """The compiled program of native/confine."""
    readable: tuple[Path, ...]
    """Paths that runners may read besides KERNEL_TELLS."""

    def words(
        self,
        own: Path,
        *,
        reads: tuple[Path, ...] = (),
        emulator: tuple[Path, ...] | None = None,
    ) -> tuple[str, ...]:
        """Return the command line before a runner's.

        There is no limit on CPU time, because with one Linux advances the CPU time clock only by
        ticks. A sample that does not return is ended by its timer (native/host/watch.c), and a
        silent runner by stage.native.
        own: the directory of the launch. reads: other files of its task. emulator: files that the
        emulator loads, if the runner is emulated; it may then also write into `own`.
        """
        read = [*map(str, (*self.readable, own, *reads)), *KERNEL_TELLS, *POWER]
        if emulator is not None:
            read += [*EMULATOR_READS, *map(str, emulator)]
        words = [str(self.program)]
        words += [word for path in read for word in ("--read", path)]
        words += ["--write", str(own)] if emulator is not None else []
        return (*words, *limited_memory(), "--")

    @property
    def confines_files(self) -> bool:
        """Whether this machine's kernel can confine access to files."""
        code, _, _ = finished(Command((str(self.program), "--probe"), Path("/"), PROBE_S))
        return code == 0


def say_unconfined(confinement: Confinement | None, step: Callable[[str], None]) -> None:
    """Report it if files are not confined although they should be."""
    if confinement is not None and not confinement.confines_files:
        step(
            "this kernel has no Landlock, of Linux 5.13: hosted code may read and write the files"
            " that you may"
        )


def build_confinement(work: Path, readable: Iterable[Path]) -> Confinement:
    """Compile the confining program; raises ReamError with the compiler's first error.

    work: its directory, which belongs to this run alone.
    """
    return Confinement(compiled(work / "confine"), tuple(readable))
