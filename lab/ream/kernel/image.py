# SPDX-License-Identifier: GPL-2.0-only
"""Whole kernels for a guest: what of a variant boots, its modules, and ours built against it."""

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
"""What a variant takes with a whole kernel built in it: 0.2 GB, and twice as much with the
instruments of vm-debug.config."""

MODULE_BYTES = 10_000_000

KERNEL_S = 3600.0
MODULE_S = 300.0
SYNC_S = 600.0

COLD_FILES = 1500
"""Files that kbuild makes for a kernel of vm.config, until a build has told us."""

GROWN_FILES = 60
"""The same for one that begins with what the variant without patches has, if no patch changes a
header."""

Kind = Literal["cold", "headers", "sources"]
"""How much a build has to make: all; much, since patches change headers; or little."""

_MAKES = re.compile(r"  [A-Z][A-Z0-9_]*(?: +\[M\])? +(\S+)")
"""A line in which kbuild says which file it makes now."""


@dataclass(frozen=True)
class Image:
    """A kernel to boot. Its files are the cache's: read them, do not write."""

    tree: Path
    """The source, patched; its build directory is `tree / BUILD`."""
    bootable: Path
    config: Path
    modules: Mapping[str, Path]
    """The kernel's own and ours, by the name that the kernel knows them by: "test_hmm"."""

    @property
    def arch(self) -> Arch:
        """The architecture that it is for."""
        return arch_built(self.tree / BUILD)

    @property
    def vmlinux(self) -> Path:
        """The kernel as it was linked, with its symbols."""
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
    """A kernel of a variant, from the cache or built now; the second time it takes no time.

    fragments: as in `assemble`.
    modules: folders of kernel/modules/, each with a Kbuild file; built outside of the tree, so
        that changing one leaves the kernel as it is.
    Build the variant without patches first: others then begin with what that has.
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
    """The command that builds all of an assembled variant that a guest needs."""
    image = arch_built(place / BUILD).image
    return make(place, [image, "modules"], deadline_s=KERNEL_S, talks=True)


def _built_whole(entry: Path, patches: Sequence[Patch], reporter: Reporter) -> dict[str, Any]:
    """Build a variant's kernel if that was not done; return what its marker says."""
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
        # Without it a power cut may keep the marker and lose what it stands for.
        run(Command(("sync", "--file-system", str(place)), place, SYNC_S))
        (entry / WHOLE).write_text(json.dumps(marker, indent=1))
        (entry / BUILDING).unlink()
        return marker


def _make(command: Command, usual: int, doing: str, reporter: Reporter) -> int:
    """Run make, showing how far it is; the number of files it made."""
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
    # If the variant without patches was whole, it was cloned, and its vmlinux is here.
    if not (place / BUILD / "vmlinux").exists():
        return "cold"
    changed = (name for patch in patches for name in files(patch))
    return "headers" if any(name.endswith(".h") for name in changed) else "sources"


def _usual_files(variants: Path, config: str, kind: Kind) -> int:
    """How many files such a build made the last time, or a guess."""
    usual, last = (GROWN_FILES if kind == "sources" else COLD_FILES), 0.0
    for path in variants.glob(f"*/{WHOLE}"):
        marker = _marker(path.parent)
        with suppress(OSError, KeyError, TypeError):
            if marker and (marker["config"], marker["kind"]) == (config, kind):
                when = path.stat().st_mtime
                usual, last = (int(marker["files"]), when) if when > last else (usual, last)
    return usual


def _kernel_modules(build: Path) -> dict[str, str]:
    """The modules of a built kernel, by name; paths in its build directory."""
    listed = (build / "modules.order").read_text(encoding="utf-8").split()
    return {_module_name(Path(name)): str(Path(name).with_suffix(".ko")) for name in listed}


def _module_name(path: Path) -> str:
    return path.stem.replace("-", "_")


# --- Our modules -----------------------------------------------------------------------


def plan_module(place: Path, folder: Path) -> Command:
    """The command that builds the modules of a folder against a kernel that is built."""
    # Last, since kbuild's M= would give way to the empty KBUILD_EXTMOD= of every command.
    return make(place, ["modules", f"KBUILD_EXTMOD={folder}"], deadline_s=MODULE_S)


def _built_module(entry: Path, folder: Path, kind: Path, reporter: Reporter) -> dict[str, Path]:
    """The modules of one folder, by name, built for the kernel in `entry`."""
    sources = sorted(path for path in folder.iterdir() if _is_source(path))
    if not sources:
        raise ReamError(f"{folder}: no module: it has neither a Kbuild file nor sources")
    sources.append(MARKS)  # which modules include as if it were theirs
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
