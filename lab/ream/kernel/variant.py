# SPDX-License-Identifier: GPL-2.0-only
"""Variants: a pristine tree plus patches plus our homes, configured, cached by content.

A variant is a clone of a prepared base. Its source files are hard links to the pristine tree,
so whatever changes one must put a new file in its place, and git apply does. Its build
directory is a copy, in which kbuild finds everything done but what the patches touch.
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
"""What a clone takes: 25 MB of directories, a build directory of 10 MB, and objects."""

CLONE_S = 300.0
APPLY_S = 60.0

WHOLE = "whole.json"
"""Beside a variant's tree, once all that is wanted of it is built."""

BUILDING = "building"
"""Beside a variant's tree, while kbuild writes there. If it is still there and nobody holds the
lock, that was killed: what it left may be half written, and kbuild would take it for done."""

HOME = "ream"
"""The directory in a variant's tree that our kernel-side files are copied to."""

_BUT_FOR_SPACE = (
    "; it would but for white space, which a mail program may have changed: take the mail from its"
    " archive (a Message-ID does), or a file of git format-patch"
)

_APART_FROM_ANY_REPOSITORY = {
    # git apply in a directory of somebody's repository would skip what that does not track.
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
    """A variant's source tree, patched, configured and prepared; made now if not in the cache.

    fragments: merged over tinyconfig, the later over the earlier, and then what the patches say
        to a fragment of that name; every option asked for in the end holds in the result.
    homes: our files that kbuild compiles beside the kernel's, and directories of such files;
        they end up flat in the tree's ream/, so "ream/glue.o" is a target of `build_objects`.
        A Makefile among them is used; else every .c and .S is one object.
    probes: files of them; ream/have.h then says what the tree has.
    step: told what is being done. room_bytes: disk space that there must be for a new one.
    If a variant with the first of these patches, or none, is built (`build_objects`; without homes,
    whole: `build_image`), what was built is in the new one's build directory, and kbuild makes anew
    only what the rest change.
    Raises DoesNotApply naming patch, file, hunk and tree if a patch does not, CannotRunHere if this
    machine cannot build, ReamError with a tool's first error. The cache is then as it was.
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
    """What all of them say to a tree, in order, and then what somebody asks for besides."""
    texts = (*(one.read_text(encoding="utf-8") for one in fragments), tree.setup.asked)
    return suited("\n".join(filter(None, texts)), tree.path, tree.setup.target)


def _base_key(tree: Tree, fragment: str) -> str:
    return _digest([*_tools(tree), fragment])


def _tools(tree: Tree) -> list[str | int]:
    """What a base is made of besides its configuration."""
    # ccache is in every command that kbuild records; without it nothing is.
    through = compiler().split()[:-1]
    arch = tree.setup.target
    version = compiler_version(tree.setup.cc, arch)
    hosting = [patch.diff_sha256 for patch in _hosting(arch)]
    other = () if arch == X86_64 else (arch.name, *hosting)
    return [LAYOUT, tree.key, version, *through, *other]


def _make_room(variants: Path, room_bytes: int, step: Step) -> None:
    """Remove what is unfinished or was not used for long; raises CannotRunHere if that is short."""
    sweep(variants, step)
    prune(variants, unused_since=long_ago())
    spare(variants, room_bytes)
    need_space(variants, room_bytes, "a variant of the kernel source")


def _configure_late(
    variant: Path, fragment: str, late: str, patches: Sequence[Patch], tree: Tree
) -> None:
    """Add options that patches bring; of two lines for one the last counts, as in a merge."""
    if not late and not _touches_configuration(patches):
        return
    _append(variant / BUILD / ".config", late)
    run(reconfigure(variant))
    _check_options(f"{fragment}\n{late}", variant, tree)


# --- Applying patches ------------------------------------------------------------------


class DoesNotApply(BadUsage):
    """A patch is not for the tree that it was tried on."""

    def __init__(
        self, patch: Patch, why: str, tree: str | None = None, elsewhere: str = ""
    ) -> None:
        way_out = "" if tree is None else self._way_out(patch, tree, elsewhere)
        super().__init__(f"{patch.name}: {why}{way_out}")
        self.patch = patch
        self.why = why

    @property
    def short(self) -> str:
        """Without the tree and the way out, for those who know both."""
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

    Strictly: context must match exactly, only line numbers may be off. git apply replaces
    files, never writes into them, and refuses paths that lead out of the tree. only: a pattern of
    files; what patches do to others is left out.
    Raises DoesNotApply for the first that does not; the tree is then half patched.
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
    """Apply patches to copies of the files they touch: a bad one is then told in no time.

    Raises what `apply` raises, with the tree and the way out; the tree stays as it is.
    cache: where a kernel source may be to which they do apply.
    """
    with patched_files(patches, tree, cache=cache):
        pass


@contextmanager
def patched_files(patches: Sequence[Patch], tree: Tree, *, cache: Path) -> Iterator[Path]:
    """A folder with the files of a tree that patches touch, as they leave them; as rehearse()."""
    with tempfile.TemporaryDirectory() as scratch:
        copy_files(tree.path, _touched(patches), into=Path(scratch))
        _apply_copies(patches, Path(scratch), tree.label, cache)
        yield Path(scratch)


def try_to_apply(patches: Sequence[Patch], tree: Wanted, *, cache: Path) -> str | None:
    """Rehearse patches on what `fetch_tree` would give, if it is here already; its label.

    None if it would have to be fetched or unpacked first. Raises as `rehearse` does, and BadUsage
    if --tree is not usable.
    """
    with tempfile.TemporaryDirectory() as scratch:
        label = peek(tree, _touched(patches), into=Path(scratch), cache=cache)
        if label is not None:
            _apply_copies(patches, Path(scratch), label, cache)
        return label


def _touched(patches: Sequence[Patch]) -> list[str]:
    """The files that patches touch; of what leads out of the tree, git apply will tell."""
    names = {PurePosixPath(name) for patch in patches for name in files(patch)}
    return sorted(str(name) for name in names if not name.is_absolute() and ".." not in name.parts)


def _apply_copies(patches: Sequence[Patch], copies: Path, label: str, cache: Path) -> None:
    try:
        apply(patches, copies)
    except DoesNotApply as cause:
        elsewhere = _elsewhere(patches, label, cache)
        raise DoesNotApply(cause.patch, cause.why, label, elsewhere) from cause


def _elsewhere(patches: Sequence[Patch], label: str, cache: Path) -> str:
    """The kernel source nearest to that of a label to which patches apply, of those in the cache.

    Nearest: the fewest of the others lie between, in the order of their versions. If there is none,
    the bases that could not be tried.
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
    """Why git apply refused a patch, in one line: which file, which hunk, and where it was for."""
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
    """The base that variants are cloned from: no patches, configured, `make prepare` done."""
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
    """Clone a base with another configuration; whether there is one that is made of the same.

    kbuild's own programs take most of the time that a base takes, and are the same in each. kbuild
    makes again what depends on the configuration. This never waits for a base that is being made.
    """
    others = (stamp.parent for stamp in sorted(entry.parent.glob(f"*/{STAMP}")))
    return any(
        _clone_built(other, base, STAMP, step)
        for other in others
        if other != entry and (stamp_of(other) or {}).get("tools") == tools
    )


def hosting_files(arch: Arch) -> list[Path]:
    """The patches that kernels of an architecture need for their objects to be a program's."""
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
    """Clone the longest beginning of a series that is built; how many patches it has.

    None where there is none, and then nothing is cloned. entry: the variant's own. hosted: beside
    files of ours, so that some objects are built, else all of a kernel. Nobody waits for us who
    builds what we wait for: a beginning is always shorter.
    """
    built = BUILT if hosted else WHOLE
    for count in reversed(range(len(patches))):
        if hosted and "Kbuild" in files(patches[count]):
            return None  # the beginning's names our files, too
        beginning = entry.with_name(key_of(patches[:count]))
        if (beginning / built).is_file() and _clone_built(beginning, variant, built, step):
            return count
    return None


def _late_options(patches: Sequence[Patch], fragments: Sequence[Path]) -> str:
    """What patches say to these fragments, in order."""
    names = {file.name for file in fragments}
    return "\n".join(text for patch in patches for name, text in patch.options if name in names)


def _append(file: Path, text: str) -> None:
    """Lengthen a file of a variant's own."""
    if text:
        with file.open("a", encoding="utf-8") as opened:
            opened.write(f"\n{text}\n")


def _clone_built(entry: Path, variant: Path, built: str, step: Step) -> bool:
    """Clone a variant with what was built in it, if a file beside its tree still says so."""
    with locked(entry, step):
        if not (_is_whole(entry) and (entry / built).is_file()):
            return False
        touch(entry)
        _clone(entry / "linux", variant)
    return True


def _relocate(build: Path, old: Path, new: Path) -> None:
    """Have the tools' recorded commands name the place to which their tree goes.

    kbuild proper records relative paths, tools/ absolute ones: unless they are changed,
    objtool is built again in every clone, which takes longer than all objects we want.
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
    """Every file that goes into the tree's ream/, by the name it has there."""
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
    """Raise BadUsage where a kernel with these patches has files in the place of ours."""
    theirs = [name for name in _touched(patches) if name.startswith(f"{HOME}/")]
    if names and ((tree.path / HOME).exists() or theirs):
        raise BadUsage(f"the kernel tree has a {HOME}/ of its own, where ours has to go")


def _furnish(variant: Path, names: dict[str, Path]) -> None:
    """Put our files into ream/ and make kbuild go there."""
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
    """Give a tree a new file: the old one is shared with every other variant."""
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
    """The name of a variant in the cache: all that it is made of."""
    made_of = [base_key, [patch.diff_sha256 for patch in patches], content]
    return _digest([*made_of, *filter(None, [_late_options(patches, fragments)])])


def _sha256(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def compiled_for(tree: Tree, patches: Sequence[Patch], purpose: str) -> str:
    """What is compiled for which purpose, in few words, for people."""
    changed = f" with {what(patches)}" if patches else ""
    return f"{tree.version}{changed} for {purpose}"


def what(patches: Sequence[Patch]) -> str:
    """Patches in few words, for people."""
    if not patches:
        return "the base"
    last = patches[-1]
    return f"{last.name}" if len(patches) == 1 else f"{len(patches)} patches up to {last.name}"
