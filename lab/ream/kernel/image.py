# SPDX-License-Identifier: GPL-2.0-only
"""Builds whole kernels for guests: the image of a variant, its modules, and ream's modules."""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from ream.command import Command, run, stream
from ream.errors import ReamError
from ream.kernel.arch import Arch
from ream.kernel.build import BUILD, arch_built, make
from ream.kernel.cache import appearing, disk_faults, locked, need_space, stamp_of, sweep, touch
from ream.kernel.probes import SUFFIX, write_header
from ream.kernel.series import Patch, files
from ream.kernel.source import Tree
from ream.kernel.uncompiled import naming_the_patch
from ream.kernel.variant import BUILDING, WHOLE, assemble, what
from ream.paths import MARKS
from ream.progress import Reporter

IMAGE_BYTES = 400_000_000
"""Disk space of a variant with a whole kernel: 0.2 GB, or twice as much with vm-debug.config."""

MODULE_BYTES = 10_000_000

KERNEL_S = 3600.0
MODULE_S = 300.0
SYNC_S = 600.0

COLD_FILES = 1500
"""Estimate of the files that kbuild makes for a kernel of vm.config, before the first build."""

GROWN_FILES = 60
"""Estimate for a kernel that starts from the build without patches, if no header changes."""

Kind = Literal["cold", "headers", "sources"]
"""Extent of a build: all; much, since patches change headers; or little."""

_MAKES = re.compile(r"  [A-Z][A-Z0-9_]*(?: +\[M\])? +(\S+)")
"""A line in which kbuild reports the file that it makes."""


@dataclass(frozen=True)
class Image:
    """A bootable kernel. Its files are in the cache and must not be written."""

    tree: Path
    """The source, patched; its build directory is `tree / BUILD`."""
    bootable: Path
    config: Path
    modules: Mapping[str, Path]
    """The kernel's and ream's modules by their name in the kernel, as "test_hmm"."""

    @property
    def arch(self) -> Arch:
        """The architecture of the kernel."""
        return arch_built(self.tree / BUILD)

    @property
    def vmlinux(self) -> Path:
        """The linked kernel with its symbols."""
        return self.tree / BUILD / "vmlinux"

    @property
    def gen_init_cpio(self) -> Path:
        """The kernel's own program that packs an initramfs; it needs no root for device nodes."""
        return self.tree / BUILD / "usr" / "gen_init_cpio"


def build_image(
    tree: Tree,
    patches: Sequence[Patch],
    *,
    cache: Path,
    fragments: Sequence[Path],
    modules: Sequence[Path],
    reporter: Reporter,
) -> Image:
    """Return a variant's kernel from the cache; build it if it is not there.

    fragments: see `assemble`.
    modules: folders of kernel/modules/, each with a Kbuild file; built outside of the tree, so
        that changing one does not change the kernel.
    Build the variant without patches first, so that others can start from its build.
    Raises what `assemble` raises, and ReamError with the compiler's first error.
    """
    place = assemble(
        tree,
        patches,
        cache=cache,
        fragments=fragments,
        homes=(),
        step=reporter.step,
        room_bytes=IMAGE_BYTES,
    )
    entry = place.parent
    with disk_faults(cache, "building a kernel"):
        built = _built_whole(entry, patches, reporter)
        own = {name: place / BUILD / path for name, path in built["modules"].items()}
        for folder in modules:
            own |= _built_module(entry, folder, cache.resolve() / "module", reporter)
    arch = arch_built(place / BUILD)
    boot = place / BUILD / "arch" / arch.folder / "boot" / arch.image
    return Image(place, boot, place / BUILD / ".config", own)


# --- The kernel ------------------------------------------------------------------------


def plan_kernel(place: Path) -> Command:
    """Return the command that builds all parts of an assembled variant that a guest needs."""
    image = arch_built(place / BUILD).image
    return make(place, [image, "modules"], deadline_s=KERNEL_S, talks=True)


def _built_whole(entry: Path, patches: Sequence[Patch], reporter: Reporter) -> dict[str, Any]:
    """Build a variant's kernel if necessary; return the contents of its marker."""
    with locked(entry, reporter.step):
        marker = _marker(entry)
        if marker is not None:
            return marker
        place = entry / "linux"
        need_space(entry.parent, IMAGE_BYTES, "a kernel")
        kind = _kind(place, patches)
        config = hashlib.sha256((place / BUILD / ".config").read_bytes()).hexdigest()
        usual = _usual_files(entry.parent, config, kind)
        reporter.step(f"building the kernel of {what(patches)}")
        (entry / BUILDING).touch()
        with naming_the_patch(patches, place):
            nr_files = _make(plan_kernel(place), usual, f"building {what(patches)}", reporter)
        marker = {
            "config": config,
            "kind": kind,
            "files": nr_files,
            "modules": _kernel_modules(place / BUILD),
        }
        # Otherwise a power cut may keep the marker and lose the build.
        run(Command(("sync", "--file-system", str(place)), place, SYNC_S))
        (entry / WHOLE).write_text(json.dumps(marker, indent=1))
        (entry / BUILDING).unlink()
        return marker


