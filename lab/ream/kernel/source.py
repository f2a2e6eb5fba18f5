# SPDX-License-Identifier: GPL-2.0-only
"""Kernel sources of bases or of --tree; they are unpacked once and cached by content."""

import hashlib
import logging
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

from ream.command import Command, finished, require, run
from ream.errors import BadUsage, ReamError
from ream.folders import base_names
from ream.kernel import archive
from ream.kernel.base import LATEST_BASE, Base, base_named, default_base, newest_package
from ream.kernel.cache import (
    STAMP,
    Step,
    appearing,
    disk_faults,
    disk_full,
    locked,
    need_space,
    stamp_of,
    sweep,
    workroom,
)
from ream.kernel.setup import OURS, Setup

log = logging.getLogger(__name__)

LATEST = Path("latest")
"""Value of --tree that asks the archive again although a tree of it is in the cache."""

TREE_BYTES = 1_800_000_000
"""Disk space of an unpacked 7.3, with a margin (6.12 takes 1.64 GB in 92,000 files)."""

PACKAGE_BYTES = 320_000_000
"""Disk space of the package and its tar ball, which are kept until the tree is unpacked."""

EXPANSION = 12
"""Ratio of an unpacked tree's disk space to its tar ball; it is 10.7 for Debian's .tar.xz."""

UNPACK_S = 900.0

_DECOMPRESSORS = (
    (b"\xfd7zXZ\x00", "xz -T0"),  # all CPUs: 14 s instead of 24 s with one
    (b"\x1f\x8b", "gzip"),
    (b"BZh", "bzip2"),
    (b"\x28\xb5\x2f\xfd", "zstd"),
)

_PROOF = "mm/mm_init.c"
"""A file that every usable kernel tree has."""

_BUILT_IN_PLACE = (".config", "include/config", "arch/x86/include/generated")
"""Files of a built tree, which kbuild refuses to build in another directory (outputmakefile)."""


@dataclass(frozen=True)
class Commit:
    """A commit of a git work tree, which need not be checked out."""

    repository: Path
    revision: str

    def __str__(self) -> str:
        return f"{self.repository}@{self.revision}"


Wanted: TypeAlias = "Path | Base | Commit | None"
"""A requested kernel source: by --tree, by --base, or by neither."""


def named_source(path: Path) -> "Path | Commit":
    """Return what --tree names: a file or folder, or a commit of a git work tree (DIR@REVISION)."""
    where, _, revision = str(path).rpartition("@")
    if path.exists() or not where or not (Path(where) / ".git").exists():
        return path
    return Commit(Path(where), revision)


def at_commit(tree: Wanted, commits: Iterable[str]) -> Wanted:
    """Select the commit of a git work tree, if there is exactly one and the tree has it."""
    found = {*commits}
    if not isinstance(tree, Path) or len(found) != 1 or not (tree / ".git").exists():
        return tree
    words = ("git", "cat-file", "-e", f"{min(found)}^{{commit}}")
    code, _, _ = finished(Command(words, tree, UNPACK_S))
    if code:
        log.warning(
            "%s has no commit %.12s, which the series is made for: HEAD is taken; `git fetch` may"
            " have it",
            tree,
            min(found),
        )
        return tree
    return Commit(tree, min(found))


@dataclass(frozen=True)
class Tree:
    """A pristine kernel tree in the cache, which is never written after it appears.

    Variants share its files by hard links, so writing to one would change them all.
    """

    path: Path
    key: str
    """SHA-256 in hexadecimal of the package, tar ball or directory; or git's id of HEAD's tree."""
    label: str
    """A name for display: the package and its version, or the value of --tree."""
    version: str
    """The version in the top Makefile, as in "6.12.117"."""
    setup: Setup = OURS
    """How its kernels are built."""

    def built(self, setup: Setup) -> "Tree":
        """Return the same source with another setup."""
        return replace(self, setup=setup, label=setup.label(self.label))


