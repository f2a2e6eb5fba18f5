# SPDX-License-Identifier: GPL-2.0-only
"""Builds what a native run needs: every variant's kernel objects, and the program around them."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType

from ream.errors import BadUsage
from ream.experiment import shown
from ream.kernel.arch import X86_64, Arch
from ream.kernel.build import BUILD, build_objects, options
from ream.kernel.cache import Step
from ream.kernel.probes import SUFFIX
from ream.kernel.source import Tree
from ream.kernel.uncompiled import naming_the_patch
from ream.kernel.variant import HOME, assemble, compiled_for
from ream.measure.plan import Launch
from ream.paths import KERNEL_CONFIG, KERNEL_MODULES, NATIVE
from ream.progress import labelled
from ream.stage.confine import Confinement, build_confinement
from ream.stage.link import (
    ARCH_SIDE,
    Kernel,
    Program,
    build_host,
    examine_kernel,
    is_kernel_side,
    link_program,
)
from ream.variants import Variant

KERNEL_SIDE = NATIVE / "host" / "kernel"
"""Folder of ream's code that is compiled into every hosted kernel."""

OPTIONAL_SIDE = NATIVE / "host" / "optional"
"""Folder of ream's code that an experiment requests as ream/NAME.o in its file `objects`."""

NATIVE_CONFIG = KERNEL_CONFIG / "native.config"
MEMMAP_FACTS = tuple(KERNEL_MODULES / "memmap" / name for name in ("facts.h", "buddy_facts.h"))
"""Headers with the facts of a kernel that oracles need. A guest's module includes them, too."""
PAGE_FACTS = KERNEL_MODULES / "memmap" / "page_facts.h"
"""The header of facts that all kernels have."""


def config_files(names: Iterable[str]) -> tuple[Path, ...]:
    """Return the fragments of kernel/config that a row names; raises BadUsage if one is missing."""
    files = {name: KERNEL_CONFIG / f"{name}.config" for name in names}
    if absent := [name for name, file in files.items() if not file.is_file()]:
        raise BadUsage(f"there is no fragment {', '.join(absent)} in kernel/config")
    return tuple(files.values())


@dataclass(frozen=True)
class Bench:
    """The objects that launches are linked from."""

    work: Path
    kernels: Mapping[str, Kernel]
    roots: Mapping[str, Path]
    """Build directories by variant. Names of objects are relative to them."""
    host: tuple[Path, ...]
    config_sha256: str
    tree_of: Mapping[str, int] = field(default_factory=dict)
    """Kind numbers of variants that are not of the first variant's kind. At first a kind is a tree;
    later it also depends on facts (ream.session.builds)."""
    confinement: Confinement | None = None
    """How runners are confined; None: they are not."""
    arch: Arch = X86_64
    emulator: tuple[str, ...] = ()
    """The emulator's command line before a runner's, if this machine has another architecture."""

    def on_cpu(self, name: str | None) -> "Bench":
        """Return the bench with runners on the emulated CPU of this name, if they are emulated.

        None: the architecture's default CPU.
        """
        return replace(self, emulator=() if self.arch.is_here else self.arch.emulated(name))

    def unconfined(self) -> "Bench":
        """Return the bench with runners that are not confined."""
        return replace(self, confinement=None)

    def link(self, launch: Launch) -> Program:
        """Link the program of a launch, with its order of variants and its offset of their data."""
        program = link_program(
            [self.kernels[name] for name in launch.link_order],
            self.host,
            self.work / f"launch-{launch.number}",
            pad_bytes=launch.data_offset,
            arch=self.arch,
        )
        trees = tuple(self.tree_of.get(name, 0) for name in launch.link_order)
        its = trees if self.tree_of else ()
        number = 1 + max(self.tree_of.values(), default=0)
        return replace(
            program,
            trees=its,
            nr_trees=number,
            confinement=self.confinement,
            emulator=self.emulator,
        )


@dataclass(frozen=True)
class Object:
    """A kernel object that an experiment hosts, by kbuild's name.

    functions: its static functions that are made global for glue.c; NAME? if one may be missing.
    option: the CONFIG_ option without which a variant does not have the object.
    """

    name: str
    """The object's name. If other kernels have it under another name, both are given: A|B."""
    functions: tuple[str, ...] = ()
    option: str | None = None

    def names(self) -> list[str]:
        """Return all names that the object may have."""
        return self.name.split("|")