def _make(command: Command, usual: int, doing: str, reporter: Reporter) -> int:
    """Run make and show its progress; return the number of files that it made."""
    nr_files = 0
    with reporter.measuring(usual) as advance, closing(stream(command)) as lines:
        for line in lines:
            if makes := _MAKES.match(line):
                nr_files += 1
                advance(1, f"{doing}: {makes[1]}")
    return nr_files


def _marker(entry: Path) -> dict[str, Any] | None:
    try:
        marker = json.loads((entry / WHOLE).read_text())
    except (OSError, ValueError):
        return None
    return marker if isinstance(marker, dict) else None


def _kind(place: Path, patches: Sequence[Patch]) -> Kind:
    # If the variant without patches was built, it was cloned, and its vmlinux is here.
    if not (place / BUILD / "vmlinux").exists():
        return "cold"
    changed = (name for patch in patches for name in files(patch))
    return "headers" if any(name.endswith(".h") for name in changed) else "sources"


def _usual_files(variants: Path, config: str, kind: Kind) -> int:
    """Return how many files such a build made the last time, or an estimate."""
    usual, last = (GROWN_FILES if kind == "sources" else COLD_FILES), 0.0
    for path in variants.glob(f"*/{WHOLE}"):
        marker = _marker(path.parent)
        with suppress(OSError, KeyError, TypeError):
            if marker and (marker["config"], marker["kind"]) == (config, kind):
                when = path.stat().st_mtime
                usual, last = (int(marker["files"]), when) if when > last else (usual, last)
    return usual


def _kernel_modules(build: Path) -> dict[str, str]:
    """Return the modules of a built kernel by name, as paths in its build directory."""
    listed = (build / "modules.order").read_text(encoding="utf-8").split()
    return {_module_name(Path(name)): str(Path(name).with_suffix(".ko")) for name in listed}


def _module_name(path: Path) -> str:
    return path.stem.replace("-", "_")


# --- Our modules -----------------------------------------------------------------------


def plan_module(place: Path, folder: Path) -> Command:
    """Return the command that builds the modules of a folder against a built kernel."""
    # It is last, since the empty KBUILD_EXTMOD= in every command would override kbuild's M=.
    return make(place, ["modules", f"KBUILD_EXTMOD={folder}"], deadline_s=MODULE_S)


def _built_module(entry: Path, folder: Path, kind: Path, reporter: Reporter) -> dict[str, Path]:
    """Build the modules of one folder for the kernel in `entry`; return them by name."""
    sources = sorted(path for path in folder.iterdir() if _is_source(path))
    if not sources:
        raise ReamError(f"{folder}: no module: it has neither a Kbuild file nor sources")
    sources.append(MARKS)  # modules include it as one of their own files
    content = hashlib.sha256(f"{entry.name} {folder.name}\n".encode())
    for path in sources:
        content.update(f"{path.name} {path.stat().st_size}\n".encode() + path.read_bytes())
    module = kind / content.hexdigest()
    with locked(module, reporter.step):
        if stamp_of(module) is None:
            sweep(kind, reporter.step)
            need_space(kind, MODULE_BYTES, f"the module {folder.name}")
            reporter.step(f"building the module {folder.name}")
            with appearing(module, lambda: {"module": folder.name}) as partial:
                for path in sources:
                    (partial / path.name).write_bytes(path.read_bytes())
                asked = sorted(partial.glob(f"*{SUFFIX}"))
                try:
                    if asked:
                        write_header(partial, asked, tree=entry / "linux", label=folder.name)
                    run(plan_module(entry / "linux", partial))
                except ReamError as cause:
                    raise type(cause)(str(cause).replace(str(partial), str(folder))) from cause
                if not any(partial.glob("*.ko")):
                    raise ReamError(f"{folder}: its Kbuild file names no module (obj-m)")
        touch(module)
    return {_module_name(path): path for path in sorted(module.glob("*.ko"))}


def _is_source(path: Path) -> bool:
    return path.is_file() and (
        path.suffix in (".c", ".h", ".S", SUFFIX) or path.name in _KBUILD_FILES
    )


_KBUILD_FILES = ("Kbuild", "Makefile")