def fetch_tree(tree: Wanted, *, cache: Path, step: Step) -> Tree:
    """Return a pristine tree in the cache, unpacking it if it is not there yet.

    tree: a base, or None for the default one: its newest in the cache or, if there is none, the
        newest that the archive offers, so a second run needs no network. The path `latest` asks the
        archive for the default one again (give a directory of that name by its absolute path),
        and so does the base `latest` for the newest kernel of all. Otherwise a directory, which is
        used as it is, a git work tree, of which HEAD is used, or a tar ball.
    step: called with a line on each action.
    Raises BadUsage if --tree is not usable, CannotRunHere if the archive cannot be reached or
    the disk is full; the cache then holds what it held before.
    """
    trees = cache.resolve() / "tree"
    with disk_faults(cache, "unpacking the kernel source"):
        trees.mkdir(parents=True, exist_ok=True)
        sweep(trees, step)
        if isinstance(tree, Commit):
            return _from_git(tree.repository, trees, step, tree.revision)
        if (base := base_of(tree)) is not None:
            fresh = tree == LATEST or base.package is None
            return _from_archive(base, trees, refresh=fresh, step=step)
        assert isinstance(tree, Path)  # others are bases
        if not tree.exists():
            raise BadUsage(f"{tree}: no such file or directory")
        if not tree.is_dir():
            return _from_tarball(tree, trees, step)
        kernel_version(tree, named=tree)
        if (tree / ".git").exists():
            return _from_git(tree, trees, step)
        return _from_directory(tree, trees, step)


def base_of(tree: Wanted) -> Base | None:
    """Return the base that is selected, by --base or by default; None if another source is."""
    if isinstance(tree, Base):
        return tree
    return default_base() if tree is None or tree == LATEST else None


def cached_tree(cache: Path, tree: Base | None = None) -> Tree | None:
    """Return the tree of a base if it is in the cache, else None; nothing is fetched."""
    trees = cache.resolve() / "tree"
    return _newest_cached(trees, tree or default_base()) if trees.is_dir() else None


def unpacked_trees(cache: Path) -> Iterator[tuple[str, Tree]]:
    """Yield kernel sources in the cache with their names: bases, the newest first, then others.

    Nothing is fetched.
    """
    found: set[str] = set()
    for name in base_names():
        if (tree := cached_tree(cache, base_named(name))) is not None and tree.key not in found:
            found.add(tree.key)
            yield f"--base {name}", tree
    trees = cache.resolve() / "tree"
    for entry in sorted(trees.iterdir()) if trees.is_dir() else ():
        stamp = _stamp(entry) if entry.name not in found else None
        if stamp is not None and not stamp.get("origin"):
            yield "it is in the cache", _tree(entry, str(stamp.get("label")))


def peek(tree: Wanted, names: Sequence[str], *, into: Path, cache: Path) -> str | None:
    """Copy files of the tree that fetch_tree() would return, if that needs no unpacking.

    Return its label; None if it would have to be fetched or unpacked first. Files that it does not
    have are left out. Raises BadUsage if --tree is not usable.
    """
    if isinstance(tree, Commit):
        return _peek_git(tree.repository, names, into, tree.revision)
    base = base_of(tree)
    if isinstance(tree, Path) and base is None and tree.is_dir():
        kernel_version(tree, named=tree)
        if (tree / ".git").exists():
            return _peek_git(tree, names, into)
        _refuse_built_in_place(tree)
        copy_files(tree, names, into=into)
        return str(tree)
    if base is not None:
        found = cached_tree(cache, base)
    elif isinstance(tree, Path) and tree.exists():
        found = kept_tree(cache, _sha256(tree))
    else:
        raise BadUsage(f"{tree}: no such file or directory")
    if found is None:
        return None
    copy_files(found.path, names, into=into)
    return found.label


def expected_version(tree: Wanted, *, cache: Path) -> str:
    """Return the version of the tree that fetch_tree() would return; a base's name if unknown."""
    with tempfile.TemporaryDirectory() as scratch:
        place = Path(scratch)
        if peek(tree, ("Makefile", _PROOF), into=place, cache=cache) is not None:
            return kernel_version(place, named=place)
    base = base_of(tree)
    return base.name if base is not None and base.package else base_names()[0]


def copy_files(tree: Path, names: Sequence[str], *, into: Path) -> None:
    """Copy files of a tree, and links as links; missing files are left out."""
    for name in names:
        original, copy = tree / name, into / name
        if original.is_file() or original.is_symlink():
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(original, copy, follow_symlinks=False)