EVERYWHERE = (Object("arch/x86/lib/retpoline.o", option="CONFIG_MITIGATION_RETPOLINE"),)
"""Objects that compiled code of any object may call."""


WITHOUT_INTERRUPTS = "without cli and sti"
"""Line of a file `objects`: cli and sti are removed from all of its objects."""


def objects(folder: Path, arch: Arch = X86_64) -> tuple[Object, ...]:
    """Return the objects of an experiment, which its file `objects` lists, one per line.

    Objects below arch/ belong only to kernels of that architecture.

    A line is an optional option, the object and its functions. ream/NAME.o is ream's own code: from
    native/host/optional, or the module kernel/modules/NAME. The line WITHOUT_INTERRUPTS applies to
    all objects.
    """
    lines = (folder / "objects").read_text(encoding="ascii").splitlines()
    found = []
    for line in lines:
        words = line.split()
        if words and not line.startswith("#") and line != WITHOUT_INTERRUPTS:
            option = words.pop(0) if words[0].startswith("CONFIG_") else None
            found.append(Object(words[0], tuple(words[1:]), option))
    return tuple(one for one in found if _is_of(one, arch))


def _is_of(one: Object, arch: Arch) -> bool:
    return not one.name.startswith("arch/") or one.name.startswith(f"arch/{arch.folder}/")


def has_interrupts(folder: Path) -> bool:
    """Whether the objects of an experiment keep their cli and sti, which fault in a program.

    They are kept if none is expected to be executed; one that is executed ends the run.
    """
    return WITHOUT_INTERRUPTS not in (folder / "objects").read_text(encoding="ascii").splitlines()


def _always(folder: Path, arch: Arch) -> Iterator[Object]:
    """Yield ream's objects that every experiment has, and the experiment's own glue."""
    homes = (KERNEL_SIDE, ARCH_SIDE / arch.name / "kernel")
    for path in (*(path for home in homes for path in sorted(home.glob("*.c"))), *_glue(folder)):
        yield Object(f"{HOME}/{path.stem}.o")


def _glue(folder: Path) -> list[Path]:
    return [path for path in sorted(folder.glob("*.c")) if is_kernel_side(path)]


def kernel_side(
    folder: Path, shared: Sequence[Path] = MEMMAP_FACTS, arch: Arch = X86_64
) -> tuple[Path, ...]:
    """Return ream's files that kbuild compiles in each variant's tree; a folder means its files."""
    ours = (KERNEL_SIDE, PAGE_FACTS, *(NATIVE / "host" / name for name in ("host.h", "plan.def")))
    of_arch = ARCH_SIDE / arch.name / "kernel"
    optional = _optional_homes(objects(folder, arch))
    return (*ours, of_arch, *_glue(folder), *_headers(folder, shared), *optional)


def probes_of(folder: Path) -> list[Path]:
    """Return the probes that are compiled in a tree, for ream's code and for the experiment."""
    ours = [NATIVE / "host" / f"host{SUFFIX}", KERNEL_MODULES / "memmap" / f"page{SUFFIX}"]
    optional = (home.with_suffix(SUFFIX) for home in _optional_homes(objects(folder)))
    its = sorted({probes for probes in optional if probes.is_file()})
    return [*ours, *its, *sorted(folder.glob(f"*{SUFFIX}"))]


def fragments_of(folder: Path, config: Path = NATIVE_CONFIG) -> list[Path]:
    """Return the configuration fragments on top of tinyconfig, in order."""
    return [config, *sorted(folder.glob("native.config"))]


def _headers(folder: Path, shared: Sequence[Path]) -> tuple[Path, ...]:
    """Return the experiment's headers, and shared headers whose names it does not have."""
    own = sorted((*folder.glob("*.h"), *folder.glob("*.def")))
    return (*own, *(path for path in shared if path.name not in {one.name for one in own}))


def _optional_homes(wanted: Iterable[Object]) -> tuple[Path, ...]:
    """Return the sources of objects that are ream's own, and the headers beside them."""
    homes: dict[str, Path] = {}
    for stem in (Path(one.name).stem for one in wanted if one.name.startswith(f"{HOME}/")):
        module = KERNEL_MODULES / stem / f"{stem}.c"
        source = module if module.exists() else OPTIONAL_SIDE / f"{stem}.c"
        homes |= {path.name: path for path in (source, *sorted(source.parent.glob("*.h")))}
    return tuple(homes.values())


