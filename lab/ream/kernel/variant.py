# SPDX-License-Identifier: GPL-2.0-only
"""Variants: a pristine tree with patches and ream's own files, configured and cached by content.

A variant is a clone of a prepared base. Its source files are hard links to the pristine tree, so
changing one means replacing it by a new file, as git apply does. Its build directory is a copy, in
which kbuild finds everything up to date except what the patches touch.
"""

import functools
import hashlib
import json
import re
import shutil
import tempfile
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path, PurePosixPath

from ream.command import Command, finished, run
from ream.counted import counted
from ream.errors import BadUsage, CannotRunHere, ReamError
from ream.folders import base_names, version_numbers
from ream.kernel.arch import X86_64, Arch
from ream.kernel.base import base_named
from ream.kernel.build import (
    ARCH,
    BUILD,
    BUILT,
    CC,
    FRAGMENT,
    GCC,
    PREPARE_S,
    compiler,
    compiler_version,
    configure,
    make,
    reconfigure,
    require_whole,
    suited,
    unmet_options,
)
from ream.kernel.cache import (
    LAYOUT,
    STAMP,
    Step,
    appearing,
    disk_faults,
    locked,
    long_ago,
    need_space,
    prune,
    spare,
    stamp_of,
    sweep,
    touch,
)
from ream.kernel.diff import hunks, starts_at_top
from ream.kernel.probes import write_header
from ream.kernel.series import Patch, files, load_series
from ream.kernel.setup import check_options
from ream.kernel.source import Tree, Wanted, cached_tree, copy_files, peek, unpacked_trees
from ream.paths import KERNEL_HOSTED

VARIANT_BYTES = 120_000_000
"""Disk space of a clone: 25 MB of directories, a build directory of 10 MB, and objects."""

CLONE_S = 300.0
APPLY_S = 60.0

WHOLE = "whole.json"
"""File beside a variant's tree that exists when everything requested is built."""

BUILDING = "building"
"""File beside a variant's tree while kbuild writes there. If it exists and the lock is free, kbuild
was killed, and may have left half-written files that look complete."""

HOME = "ream"
"""The directory in a variant's tree to which ream's kernel-side files are copied."""

_BUT_FOR_SPACE = (
    "; it would but for white space, which a mail program may have changed: take the mail from its"
    " archive (a Message-ID does), or a file of git format-patch"
)

_APART_FROM_ANY_REPOSITORY = {
    # Inside a repository, git apply would skip files that the repository does not track.
    "GIT_DIR": "/dev/null",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
}


def assemble(
    tree: Tree,
    patches: Sequence[Patch],
    *,
    cache: Path,
    fragments: Sequence[Path],
    homes: Sequence[Path],
    probes: Sequence[Path] = (),
    step: Step,
    room_bytes: int = VARIANT_BYTES,
) -> Path:
    """Return a variant's tree: patched, configured and prepared. It is made if not in the cache.

    fragments: merged on top of tinyconfig, later ones over earlier ones, followed by the patches'
        options for a fragment of that name. All options must hold in the result.
    homes: ream's files that kbuild compiles beside the kernel's, and directories of such files.
        They are copied flat into the tree's ream/, so "ream/glue.o" is a target of
        `build_objects`. A Makefile among them is used; else every .c and .S is one object.
    probes: files of probes, for ream/have.h.
    step: called with each action. room_bytes: disk space that a new variant needs.
    If a variant with a prefix of the patches is built (by `build_objects`, or without homes by
    `build_image`), its build is copied, and kbuild makes only what the other patches change.
    Raises DoesNotApply naming patch, file, hunk and tree if a patch does not apply, CannotRunHere
    if this machine cannot build, ReamError with a tool's first error. The cache is then unchanged.
    """
    cache = cache.resolve()
    _check_place(cache)
    with disk_faults(cache, "preparing a variant"):
        fragment = _fragment_for(tree, fragments)
        base_key = _base_key(tree, fragment)
        names = _home_files(homes)
        content = [(one.name, _sha256(one)) for one in (*names.values(), *probes)]

        key_of = functools.partial(_variant_key, base_key, content, fragments)
        late = _late_options(patches, fragments)
        entry = cache / "variant" / key_of(patches)
        with locked(entry, step):
            if _is_whole(entry):
                touch(entry)
                return entry / "linux"
            rehearse(patches, tree, cache=cache)
            _check_home(tree, patches, names)
            base = _prepared(tree, fragment, cache / "base" / base_key, step)
            _make_room(entry.parent, room_bytes, step)
            with appearing(entry, lambda: {"tree": tree.label}) as partial:
                variant = partial / "linux"
                step(f"assembling {what(patches)}")
                begun = _begin(key_of, patches, variant, entry, hosted=bool(names), step=step)
                if begun is None:
                    _clone(base, variant)
                apply(patches[begun or 0 :], variant)
                if begun is None:
                    _furnish(variant, names)
                _configure_late(variant, fragment, late, patches, tree)
                write_header(variant / HOME, probes, tree=variant, label=tree.label)
                _relocate(variant / BUILD, variant, entry / "linux")
        return entry / "linux"


