# SPDX-License-Identifier: GPL-2.0-only
"""Identifies a benchmark by a digest of the files that become part of what is run."""

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

from ream.count.emulator import plugin_sources
from ream.experiment import Experiment, Stage, load
from ream.kernel.arch import X86_64, Arch
from ream.kernel.variant import hosting_files
from ream.paths import CHECKOUT, KERNEL_MODULES, MARKS
from ream.program.ran import computer_folder
from ream.record.identity import DIGITS
from ream.session.guests import VM_CONFIG
from ream.session.live import live_of
from ream.session.vm import guests_of
from ream.stage import initramfs, workload
from ream.stage.bench import MEMMAP_FACTS, config_files, fragments_of, kernel_side
from ream.stage.computer import computer_files
from ream.stage.hosted import programs_of
from ream.stage.link import COMPILER_FLAGS, LINK_FLAGS, host_headers, host_sources, linker_scripts
from ream.stage.steps import steps_of
from ream.stage.workload import Workload

_INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)


def benchmark_id(
    experiment: Experiment, stage: Stage, *, counted: bool = False, arch: Arch = X86_64
) -> str:
    """Return a digest of the files that become part of the benchmark of an experiment at a stage.

    Numbers with different digests are not comparable: what is timed may differ. The measured kernel
    code is not part of the digest; the receipt names it by tree and series.
    counted: whether the run counts, so that the plugin is included. arch: the architecture of
    hosted kernels.
    """
    digest = hashlib.sha256("\0".join(_flags(stage, arch)).encode())
    used = benchmark_files(experiment, stage, arch).union(plugin_sources() if counted else ())
    files = {_name(path, experiment): path for path in used}
    for name in sorted(files):
        content = hashlib.sha256(files[name].read_bytes()).hexdigest()
        digest.update(f"{name}\0{content}\n".encode())
    return digest.hexdigest()[:DIGITS]


def benchmark_files(experiment: Experiment, stage: Stage, arch: Arch = X86_64) -> frozenset[Path]:
    """Return all files of the project that are compiled, included, linked or configured with."""
    programs = _programs(experiment, stage)
    sources = tuple(path for one in programs for path in one.sources)
    if stage == "native":
        folders = [one.folder for one in programs_of(experiment)]
        used = {path for folder in folders for path in _hosted_files(folder, sources, arch)}
        if steps := steps_of(experiment):
            used = {*steps.files, *computer_files(computer_folder())}
        scripts = (*linker_scripts(arch), *hosting_files(arch))
        return frozenset((*used, *scripts, *_fragments(experiment)))
    if stage == "live":
        return frozenset(_with_headers(sources, {MARKS.name: MARKS}))
    modules = (KERNEL_MODULES / name for name in guests_of(experiment).modules)
    configs = (VM_CONFIG, *_fragments(experiment))
    its = (*sources, *initramfs.init_sources(experiment.folder), *_whole(modules), *configs)
    return frozenset(_with_headers(its, {path.name: path for path in (*MEMMAP_FACTS, MARKS)}))


def _hosted_files(folder: Path, sources: Iterable[Path], arch: Arch) -> Iterator[Path]:
    """Yield the files of one native program. sources: files besides those of the folder."""
    homes = list(_whole(kernel_side(folder, arch=arch)))
    headers = (path for home in host_headers(arch) for path in home.glob("*.h"))
    places = {path.name: path for path in (*headers, *homes)}
    yield from _with_headers((*sources, *homes, *host_sources(folder, arch)), places)
    yield from (folder / "objects", *fragments_of(folder))


def _name(path: Path, experiment: Experiment) -> str:
    """A file's name relative to the checkout, or to the folder of an experiment outside of it."""
    place = CHECKOUT if path.is_relative_to(CHECKOUT) else experiment.folder
    return str(path.relative_to(place))


def _programs(experiment: Experiment, stage: Stage) -> tuple[Workload, ...]:
    if stage == "native":
        return tuple(workload for one in programs_of(experiment) for workload in one.programs)
    return guests_of(experiment).programs if stage == "vm" else live_of(experiment).programs


def _fragments(experiment: Experiment) -> tuple[Path, ...]:
    """Return the configuration fragments that rows in the experiment's file name."""
    rows = load(experiment.folder).rows
    return config_files(dict.fromkeys(name for row in rows for name in row.config))


def _flags(stage: str, arch: Arch) -> tuple[str, ...]:
    if stage == "native":
        return (*COMPILER_FLAGS, *LINK_FLAGS)
    program = ("gcc" if arch == X86_64 else f"{arch.cross}gcc", *workload.FLAGS)
    return (*program, *((*program, *initramfs.FLAGS) if stage == "vm" else ()))


def _whole(places: Iterable[Path]) -> Iterator[Path]:
    """Yield only sources, since tools may leave their own files beside them."""
    for place in places:
        files = [place] if place.is_file() else sorted(place.rglob("*"))
        yield from (one for one in files if one.is_file() and not one.name.startswith("."))


def _with_headers(
    sources: Iterable[Path], homes: Mapping[str, Path] = MappingProxyType({})
) -> Iterator[Path]:
    """Yield the sources and the project's headers that they include in quotes.

    homes: files by name that lie beside the sources only when they are compiled.
    """
    left, seen = list(sources), set[Path]()
    folders = sorted({path.parent for path in left})
    while left:
        if (path := left.pop()) in seen:
            continue
        seen.add(path)
        for name in _INCLUDE.findall(path.read_text(encoding="utf-8")):
            beside = (folder / name for folder in (path.parent, *folders))
            found = next((one.resolve() for one in beside if one.is_file()), homes.get(name))
            left += [found] if found else []
    yield from seen
