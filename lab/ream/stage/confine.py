# SPDX-License-Identifier: GPL-2.0-only
"""A hosted kernel may be anybody's code: what a runner cannot do beside running it.

native/confine/confine.c says how. Without Landlock, which is in Linux 5.13 and later, files cannot
be confined, and the runner reads and writes what its user may; the rest is confined all the same.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from ream.command import Command, finished
from ream.kernel.confine import compiled, limited_memory

PROBE_S = 10.0

KERNEL_TELLS = (*("/proc/self", "/proc/stat", "/proc/cpuinfo", "/proc/meminfo"), "/sys/devices")
"""Files of the machine's kernel that a runner, or libc for it, reads."""
POWER = ("/sys/class/powercap", "/sys/kernel/mm")
EMULATOR_READS = (
    *("/usr", "/lib", "/lib64", "/bin", "/etc/ld.so.cache", "/proc/sys/vm", "/dev/null"),
)
"""What an emulator and its libraries are loaded from."""


@dataclass(frozen=True)
class Confinement:
    """How runners of one bench are confined."""

    program: Path
    """native/confine, compiled."""
    readable: tuple[Path, ...]
    """What they may read beside the kernel's own files."""

    def words(
        self,
        own: Path,
        *,
        reads: tuple[Path, ...] = (),
        emulator: tuple[Path, ...] | None = None,
    ) -> tuple[str, ...]:
        """The words before a runner's.

        There is no limit on CPU time: with one, Linux advances the clock of CPU time by ticks only.
        A sample that does not come back is ended by its own timer (native/host/watch.c), and a
        runner that prints nothing by stage.native.
        own: the directory of the launch. reads: files of its task that lie elsewhere. emulator: if
        the runner is emulated, what that loads besides; it may write into `own`, too.
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
        """Whether this machine's kernel can."""
        code, _, _ = finished(Command((str(self.program), "--probe"), Path("/"), PROBE_S))
        return code == 0


def say_unconfined(confinement: Confinement | None, step: Callable[[str], None]) -> None:
    """Say so if files are not confined though they should be."""
    if confinement is not None and not confinement.confines_files:
        step(
            "this kernel has no Landlock, of Linux 5.13: hosted code may read and write the files"
            " that you may"
        )


def build_confinement(work: Path, readable: Iterable[Path]) -> Confinement:
    """Compile what confines runners; raises ReamError with the compiler's first error.

    work: where it is put, a directory of this run alone.
    """
    return Confinement(compiled(work / "confine"), tuple(readable))
