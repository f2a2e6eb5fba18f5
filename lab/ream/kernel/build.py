# SPDX-License-Identifier: GPL-2.0-only
"""Runs kbuild with the same commands for every variant, independent of the user's environment."""

import functools
import json
import os
import re
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path

from ream.command import Command, require, run, stream
from ream.errors import BadUsage, CannotRunHere, ReamError
from ream.kernel import confine, store
from ream.kernel.arch import X86_64, Arch, Target, arch_of
from ream.kernel.cache import Step, disk_faults, locked
from ream.progress import counting

CONFIGURE_S = 120.0
PREPARE_S = 600.0
COMPILE_S = 1200.0
VERSION_S = 20.0

BUILD = "build"
"""The build directory inside the tree. kbuild then records the source as `..` in every command, so
that a clone of both is up to date at any path."""

FRAGMENT = "ream.config"
"""Name of the fragment's copy in the build directory, as merge_config.sh splits paths at spaces."""

CC = "ream.cc"
"""File in the build directory that names the compiler, if it is not gcc, which is used from the
configuration on. Clones copy it, so that all objects of a build are from one compiler."""

GCC = "gcc"

BUILT = "built.json"
"""File beside a variant's tree with the names of the objects that were built in it."""

_OURS: Mapping[str, str] = {
    "KBUILD_BUILD_TIMESTAMP": "Thu Jan  1 00:00:00 UTC 1970",
    "KBUILD_BUILD_USER": "ream",
    "KBUILD_BUILD_HOST": "ream",
    "KBUILD_BUILD_VERSION": "1",
    # `make test` must not pass on its own options and job server.
    "MAKEFLAGS": "",
    "MAKELEVEL": "",
    "MFLAGS": "",
}
"""Environment that makes a build reproducible."""

_NOT_THE_USERS = (
    *("CROSS_COMPILE", "LLVM", "LOCALVERSION", "KBUILD_EXTMOD", "INSTALL_MOD_PATH"),
    *("KCFLAGS", "KAFLAGS", "KCPPFLAGS", "HOSTCFLAGS", "HOSTLDFLAGS", "KBUILD_VERBOSE"),
)
"""Variables that are emptied on make's command line, as kbuild would use the environment's."""


_IF = re.compile(r"\s*# with(?P<out>out)? (?P<name>\w+)$", re.MULTILINE)
"""Comment at the end of a fragment's line: an option that a tree must have, or must not have."""

GREP_S = 60.0


_COMPILES = re.compile(r"  (?:CC|AS)(?: +\[M\])? +(?!/)\S+\.o$")
"""A line in which kbuild reports that it compiles an object. For its own tools, which do not match,
it prints the absolute path."""

_WOULD_COMPILE = re.compile(r"echo '" + _COMPILES.pattern.removesuffix("$"))
"""Matches the same line in the commands of a dry run."""

ARCH = "ream.arch"
"""File in the build directory with the name of the architecture, if it is not x86-64."""


def make(
    tree: Path,
    targets: Sequence[str],
    *,
    deadline_s: float,
    nr_jobs: int | None = None,
    talks: bool = False,
    out: str | Path = BUILD,
    target: Target | None = None,
) -> Command:
    """Return the command that builds targets of a tree in its build directory, on all usable CPUs.

    talks: print a line for each file that is made, as "  CC      mm/mm_init.o".
    out: another build directory. target: the target; None: that of the build directory.
    """
    target = target or arch_built(tree / out).target
    nr_jobs = nr_jobs or len(os.sched_getaffinity(0))
    quiet = () if talks else ("-s",)
    tools = (f"ARCH={target.arch}", f"CC={compiler(target, _chosen(tree / out))}")
    fixed = (*tools, *(f"{name}=" for name in _NOT_THE_USERS))
    # make uses the last of two values of one variable.
    cross = (f"CROSS_COMPILE={target.cross}",) if target.cross else ()
    module = [Path(one.partition("=")[2]) for one in targets if one.startswith("KBUILD_EXTMOD=")]
    confined = confine.words(tree / out, *module)
    argv = (*confined, "make", *quiet, f"-j{nr_jobs}", f"O={out}", *fixed, *cross, *targets)
    # A confined compiler may write temporary files only there.
    own = {"TMPDIR": str(tree / out)} if confined else {}
    return Command(argv, tree, deadline_s, {**_OURS, **store.environment(), **own})