def kept_tree(cache: Path, key: str) -> Tree | None:
    """Return a tree in the cache by its key; None if it is not there."""
    entry = cache.resolve() / "tree" / key
    stamp = _stamp(entry) if key.isalnum() else None
    return None if stamp is None else _tree(entry, str(stamp.get("label")))


def kernel_version(tree: Path, *, named: Path) -> str:
    """Return the version in a tree's top Makefile, such as "6.12.117" or "6.13.0-rc1".

    named: the user's name of the tree. Raises BadUsage if it is no kernel tree.
    """
    try:
        makefile = (tree / "Makefile").read_text(encoding="utf-8", errors="replace")[:4096]
    except OSError:
        raise BadUsage(f"{named}: not a kernel tree (it has no Makefile)") from None
    words = r"(?m)^(VERSION|PATCHLEVEL|SUBLEVEL|EXTRAVERSION) *= *(\S*) *$"
    found: dict[str, str] = dict(re.findall(words, makefile))
    if not found.get("VERSION") or not found.get("PATCHLEVEL"):
        raise BadUsage(f"{named}: not a kernel tree (its Makefile says no VERSION and PATCHLEVEL)")
    if not (tree / _PROOF).is_file():
        raise BadUsage(f"{named}: not a kernel tree ream can measure (it has no {_PROOF})")
    numbers = (found["VERSION"], found["PATCHLEVEL"], found.get("SUBLEVEL") or "0")
    return ".".join(numbers) + found.get("EXTRAVERSION", "")


# --- From the package archive ----------------------------------------------------------


def _from_archive(base: Base, trees: Path, *, refresh: bool, step: Step) -> Tree:
    place = trees / (base.package or LATEST_BASE)
    with locked(place, step):
        cached = _newest_cached(trees, base)
        if cached is not None and not refresh:
            return cached
        need_space(trees, TREE_BYTES + PACKAGE_BYTES, f"unpacking {base}")
        with workroom(place) as room:
            have = cached.label if cached else None
            offer, package = archive.download(base, into=room, have=have, step=step)
            if package is None:
                assert cached is not None  # only a cached version is not fetched
                return cached
            step(f"unpacking {offer}")
            entry = trees / _sha256(package)
            _unpack(("dpkg-deb", "--extract", str(package), str(room)), trees, str(offer))
            package.unlink()
            name = offer.package
            tarball = room / "usr" / "src" / f"{name}.tar.xz"
            return _from_opened(tarball, entry, named=str(offer), step=step, origin=name)


def _newest_cached(trees: Path, base: Base) -> Tree | None:
    """Return the newest cached tree of a base, since an archive only goes forward.

    For `latest` it is the tree of the newest package.
    """
    found: list[tuple[float, Path, str]] = []
    stamps = {entry: stamp for entry in trees.iterdir() if (stamp := _stamp(entry)) is not None}
    packages = [str(stamp["origin"]) for stamp in stamps.values() if stamp.get("origin")]
    wanted = base.package or newest_package(packages)
    for entry, stamp in stamps.items():
        if wanted is not None and stamp.get("origin") == wanted:
            found.append(((entry / STAMP).stat().st_mtime, entry, str(stamp.get("label"))))
    if not found:
        return None
    _, entry, label = max(found)
    return _tree(entry, label)


# --- From what --tree names ------------------------------------------------------------


def _from_git(tree: Path, trees: Path, step: Step, revision: str = "HEAD") -> Tree:
    commit = _commit(tree, revision)
    entry = trees / _git(tree, "rev-parse", "--verify", f"{commit}^{{tree}}")
    label = f"{tree.resolve().name} (git {commit[:12]})"
    if revision == "HEAD" and _git(tree, "status", "--porcelain", "--untracked-files=no"):
        log.warning("%s: changes not committed are left out; HEAD (%.12s) is taken", tree, commit)
    with locked(entry, step):
        if _stamp(entry) is not None:
            return _tree(entry, label)
        nr_bytes = 2 * _committed_bytes(tree, commit)  # the tar ball and its contents
        need_space(trees, nr_bytes, f"unpacking {revision} of {tree}")
        with workroom(entry) as room:
            step(f"unpacking {label}")
            tarball = room / "head.tar"
            _git(tree, "archive", "--format=tar", f"--output={tarball.resolve()}", commit)
            return _keep(tarball, entry, named=str(tree), label=label)


