# SPDX-License-Identifier: GPL-2.0-only
"""Everything a native run needs, built: every variant's kernel objects and the program's own."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ream.kernel.build import BUILD, build_objects
from ream.kernel.cache import Step
from ream.kernel.source import Tree
from ream.kernel.variant import assemble
from ream.measure.plan import Launch
from ream.paths import KERNEL_CONFIG, KERNEL_MODULES, NATIVE
from ream.stage.link import (
    Kernel,
    Program,
    build_host,
    examine_kernel,
    is_kernel_side,
    link_program,
)
from ream.variants import Variant

KERNEL_SIDE = NATIVE / "host" / "kernel"
"""What every hosted kernel gets of us."""

NATIVE_CONFIG = KERNEL_CONFIG / "native.config"
MEMMAP_FACTS = KERNEL_MODULES / "memmap" / "facts.h"


@dataclass(frozen=True)
class Bench:
    """What launches are linked from."""

    work: Path
    kernels: Mapping[str, Kernel]
    roots: Mapping[str, Path]
    """By variant, the build directory that its objects are named from."""
    host: tuple[Path, ...]
    config_sha256: str

    def link(self, launch: Launch) -> Program:
        """Link a launch's own program: its order of variants and its place for their data."""
        return link_program(
            [self.kernels[name] for name in launch.link_order],
            self.host,
            self.work / f"launch-{launch.number}",
            pad_bytes=launch.data_offset,
        )


def object_names(folder: Path) -> tuple[str, ...]:
    """The kernel objects an experiment runs, listed in its file `objects`."""
    lines = (folder / "objects").read_text(encoding="ascii").splitlines()
    return tuple(line for line in lines if line and not line.startswith("#"))


def _headers(folder: Path, shared: Sequence[Path]) -> tuple[Path, ...]:
    """The experiment's headers; those that others share only where it has none of that name."""
    own = sorted(folder.glob("*.h"))
    return (*own, *(path for path in shared if path.name not in {one.name for one in own}))


def build_bench(
    tree: Tree,
    variants: Iterable[Variant],
    *,
    folder: Path,
    cache: Path,
    work: Path,
    step: Step,
    shared: Sequence[Path] = (MEMMAP_FACTS,),
    config: Path = NATIVE_CONFIG,
) -> Bench:
    """Build every variant's objects, each distinct list of patches once, and the program around.

    folder: the experiment's own code: glue.c and headers for the kernel's side, `objects`, and
    the runner's sources. shared: headers that a guest's modules have, too. work: for what only
    this run needs. config: over tinyconfig.
    Raises what assemble(), build_objects() and examine_kernel() raise.
    """
    ours = [path for path in sorted(folder.glob("*.c")) if is_kernel_side(path)]
    homes = (KERNEL_SIDE, NATIVE / "host" / "host.h", *ours, *_headers(folder, shared))
    glue = [path.stem for path in (*sorted(KERNEL_SIDE.glob("*.c")), *ours)]
    targets = (*(f"ream/{stem}.o" for stem in glue), *object_names(folder))
    built: dict[tuple[str, ...], tuple[Path, tuple[Path, ...]]] = {}
    kernels: dict[str, Kernel] = {}
    roots: dict[str, Path] = {}
    for variant in variants:
        patches = tuple(patch.sha256 for patch in variant.patches)
        if patches not in built:

            def say(text: str, name: str = variant.name) -> None:
                step(f"{name}: {text}")

            place = assemble(
                tree,
                variant.patches,
                cache=cache,
                fragments=[config],
                homes=homes,
                step=say,
            )
            objects = build_objects(place, targets, step=say)
            built[patches] = (place / BUILD, tuple(objects[target] for target in targets))
        roots[variant.name], made = built[patches]
        kernels[variant.name] = examine_kernel(variant.name, made, work)
    dot_config = (next(iter(roots.values())) / ".config").read_bytes()
    host = build_host(folder, work)
    return Bench(work, kernels, roots, host, hashlib.sha256(dot_config).hexdigest())