def compiler(target: Target = X86_64.target, cc: str = GCC) -> str:
    """Return the compiler for kbuild, through ccache if that is installed."""
    named = f"{target.cross}{cc}"
    return f"{store.PROGRAM} {named}" if store.is_there() else named


def _chosen(build: Path) -> str:
    """Return the compiler that a build directory was configured for."""
    try:
        return (build / CC).read_text(encoding="utf-8")
    except OSError:
        return GCC


def arch_built(build: Path) -> Arch:
    """Return the architecture that a build directory was configured for."""
    try:
        return arch_of((build / ARCH).read_text(encoding="utf-8"))
    except OSError:
        return X86_64


def configure(tree: Path) -> tuple[Command, ...]:
    """Return the commands that configure a tree: tinyconfig with build/FRAGMENT on top."""
    confined = confine.words(tree)
    merge = (*confined, "sh", "scripts/kconfig/merge_config.sh", "-m", "-O", BUILD)
    return (
        make(tree, ["tinyconfig"], deadline_s=CONFIGURE_S),
        Command((*merge, f"{BUILD}/.config", f"{BUILD}/{FRAGMENT}"), tree, CONFIGURE_S, _OURS),
        reconfigure(tree),
    )


def require_whole(tree: Path) -> None:
    """Raise BadUsage for a tree without files that every build needs."""
    for folder in (f"arch/{arch_built(tree / BUILD).folder}", "include", "init", "scripts"):
        if not (tree / folder).is_dir():
            raise BadUsage(
                f"the kernel tree is not whole: it has no {folder}; give a whole one, or only the"
                " patch, as `git format-patch` writes it"
            )


def reconfigure(tree: Path) -> Command:
    """Return the command that updates a .config: new options get defaults, old ones are dropped."""
    return make(tree, ["olddefconfig"], deadline_s=CONFIGURE_S)


def suited(fragment: str, tree: Path, arch: Arch = X86_64) -> str:
    """Return the lines of a fragment that apply to a tree, since kernels have different options.

    A line that ends in `# with NAME` or `# without NAME` applies if a Kconfig file of the tree has
    an option of that name, or if none has. Files of other architectures do not count.
    """
    asked = sorted({found["name"] for found in _IF.finditer(fragment)})
    if not asked:
        return fragment
    held = declared(tree, tuple(asked), arch)
    return "\n".join(
        line[: found.start()] if found else line
        for line in fragment.splitlines()
        if not (found := _IF.search(line)) or (found["name"] in held) == (not found["out"])
    )


@functools.cache
def declared(tree: Path, names: tuple[str, ...], arch: Arch = X86_64) -> frozenset[str]:
    """Return those of the options that Kconfig files of a tree define for an architecture."""
    pattern = rf"^\s*(menu)?config ({'|'.join(names)})$"
    argv = ("grep", "-roE", "--include=Kconfig*", pattern, ".")
    try:
        said = run(Command(argv, tree, GREP_S))
    except ReamError:  # none is defined
        said = ""
    others, own = "./arch/", f"./arch/{arch.folder}/"
    found = (line for line in said.splitlines() if own in line or not line.startswith(others))
    return frozenset(line.split()[-1] for line in found if "/" in line)


def unmet_options(fragment: str, config: str) -> tuple[str, ...]:
    """Return the fragment's lines that a .config does not satisfy.

    An option is also off if a dependency is off; .config does not name it then.
    """
    asked, held = options(fragment), options(config)
    return tuple(
        f"CONFIG_{name}: asked for {value}, got {held.get(name, 'n')}"
        for name, value in asked.items()
        if held.get(name, "n") != value
    )