def _fragment_for(tree: Tree, fragments: Sequence[Path]) -> str:
    """Join the parts of fragments that suit a tree, in order, and then the options asked for."""
    texts = (*(one.read_text(encoding="utf-8") for one in fragments), tree.setup.asked)
    return suited("\n".join(filter(None, texts)), tree.path, tree.setup.target)


def _base_key(tree: Tree, fragment: str) -> str:
    return _digest([*_tools(tree), fragment])


def _tools(tree: Tree) -> list[str | int]:
    """Return what a base depends on besides its configuration."""
    # kbuild records ccache, if it is used, in every command.
    through = compiler().split()[:-1]
    arch = tree.setup.target
    version = compiler_version(tree.setup.cc, arch)
    hosting = [patch.diff_sha256 for patch in _hosting(arch)]
    other = () if arch == X86_64 else (arch.name, *hosting)
    return [LAYOUT, tree.key, version, *through, *other]


def _make_room(variants: Path, room_bytes: int, step: Step) -> None:
    """Remove unfinished and unused entries; raises CannotRunHere if there is still no room."""
    sweep(variants, step)
    prune(variants, unused_since=long_ago())
    spare(variants, room_bytes)
    need_space(variants, room_bytes, "a variant of the kernel source")


def _configure_late(
    variant: Path, fragment: str, late: str, patches: Sequence[Patch], tree: Tree
) -> None:
    """Add the options of patches; the last of two lines for an option applies, as in a merge."""
    if not late and not _touches_configuration(patches):
        return
    _append(variant / BUILD / ".config", late)
    run(reconfigure(variant))
    _check_options(f"{fragment}\n{late}", variant, tree)


# --- Applying patches ------------------------------------------------------------------


class DoesNotApply(BadUsage):
    """A patch does not apply to the tree that it was tried on."""

    def __init__(
        self, patch: Patch, why: str, tree: str | None = None, elsewhere: str = ""
    ) -> None:
        way_out = "" if tree is None else self._way_out(patch, tree, elsewhere)
        super().__init__(f"{patch.name}: {why}{way_out}")
        self.patch = patch
        self.why = why

    @property
    def short(self) -> str:
        """The error without the tree and the advice, for messages that already give both."""
        return f"{self.patch.name} {self.why}"

    @staticmethod
    def _way_out(patch: Patch, tree: str, elsewhere: str) -> str:
        ground = patch.ground
        base = f"; its series names base-commit {ground.commit}" if ground.commit else ""
        if nr := len(ground.prerequisites):
            base += (
                f" and {counted(nr, 'prerequisite patch', 'prerequisite patches')} on that, which"
                " `ream run --variant NAME=TREE+THEIRS+YOURS` puts before it"
            )
        return f"; tried on {tree}{base}{elsewhere}; --tree DIR takes another kernel source"


def apply(patches: Sequence[Patch], tree: Path, *, only: str = "*") -> None:
    """Apply patches in order to a tree whose files may be hard links to another's.

    Context must match exactly; only line numbers may differ. git apply replaces files and never
    writes into them, and refuses paths that lead out of the tree. only: a pattern of files; changes
    of other files are left out.
    Raises DoesNotApply for the first patch that does not; the tree is then half patched.
    """
    for patch in patches:
        with tempfile.NamedTemporaryFile(suffix=".patch") as file:
            file.write(patch.body)
            file.flush()
            words = ("git", "apply", "-p1", "--whitespace=nowarn", f"--include={only}", file.name)
            command = Command(words, tree, APPLY_S, _APART_FROM_ANY_REPOSITORY)
            try:
                run(command)
            except CannotRunHere:
                raise
            except ReamError as cause:
                why = refusal(patch, str(cause))
                if finished(replace(command, argv=(*words, "--check", "--ignore-whitespace")))[0]:
                    raise DoesNotApply(patch, why) from cause
                raise DoesNotApply(patch, f"{why}{_BUT_FOR_SPACE}") from cause


