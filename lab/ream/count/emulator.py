# SPDX-License-Identifier: GPL-2.0-only
"""The emulator that a counted launch runs under: its CPU, its plugin and its command line."""

import hashlib
from collections.abc import Mapping
from pathlib import Path

from ream.command import Command, require, run
from ream.kernel.arch import ARCHES, X86_64, Arch, native_arch
from ream.kernel.build import compiler_version
from ream.kernel.cache import Step, appearing, locked, stamp_of
from ream.paths import MARKS, NATIVE

VERSION_S = 10.0
COMPILE_S = 120.0

CPUS = 4
"""CPUs that hosted kernels see, whatever this machine has."""

PLUGIN_FLAGS = (
    *("-std=gnu11", "-O2", "-g", "-Wall", "-Wextra", "-Wshadow", "-Werror"),
    *("-shared", "-fPIC", "-fvisibility=hidden", "-pthread"),
)


def plugin_sources() -> tuple[Path, ...]:
    """All files that the plugin is compiled from."""
    return (*sorted((NATIVE / "count").glob("*.[ch]")), MARKS)


def emulator_version(arch: Arch = X86_64) -> str:
    """Return the version that the emulator prints; raises CannotRunHere if it is not installed."""
    require(arch.emulator)
    return run(Command((arch.emulator, "--version"), Path("/"), VERSION_S)).splitlines()[0]


def build_plugin(cache: Path, step: Step) -> Path:
    """Compile the plugin, unless the cache has one of the same sources; return its path."""
    digest = hashlib.sha256(
        "\0".join((compiler_version(arch=ARCHES[native_arch()]), *PLUGIN_FLAGS)).encode()
    )
    for path in plugin_sources():
        digest.update(f"{path.name}\0".encode() + path.read_bytes())
    entry = cache / "plugin" / digest.hexdigest()
    with locked(entry, step):
        if stamp_of(entry) is None:
            step("compiling the plugin that counts")
            with appearing(entry, dict) as place:
                sources = [str(path) for path in plugin_sources() if path.suffix == ".c"]
                words = ("gcc", *PLUGIN_FLAGS, f"-I{MARKS.parent}", *sources)
                run(Command((*words, "-o", str(place / "count.so")), place, COMPILE_S))
    return entry / "count.so"


def plugin_to_count(
    plugin: Path, functions: Path, out: Path, *, runs: bool, memory: int | None = None
) -> tuple[str, ...]:
    """Return the emulator options that count a program.

    functions: the file that lists what is counted. out: the file that the plugin writes. runs:
    whether the plugin also reports how often each piece of code was executed. memory: the address
    from which lines and pages are counted; None: where experiments map the memory that their
    kernels work on.
    """
    options = {"functions": functions, "out": out, "runs": "on" if runs else "off"}
    return plugin_words(plugin, options | ({} if memory is None else {"memory": f"{memory:#x}"}))


def plugin_words(plugin: Path, options: Mapping[str, object]) -> tuple[str, str]:
    """Return the options that load the plugin, for any of QEMU's programs."""
    words = (_escaped(plugin), *(f"{name}={_escaped(value)}" for name, value in options.items()))
    return ("-plugin", ",".join(words))


def _escaped(value: object) -> str:
    """Escape a value for QEMU's options, where a comma is written twice."""
    return str(value).replace(",", ",,")
