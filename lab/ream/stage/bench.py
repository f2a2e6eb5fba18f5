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
MEMMAP_FACTS = tuple(KERNEL_MODULES / "memmap" / name for name in ("facts.h", "buddy_facts.h"))
"""What oracles need to know of a kernel; a guest's module has them, too."""


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


def object_names(folder: Path) -> Mapping[str, tuple[str, ...]]:
    """The kernel objects an experiment runs, listed in its file `objects`.

    One object a line; behind it, the static functions of it that are made global for glue.c.
    """
    lines = (folder / "objects").read_text(encoding="ascii").splitlines()
    words = [line.split() for line in lines if line.strip() and not line.startswith("#")]
    return {name: tuple(functions) for name, *functions in words}


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
    shared: Sequence[Path] = MEMMAP_FACTS,
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
    named = object_names(folder)
    targets = (*(f"ream/{stem}.o" for stem in glue), *named)
    built: dict[tuple[str, ...], tuple[Path, Mapping[str, Path]]] = {}
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
            built[patches] = (place / BUILD, objects)
        roots[variant.name], made = built[patches]
        kernels[variant.name] = examine_kernel(
            variant.name,
            [made[target] for target in targets],
            work,
            exposed={made[target]: names for target, names in named.items()},
        )
    dot_config = (next(iter(roots.values())) / ".config").read_bytes()
    host = build_host(folder, work)
    return Bench(work, kernels, roots, host, hashlib.sha256(dot_config).hexdigest())