def rehearse(patches: Sequence[Patch], tree: Tree, *, cache: Path) -> None:
    """Apply patches to copies of the files that they touch, to find a bad patch quickly.

    Raises what `apply` raises, with the tree and advice; the tree is not changed.
    cache: the cache, which may have a kernel source to which they apply.
    """
    with patched_files(patches, tree, cache=cache):
        pass


@contextmanager
def patched_files(patches: Sequence[Patch], tree: Tree, *, cache: Path) -> Iterator[Path]:
    """Yield a folder with the patched versions of touched files; arguments as in rehearse()."""
    with tempfile.TemporaryDirectory() as scratch:
        copy_files(tree.path, _touched(patches), into=Path(scratch))
        _apply_copies(patches, Path(scratch), tree.label, cache)
        yield Path(scratch)


def try_to_apply(patches: Sequence[Patch], tree: Wanted, *, cache: Path) -> str | None:
    """Rehearse patches on what `fetch_tree` would return, if it is available; return its label.

    None if it would have to be fetched or unpacked first. Raises as `rehearse` does, and BadUsage
    if --tree is not usable.
    """
    with tempfile.TemporaryDirectory() as scratch:
        label = peek(tree, _touched(patches), into=Path(scratch), cache=cache)
        if label is not None:
            _apply_copies(patches, Path(scratch), label, cache)
        return label


def _touched(patches: Sequence[Patch]) -> list[str]:
    """Return the files that patches touch. Paths out of the tree are left to git apply."""
    names = {PurePosixPath(name) for patch in patches for name in files(patch)}
    return sorted(str(name) for name in names if not name.is_absolute() and ".." not in name.parts)


def _apply_copies(patches: Sequence[Patch], copies: Path, label: str, cache: Path) -> None:
    try:
        apply(patches, copies)
    except DoesNotApply as cause:
        elsewhere = _elsewhere(patches, label, cache)
        raise DoesNotApply(cause.patch, cause.why, label, elsewhere) from cause


def _elsewhere(patches: Sequence[Patch], label: str, cache: Path) -> str:
    """Return advice: the nearest kernel source in the cache to which patches apply.

    The nearest has the fewest others between it and that of the label, ordered by version. If there
    is none, the advice names the bases that could not be tried.
    """
    there = sorted(unpacked_trees(cache), key=lambda one: version_numbers(one[1].version))
    own = next((at for at, (_, tree) in enumerate(there) if tree.label == label), len(there))
    for _, (name, tree) in sorted(enumerate(there), key=lambda one: abs(one[0] - own)):
        if tree.label == label:
            continue
        with tempfile.TemporaryDirectory() as scratch:
            copy_files(tree.path, _touched(patches), into=Path(scratch))
            with suppress(DoesNotApply):
                apply(patches, Path(scratch))
                return f"; it applies to {tree.label}: {name}"
    absent = [name for name in base_names() if cached_tree(cache, base_named(name)) is None]
    return f"; not tried: {', '.join(absent)} (not fetched)" if absent else ""


def refusal(patch: Patch, said: str) -> str:
    """Return why git apply refused a patch, in one line: the file, the hunk and its place."""
    if match := re.search(r"patch failed: (.+):(\d+)$", said, re.MULTILINE):
        file, line = match[1], int(match[2])
        for hunk in hunks(patch.body):
            if (hunk.file, hunk.old_start) == (file, line):
                return f"does not apply: {file}: hunk {hunk.number} does not match ({hunk.header})"
        return f"does not apply: {file}: the hunk at line {line} does not match"
    errors = re.findall(r"(?m)error: (.*)$", said)
    if errors and not starts_at_top(errors[0]):
        errors[0] += " (its paths do not begin at the top of a kernel source)"
    return f"does not apply: {errors[0] if errors else said.splitlines()[-1]}"


def _touches_configuration(patches: Sequence[Patch]) -> bool:
    names = {PurePosixPath(file).name for patch in patches for file in files(patch)}
    return any(name.startswith("Kconfig") for name in names)


# --- Trees -----------------------------------------------------------------------------