def held(listed: Iterable[Object], place: Path, arch: Arch = X86_64) -> tuple[Object, ...]:
    """Return the listed and the common objects that a variant's configuration has.

    place: its tree, as `assemble` returns it. Each object has only the name that it has there.
    """
    config = options((place / BUILD / ".config").read_text(encoding="utf-8"))
    there = [
        _there(one, place)
        for one in (*listed, *(one for one in EVERYWHERE if _is_of(one, arch)))
        if one.option is None or config.get(one.option.removeprefix("CONFIG_")) == "y"
    ]
    functions: dict[str, tuple[str, ...]] = {}
    for one in there:  # a separate object of other kernels may be part of a listed one here
        functions[one.name] = (*functions.get(one.name, ()), *one.functions)
    return tuple(
        replace(one, functions=functions.pop(one.name)) for one in there if one.name in functions
    )


def _there(one: Object, tree: Path) -> Object:
    """Return an object with the one of its names whose source the tree has; else with the first."""
    names = one.names()
    there = (name for name in names if (tree / name).with_suffix(".c").is_file())
    return replace(one, name=next(there, names[0]))


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
    fragments: Sequence[Path] = (),
    trees: Mapping[str, Tree] = MappingProxyType({}),
) -> Bench:
    """Build each variant's objects, once per distinct list of patches, and the program around them.

    folder: the experiment's own code: glue.c and headers for the kernel's side, `objects`, and
    the runner's sources. shared: headers that a guest's modules share. work: a directory of this
    run. trees: other trees, by variant. config: the fragment on top of tinyconfig; fragments: more
    fragments on top of that.
    Raises what assemble(), build_objects() and examine_kernel() raise.
    """
    arch = tree.setup.target
    homes = kernel_side(folder, shared, arch)
    configs = (*fragments_of(folder, config), *fragments)
    asked = [(one, trees.get(one.name, tree)) for one in variants]
    built: dict[object, _Compiled] = {}
    # Prefixes of other variants come first, so that they are not compiled twice.
    for variant, source in sorted(asked, key=lambda one: len(one[0].patches)):
        if (content := _content(variant, source)) not in built:
            built[content] = _compile(variant, source, folder, homes, configs, cache, step)
    kernels: dict[str, Kernel] = {}
    roots: dict[str, Path] = {}
    for variant, source in asked:
        roots[variant.name], own, made = built[_content(variant, source)]
        kernels[variant.name] = examine_kernel(
            variant.name,
            [made[one.name] for one in own],
            work,
            exposed={made[one.name]: one.functions for one in own},
            interrupts=has_interrupts(folder),
            arch=arch,
        )
    config_sha256 = _sha256(next(iter(roots.values())) / ".config")
    confinement = build_confinement(work, [work])
    numbers = _numbers(tree, trees)
    host = build_host(folder, cache=cache, step=step, arch=arch)
    return Bench(work, kernels, roots, host, config_sha256, numbers, confinement, arch).on_cpu(None)


_Compiled = tuple[Path, tuple[Object, ...], Mapping[str, Path]]
"""A build directory, the objects that are linked, and their paths by name."""


def _content(variant: Variant, source: Tree) -> object:
    return variant.content, source.key, source.setup


def _compile(  # noqa: PLR0917
    variant: Variant,
    source: Tree,
    folder: Path,
    homes: Sequence[Path],
    configs: Sequence[Path],
    cache: Path,
    step: Step,
) -> _Compiled:
    """Build a variant's objects; progress is reported with its name."""
    say = labelled(step, f"{shown(variant.name)}: ")
    arch = source.setup.target
    place = assemble(
        source,
        variant.patches,
        cache=cache,
        fragments=configs,
        homes=homes,
        probes=probes_of(folder),
        step=say,
    )
    own = (*_always(folder, arch), *held(objects(folder, arch), place, arch))
    with naming_the_patch(variant.patches, place):
        named = compiled_for(source, variant.patches, folder.name)
        made = build_objects(place, [one.name for one in own], step=say, named=named)
    return place / BUILD, own, made


def _sha256(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def _numbers(tree: Tree, trees: Mapping[str, Tree]) -> dict[str, int]:
    kinds = list(dict.fromkeys((one.key, one.setup) for one in (tree, *trees.values())))
    return {name: kinds.index((one.key, one.setup)) for name, one in trees.items()}