def options(text: str) -> dict[str, str]:
    """Return options, without CONFIG_, and their values in a fragment or .config; off is "n"."""
    found = {}
    for line in _IF.sub("", text).splitlines():
        if match := re.fullmatch(r"CONFIG_(\w+)=(.*)", line.strip()):
            found[match[1]] = match[2]
        elif match := re.fullmatch(r"# CONFIG_(\w+) is not set", line.strip()):
            found[match[1]] = "n"
    return found


def compiler_version(cc: str = GCC, arch: Arch = X86_64) -> str:
    """Return the first line of `CC --version`; raises CannotRunHere without such a compiler."""
    if cc == GCC:
        cc = arch.tool(cc)
        require(cc)
    elif not arch.is_here:
        raise CannotRunHere(f"--cc {cc}: kernels of another architecture are compiled with gcc")
    elif shutil.which(cc) is None:
        raise CannotRunHere(f"--cc {cc}: not installed")
    require("make")
    return run(Command((cc, "--version"), Path("/"), VERSION_S)).splitlines()[0]


def plan_objects(variant_tree: Path, targets: Sequence[str]) -> tuple[Command, ...]:
    """Return the commands that compile objects of an assembled variant."""
    # kbuild reaches arch/x86/lib directly and through arch/x86. For an object of it, 6.12 compiles
    # in both ways, with parallel jobs into the same file at the same time. One after the other,
    # the second way, which is the proper one, decides.
    folder = arch_built(variant_tree / BUILD).reached_twice
    twice = [target for target in targets if folder and target.startswith(folder)]
    once = [target for target in targets if target not in twice]
    plan = []
    if once:
        plan.append(make(variant_tree, once, deadline_s=COMPILE_S, talks=True))
    if twice:
        plan.append(make(variant_tree, twice, deadline_s=COMPILE_S, nr_jobs=1, talks=True))
    return tuple(plan)


def build_objects(
    variant_tree: Path, targets: Sequence[str], *, step: Step, named: str = "parts of a kernel"
) -> dict[str, Path]:
    """Build objects of an assembled variant; return their paths by name, as "mm/mm_init.o".

    named: a description for messages, as "6.12.117 for fork". Objects that were built before are
    not built again, since the tree never changes after `assemble`.
    Raises ReamError with the compiler's first error, CannotRunHere if the disk is full.
    """
    objects = {target: variant_tree / BUILD / target for target in targets}
    entry = variant_tree.parent
    with disk_faults(entry.parent, "building"), locked(entry, step):
        built = _built(entry)
        missing = [name for name, path in objects.items() if name not in built or not path.exists()]
        if missing:
            plan = plan_objects(variant_tree, missing)
            total = partial(_nr_objects, plan, [objects[name] for name in missing])
            with counting(step, f"compiling {named}", "object", total) as done:
                for command in plan:
                    _make(command, done)
            (entry / BUILT).write_text(json.dumps(sorted(built | set(missing))))
    return objects


def _make(command: Command, done: Callable[[], None]) -> None:
    """Run make; done() is called for each object that it compiles."""
    with closing(stream(command)) as lines:
        for line in lines:
            if _COMPILES.match(line):
                done()


def _nr_objects(plan: Sequence[Command], targets: Iterable[Path]) -> int | None:
    """Return how many objects a plan compiles; None if that is not known.

    If all objects exist, they were cloned, and a dry run that finds outdated ones would take as
    long as compiling these. It is not known either if a dry run fails; the build then fails, too.
    """
    if all(path.exists() for path in targets):
        return None
    try:
        said = "\n".join(run(replace(one, argv=(*one.argv, "--dry-run"))) for one in plan)
    except ReamError:
        return None
    return len(_WOULD_COMPILE.findall(said))


def _built(entry: Path) -> set[str]:
    try:
        return set(json.loads((entry / BUILT).read_text()))
    except (OSError, ValueError, TypeError):
        return set()