def _prepared(tree: Tree, fragment: str, entry: Path, step: Step) -> Path:
    """Make the base from which variants are cloned: without patches, configured and prepared."""
    with locked(entry, step):
        if _is_whole(entry):
            return entry / "linux"
        sweep(entry.parent, step)
        need_space(entry.parent, VARIANT_BYTES, "a configured copy of the kernel source")
        tools = _digest(_tools(tree))
        with appearing(entry, lambda: {"tree": tree.label, "tools": tools}) as partial:
            base = partial / "linux"
            step(f"configuring {tree.label}")
            if not _begin_base(tools, base, entry, step):
                run(Command(("cp", "-al", str(tree.path), str(base)), partial, CLONE_S))
                apply(_hosting(tree.setup.target), base)
                (base / BUILD).mkdir()
            (base / BUILD / FRAGMENT).write_text(fragment, encoding="utf-8")
            if tree.setup.target != X86_64:
                (base / BUILD / ARCH).write_text(tree.setup.arch, encoding="utf-8")
            if tree.setup.cc != GCC:
                (base / BUILD / CC).write_text(tree.setup.cc, encoding="utf-8")
            try:
                for command in configure(base):
                    run(command)
            except ReamError:
                require_whole(base)
                raise
            _check_options(fragment, base, tree)
            step(f"preparing {tree.label}")
            run(make(base, ["prepare"], deadline_s=PREPARE_S))
            _relocate(base / BUILD, base, entry / "linux")
    return entry / "linux"


def _begin_base(tools: str, base: Path, entry: Path, step: Step) -> bool:
    """Clone a base with another configuration but the same tools; return whether there is one.

    Building kbuild's own programs takes most of the time of a base, and they are the same in each.
    kbuild rebuilds what depends on the configuration. This never waits for a base being made.
    """
    others = (stamp.parent for stamp in sorted(entry.parent.glob(f"*/{STAMP}")))
    return any(
        _clone_built(other, base, STAMP, step)
        for other in others
        if other != entry and (stamp_of(other) or {}).get("tools") == tools
    )


def hosting_files(arch: Arch) -> list[Path]:
    """Return the patches with which an architecture's kernel objects can be part of a program."""
    return sorted((KERNEL_HOSTED / arch.name).glob("*.patch"))


def _hosting(arch: Arch) -> tuple[Patch, ...]:
    files = hosting_files(arch)
    return load_series(files[0].parent).patches if files else ()


def _clone(base: Path, variant: Path) -> None:
    variant.mkdir()
    sources = sorted(str(path) for path in base.iterdir() if path.name != BUILD)
    run(Command(("cp", "-al", *sources, str(variant)), variant, CLONE_S))
    run(Command(("cp", "-a", str(base / BUILD), str(variant / BUILD)), variant, CLONE_S))
    _relocate(variant / BUILD, base, variant)


def _begin(
    key_of: Callable[[Sequence[Patch]], str],
    patches: Sequence[Patch],
    variant: Path,
    entry: Path,
    *,
    hosted: bool,
    step: Step,
) -> int | None:
    """Clone the longest prefix of a series that is built; return its number of patches.

    None if there is none; then nothing is cloned. entry: the variant's cache entry. hosted: whether
    it has ream's files, so that only some objects are built, or a whole kernel. Waiting runs do not
    deadlock, since a prefix is always shorter.
    """
    built = BUILT if hosted else WHOLE
    for count in reversed(range(len(patches))):
        if hosted and "Kbuild" in files(patches[count]):
            return None  # the prefix's names ream's files, too
        beginning = entry.with_name(key_of(patches[:count]))
        if (beginning / built).is_file() and _clone_built(beginning, variant, built, step):
            return count
    return None


def _late_options(patches: Sequence[Patch], fragments: Sequence[Path]) -> str:
    """Return the options of patches for these fragments, in order."""
    names = {file.name for file in fragments}
    return "\n".join(text for patch in patches for name, text in patch.options if name in names)


def _append(file: Path, text: str) -> None:
    """Append to a file that belongs to a variant alone."""
    if text:
        with file.open("a", encoding="utf-8") as opened:
            opened.write(f"\n{text}\n")


def _clone_built(entry: Path, variant: Path, built: str, step: Step) -> bool:
    """Clone a variant with its build, if the marker file beside its tree exists."""
    with locked(entry, step):
        if not (_is_whole(entry) and (entry / built).is_file()):
            return False
        touch(entry)
        _clone(entry / "linux", variant)
    return True