def _commit(tree: Path, revision: str) -> str:
    asked = ("git", "rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}")
    code, said, _ = finished(Command(asked, tree, UNPACK_S))
    if code:
        raise BadUsage(f"{tree}: git has no commit {revision} there")
    return said.strip()


def _committed_bytes(tree: Path, commit: str) -> int:
    """Return the bytes of a commit's files on a disk with 4 KiB blocks, or in a tar ball."""
    files = _git(tree, "ls-tree", "-r", "-l", "-z", commit).rstrip("\0").split("\0")
    sizes = [file.partition("\t")[0].split()[3] for file in files]
    return sum(int(size) // 4096 * 4096 + 4096 for size in sizes if size != "-")


def _peek_git(tree: Path, names: Sequence[str], into: Path, revision: str = "HEAD") -> str:
    commit = _commit(tree, revision)
    literally = "--literal-pathspecs"
    listed = _git(tree, literally, "ls-tree", "-z", "--name-only", commit, "--", *names)
    # Without names both commands would select all files.
    there = [name for name in listed.split("\0") if name] if names else []
    if there:
        with tempfile.NamedTemporaryFile(suffix=".tar") as file:
            archive_of = ("archive", "--format=tar", f"--output={file.name}", commit)
            _git(tree, literally, *archive_of, "--", *there)
            run(Command(("tar", "-x", "-f", file.name, "-C", str(into)), into, UNPACK_S))
    return f"{tree.resolve().name} (git {commit[:12]})"


def _git(tree: Path, *words: str) -> str:
    require("git")
    try:
        return run(Command(("git", *words), tree, UNPACK_S)).strip()
    except ReamError as cause:
        raise BadUsage(f"{tree}: {_said(cause)}") from cause


def _from_tarball(tarball: Path, trees: Path, step: Step) -> Tree:
    step(f"reading {tarball.name}")
    entry = trees / _sha256(tarball)
    return _from_opened(tarball, entry, named=str(tarball), step=step)


def _from_directory(tree: Path, trees: Path, step: Step) -> Tree:
    _refuse_built_in_place(tree)
    step(f"reading {tree}")
    key, nr_bytes = _directory_digest(tree)
    entry = trees / key
    label = f"{tree.resolve().name} (directory {key[:12]})"
    with locked(entry, step):
        if _stamp(entry) is not None:
            return _tree(entry, label)
        need_space(trees, nr_bytes, f"a copy of {tree}")
        step(f"copying {tree}")
        with appearing(entry, lambda: {"label": label}) as partial:
            copy = partial / "linux"
            copy.mkdir()
            options = ("-R", "-P", "--preserve=mode,timestamps", "--reflink=auto")
            _unpack(("cp", *options, f"{tree.resolve()}/.", str(copy)), trees, str(tree))
            if _directory_digest(copy)[0] != key:
                raise BadUsage(f"{tree}: it was changed while ream copied it; try again")
            _seal(copy)
        return _tree(entry, label)


def _refuse_built_in_place(tree: Path) -> None:
    for trace in _BUILT_IN_PLACE:
        if (tree / trace).exists():
            raise BadUsage(
                f"{tree}: configured or built in place (it has {trace}); "
                "clean it with `make mrproper`, or give a git work tree"
            )


# --- Unpacking -------------------------------------------------------------------------


def _from_opened(
    tarball: Path, entry: Path, *, named: str, step: Step, origin: str | None = None
) -> Tree:
    """Return the tree of a tar ball whose key, and so whose cache entry, is known."""
    label = named if origin else f"{tarball.name} (sha256 {entry.name[:12]})"
    with locked(entry, step):
        if _stamp(entry) is not None:
            return _tree(entry, label)
        if origin is None:
            need_space(entry.parent, _unpacked_bytes(tarball), f"unpacking {named}")
            step(f"unpacking {tarball.name}")
        return _keep(tarball, entry, named=named, label=label, origin=origin)


def _keep(tarball: Path, entry: Path, *, named: str, label: str, origin: str | None = None) -> Tree:
    """Unpack a tar ball into the cache under the entry's lock, completely or not at all."""
    with appearing(entry, lambda: {"label": label, "origin": origin}) as partial:
        unpacked = partial / "unpacked"
        unpacked.mkdir()
        options = ("--force-local", "--no-same-owner", "--no-same-permissions")
        tar = ("tar", "-x", *_decompressor(tarball), *options, "-f", str(tarball.resolve()))
        _unpack((*tar, "-C", str(unpacked)), entry.parent, named)
        inside = sorted(unpacked.iterdir())
        top = inside[0] if len(inside) == 1 and inside[0].is_dir() else unpacked
        kernel_version(top, named=Path(named))
        top.rename(partial / "linux")
        if unpacked.exists():
            unpacked.rmdir()
        _seal(partial / "linux")
    return _tree(entry, label)


def _unpack(argv: tuple[str, ...], trees: Path, named: str) -> None:
    require(argv[0])
    try:
        run(Command(argv, trees, UNPACK_S))
    except ReamError as cause:
        if re.search(r"No space left on device|Disk quota exceeded", str(cause)):
            raise disk_full(trees, f"unpacking {named}") from cause
        raise BadUsage(f"{named}: cannot be unpacked: {_said(cause)}") from cause


def _decompressor(tarball: Path) -> tuple[str, ...]:
    with tarball.open("rb") as opened:
        head = opened.read(8)
    for magic, program in _DECOMPRESSORS:
        if head.startswith(magic):
            require(program.split()[0])
            return ("-I", program)
    return ()


def _unpacked_bytes(tarball: Path) -> int:
    """Return an upper estimate of the unpacked size, at most that of a whole kernel."""
    packed = tarball.stat().st_size
    return min(TREE_BYTES, EXPANSION * packed if _decompressor(tarball) else 2 * packed)


def _seal(tree: Path) -> None:
    """Remove write permission from files, since variants' trees share them by hard links.

    Directories stay writable, so that the tree can be removed.
    """
    find = ("find", str(tree), "-type", "d", "-exec", "chmod", "u+rwx", "{}", "+")
    run(Command((*find, "-o", "-type", "f", "-exec", "chmod", "a-w,u+r", "{}", "+"), tree, 300))


# --- What is in the cache --------------------------------------------------------------


def _stamp(entry: Path) -> dict[str, object] | None:
    return stamp_of(entry) if (entry / "linux" / _PROOF).is_file() else None


def _tree(entry: Path, label: str) -> Tree:
    path = entry / "linux"
    return Tree(path, entry.name, label, kernel_version(path, named=path))


def _sha256(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def _directory_digest(directory: Path) -> tuple[str, int]:
    """Return a SHA-256 over every file's name, kind, x bit and content, and their bytes on disk.

    Times and owners are not included, so a copy has the same digest.
    """
    digest = hashlib.sha256()
    nr_bytes = 0
    for file in _files(directory):
        status = file.lstat()
        nr_bytes += -(-status.st_size // 4096) * 4096
        if stat.S_ISLNK(status.st_mode):
            kind, content = "link", str(file.readlink())
        else:
            kind = "program" if status.st_mode & stat.S_IXUSR else "file"
            content = _sha256(file)
        name = os.fsencode(file.relative_to(directory))
        digest.update(b"%s\0%s\0%s\n" % (name, kind.encode(), os.fsencode(content)))
    return digest.hexdigest(), nr_bytes


def _files(directory: Path) -> Iterator[Path]:
    """Yield regular files and symbolic links below a directory in a fixed order."""
    for parent, directories, names in os.walk(directory):
        directories.sort()
        links = [name for name in directories if Path(parent, name).is_symlink()]
        for name in sorted([*names, *links]):
            file = Path(parent, name)
            if file.is_symlink() or file.is_file():
                yield file


def _said(cause: ReamError) -> str:
    """Return the line of a failed program's output that gives the reason."""
    programs = "tar|xz|gzip|bzip2|zstd|dpkg-deb|cp|fatal"
    found = re.search(rf"(?m)(?:^|exit \d+: )((?:{programs}): .*)$", str(cause))
    return found[1] if found else str(cause).splitlines()[-1]