def _relocate(build: Path, old: Path, new: Path) -> None:
    """Change paths in the recorded commands of tools/ to the final path of their tree.

    kbuild proper records relative paths, but tools/ absolute ones. If they were not changed,
    objtool would be rebuilt in every clone, which takes longer than all wanted objects.
    """
    for record in (build / "tools").rglob(".*.cmd"):
        text = record.read_bytes()
        moved = text.replace(bytes(old) + b"/", bytes(new) + b"/")
        if moved != text:
            record.write_bytes(moved)


def _check_options(fragment: str, place: Path, tree: Tree) -> None:
    config = (place / BUILD / ".config").read_text(encoding="utf-8")
    if tree.setup.config:
        check_options(fragment, tree.setup, config, place, tree.label)
    if unmet := unmet_options(fragment, config):
        raise ReamError("the kernel configuration does not come out as asked:\n" + "\n".join(unmet))


def _is_whole(entry: Path) -> bool:
    return (
        stamp_of(entry) is not None
        and (entry / "linux" / BUILD / ".config").is_file()
        and not (entry / BUILDING).exists()
    )


# --- Our own files in the tree ---------------------------------------------------------


def _home_files(homes: Sequence[Path]) -> dict[str, Path]:
    """Return every file that is copied into the tree's ream/, by its name there."""
    found: dict[str, Path] = {}
    for home in homes:
        inside = sorted(home.iterdir()) if home.is_dir() else [home]
        for file in inside:
            if file.suffix not in (".c", ".h", ".S", ".def") and file.name != "Makefile":
                continue
            if file.name in found:
                raise ReamError(f"{file} and {found[file.name]} cannot both be {HOME}/{file.name}")
            found[file.name] = file
    return dict(sorted(found.items()))


def _check_home(tree: Tree, patches: Sequence[Patch], names: Collection[str]) -> None:
    """Raise BadUsage if a kernel with these patches has files at the paths of ream's."""
    theirs = [name for name in _touched(patches) if name.startswith(f"{HOME}/")]
    if names and ((tree.path / HOME).exists() or theirs):
        raise BadUsage(f"the kernel tree has a {HOME}/ of its own, where ours has to go")


def _furnish(variant: Path, names: dict[str, Path]) -> None:
    """Copy ream's files into ream/ and make kbuild build that directory."""
    if not names:
        return
    home = variant / HOME
    home.mkdir()
    for name, file in names.items():
        shutil.copyfile(file, home / name)
    if "Makefile" not in names:
        sources = [Path(name) for name in names if not name.endswith((".h", ".def"))]
        objects = " ".join(f"{source.stem}.o" for source in sources)
        (home / "Makefile").write_text(
            f"# SPDX-License-Identifier: GPL-2.0-only\nobj-y := {objects}\n"
        )
    _replace(variant / "Kbuild", (variant / "Kbuild").read_text() + f"\nobj-y += {HOME}/\n")


def _replace(file: Path, text: str) -> None:
    """Replace a tree's file by a new one, since the old file is shared with other variants."""
    file.unlink()
    file.write_text(text)


# --- Keys ------------------------------------------------------------------------------


def _check_place(cache: Path) -> None:
    if re.search(r"[\s:]", str(cache)):
        raise CannotRunHere(
            f"{cache}: kbuild cannot build below a path with a space or a colon; "
            "set XDG_CACHE_HOME to another"
        )


def _digest(content: object) -> str:
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()


def _variant_key(
    base_key: str, content: object, fragments: Sequence[Path], patches: Sequence[Patch]
) -> str:
    """Return a variant's key in the cache, a digest of all that it is made of."""
    made_of = [base_key, [patch.diff_sha256 for patch in patches], content]
    return _digest([*made_of, *filter(None, [_late_options(patches, fragments)])])


def _sha256(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def compiled_for(tree: Tree, patches: Sequence[Patch], purpose: str) -> str:
    """Return a short description of what is compiled for which purpose."""
    changed = f" with {what(patches)}" if patches else ""
    return f"{tree.version}{changed} for {purpose}"


def what(patches: Sequence[Patch]) -> str:
    """Return a short description of patches."""
    if not patches:
        return "the base"
    last = patches[-1]
    return f"{last.name}" if len(patches) == 1 else f"{len(patches)} patches up to {last.name}"
