# SPDX-License-Identifier: GPL-2.0-only
"""Loads series of patches from a file, a directory, a mailbox, an archive or commits."""

import functools
import gzip
import hashlib
import io
import lzma
import re
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory

from ream.counted import counted
from ream.errors import BadUsage
from ream.kernel.bundle import format_line, is_bundle, line_of, unbundle
from ream.kernel.diff import changed, changed_files, essence, holds_diff, is_difference, message_of
from ream.kernel.mailbox import Ground, Mail, ground_of, mails, of_folder, of_mailbox, why_none
from ream.kernel.posted import is_message_id, thread_of
from ream.paths import SERIES

STANDARD_INPUT = Path("-")

LARGEST_BYTES = 64 << 20
"""Largest input, so that a disk image given by mistake is not read to its end."""

_SUFFIXES = (".patch", ".diff", ".eml", ".mbox", ".mbx")

_PACKED_SUFFIXES = (".gz", ".xz")

Opener = Callable[[io.BytesIO], io.BufferedIOBase]

_PACKED: Mapping[bytes, Opener] = {
    b"\x1f\x8b": lambda packed: gzip.GzipFile(fileobj=packed),
    b"\xfd7zXZ\x00": lzma.LZMAFile,
}
"""Openers of compressed files, such as t.mbox.gz of lore.kernel.org, by the first bytes."""

_ZSTD = b"\x28\xb5\x2f\xfd"

_LONGEST_NAME = 52
"""Length to which git format-patch cuts a subject to make a file's name."""


Options = tuple[tuple[str, str], ...]
"""Pairs of the name of a configuration fragment and the options to add to it."""


@dataclass(frozen=True)
class Patch:
    """One change, in a form that git apply accepts."""

    name: str
    """The name of the file, or a name made from number and subject."""
    subject: str
    body: bytes
    """The patch as given, with a mail's transport encoding decoded and paths in git's form."""
    options: Options = ()
    """Options of a kernel with this patch in addition to the fragment of that name, as
    ("vm.config", "CONFIG_..."). The last patch of a folder has those of the folder's *.config."""

    ground: Ground = field(default=Ground(), compare=False)
    """The base that its series states."""

    @cached_property
    def sha256(self) -> str:
        """The digest of the patch as given."""
        return hashlib.sha256(self.body).hexdigest()

    @cached_property
    def diff_sha256(self) -> str:
        """The digest of only the diff. Patches with equal digests make the same kernel."""
        return hashlib.sha256(essence(self.body)).hexdigest()


@dataclass(frozen=True)
class Series:
    """Patches in the order in which they are applied."""

    name: str
    patches: tuple[Patch, ...]

    @cached_property
    def id(self) -> str:
        """KCIDB's patchset hash: SHA-256 over the patches' SHA-256s, each with a newline."""
        return _digest(patch.sha256 for patch in self.patches)

    @cached_property
    def diff_id(self) -> str:
        """The same hash over the SHA-256s of the diffs, whatever way the series was sent."""
        return _digest(patch.diff_sha256 for patch in self.patches)


def named_series(folder: str, experiment: Path) -> Series:
    """Return the series that an experiment's file names by its folder.

    It is in the folder `series` of the experiment or, if that has none of the name, in
    kernel/series. Slashes in its name are replaced, since a variant may be named after it.
    """
    own = own_series(folder, experiment)
    return load_series(own or SERIES / folder, name=folder.replace("/", "-"))


def own_series(folder: str, experiment: Path) -> Path | None:
    """Return the path of a series in the experiment's folder; None if it has none of that name."""
    own = experiment / "series" / folder
    return own if own.is_dir() else None


def ported(folder: str, base: str, experiment: Path) -> str:
    """Return the folder of a series' port to a base; without a port, the folder itself.

    A port is a series like any other. It is in a folder that is named after the base, beside the
    series that it replaces.
    """
    port = f"{base}/{folder}"
    return port if own_series(port, experiment) or (SERIES / port).is_dir() else folder


def load_series(
    path: Path,
    *,
    name: str | None = None,
    version: int | None = None,
    repository: Path | None = None,
) -> Series:
    """Load the patches of a file, a folder, a mailbox or commits, without cover letters.

    *.config beside the patches of a folder are options that these add; see Patch.options.

    FILE: a mail from git format-patch, or a plain diff. DIR: its *.patch, *.diff and *.eml by
    name, or in the order of quilt's `series` file if it has one. A folder in that list stands for
    its patches, for which files of the same names beside the list are substitutes; see _beside().
    MBOX: its mails with a diff, by number ("[PATCH 2/7]") if they have any. Each may be compressed
    by gzip or xz. `-`: any of these but a folder or a bundle, from standard input. A Message-ID, or
    a mail's URL in an archive: the series in its thread. Commits of a git tree, see `line_of`; the
    commit before them is the patches' ground.
    version: the version to select, which is 3 in "[PATCH v3 2/7]".
    repository: the git tree of the commits, or of a bundle's prerequisites.
    Raises BadUsage with one line if there is nothing to apply, or if a patch is missing, and
    CannotRunHere if the archive of a Message-ID cannot be reached.
    """
    if repository is not None and not (repository / ".git").exists():
        repository = None
    try:
        if path == STANDARD_INPUT:
            patches = _from_mails(mails(_read_input()), path, version)
            return _series(name or "stdin", patches, path)
        if is_message_id(path):
            inside, own = thread_of(path)
            return _series(name, _from_mails(inside, path, version or own), path)
        if (path / "cur").is_dir():
            patches = _from_mails(mails_of(path), path, version)
        elif path.is_dir():
            patches = _from_directory(path, version)
        elif repository is not None and may_be_commits(path):
            patches = _from_commits(str(path), repository)
        elif is_bundle(path):
            patches = _from_bundle(path, repository)
        else:
            patches = _from_file(path, version)
    except FileNotFoundError as cause:
        way_out = "; --tree DIR names the git tree of commits" if ".." in path.name else ""
        raise BadUsage(f"{cause.filename or path}: {cause.strerror}{way_out}") from cause
    except OSError as cause:
        raise BadUsage(f"{cause.filename or path}: {cause.strerror}") from cause
    return _series(name, patches, path)


def may_be_commits(path: Path) -> bool:
    """Whether the argument for a series names neither a file nor a mail."""
    return not (path == STANDARD_INPUT or path.exists() or is_message_id(path))


def mails_of(path: Path) -> list[Mail]:
    """Return all mails of an argument of `load_series`, including cover letters and replies.

    A git bundle and commits have none. Raises what `load_series` raises if it cannot be read.
    """
    try:
        if path == STANDARD_INPUT:
            return mails(_read_input())
        if is_message_id(path):
            return thread_of(path)[0]
        if path.is_dir():
            return [mail for file in _mail_files(path) for mail in mails(_read(file))]
        return [] if may_be_commits(path) or is_bundle(path) else mails(_read(path))
    except OSError as cause:
        raise BadUsage(f"{cause.filename or path}: {cause.strerror}") from cause


def _series(name: str | None, patches: Sequence[Patch], path: Path) -> Series:
    if not patches:
        raise BadUsage(f"{path}: no patch inside")
    return Series(name or _default_name(path), tuple(patches))


def prefixes(series: Series) -> tuple[Series, ...]:
    """Return the prefixes of a series: its first patch, its first two, and so on up to all."""
    total = len(series.patches)
    return tuple(
        Series(f"{series.name}-{count}of{total}", series.patches[:count])
        for count in range(1, total + 1)
    )


def files(patch: Patch) -> frozenset[str]:
    """Return files that a patch changes, adds, removes or renames, without paths' first part."""
    return changed_files(patch.body)


# --- Reading ---------------------------------------------------------------------------


def _mail_files(directory: Path) -> list[Path]:
    """Return the files of a folder with mails or patches, by name; for a Maildir, its mails."""
    if (directory / "cur").is_dir():
        parts = [part for name in ("cur", "new") if (part := directory / name).is_dir()]
        return sorted(file for part in parts for file in part.iterdir())
    return sorted(file for file in directory.iterdir() if _unpacked(file).suffix in _SUFFIXES)


def _from_directory(directory: Path, version: int | None) -> list[Patch]:
    quilt = directory / "series"
    if quilt.is_file():
        return _listed(directory, quilt)
    inside = _mail_files(directory)
    if not inside:
        raise BadUsage(f"{directory}: no *.patch, *.diff or *.eml, and no quilt series file")
    beside: list[Mail] = []
    found: list[Mail] = []
    for file in inside:
        said = _without_patch(file)
        beside += said
        # Any other file without a diff is a mistake, and must not be skipped silently.
        found += [] if said else [_only_mail(file)]
    chosen = of_folder([*beside, *found], directory, version)
    patches = _patches(chosen, ground_of([*beside, *found], chosen))
    fragments = sorted(directory.glob("*.config"))
    options = tuple((file.name, file.read_text(encoding="utf-8")) for file in fragments)
    return [*patches[:-1], *(replace(last, options=options) for last in patches[-1:])]


def _listed(directory: Path, quilt: Path) -> list[Patch]:
    """Return the patches that quilt's file lists, and those of listed folders, an extension."""
    places = [directory / name for name in _quilt_names(quilt)]
    folders = [place for place in places if place.is_dir()]
    if any(place.samefile(directory) for place in folders):
        raise BadUsage(f"{quilt}: lists its own folder")
    listed = {one.name for one in (*places, *(one for its in folders for one in its.iterdir()))}
    for file in _mail_files(directory) if folders else ():
        if file.name not in listed:
            raise BadUsage(f"{file}: no folder that {quilt} lists has a patch of that name")
    mailed = [_only_mail(place) for place in places if not place.is_dir()]
    patches = iter(_patches(mailed, ground_of(mailed, mailed)))
    return [
        patch
        for place in places
        for patch in (_beside(directory, place) if place.is_dir() else [next(patches)])
    ]


def _beside(directory: Path, place: Path) -> Iterator[Patch]:
    """Yield the patches of a listed folder; files of the same names beside the list replace them.

    Such a file is a patch, or only a diff for the same message, or a unified diff from the listed
    patch to its replacement. If it has only text, that is the reason to leave out the patch.
    """
    listed = _from_directory(place, None)
    texts = {one.name: _read(file) for one in listed if (file := directory / one.name).is_file()}
    stay = [one for one in listed if one.name not in texts or holds_diff(texts[one.name])]
    if stay:  # the last patch has the options of all
        stay[-1] = replace(stay[-1], options=listed[-1].options)
    for patch in stay:
        file = directory / patch.name
        if (text := texts.get(patch.name)) is None:
            yield patch
        elif is_difference(text, patch.name):
            try:
                yield replace(patch, body=changed(patch.body, text))
            except ValueError as cause:
                raise BadUsage(f"{file}: {cause} does not fit {place / patch.name}") from cause
        else:
            whole = _only_mail(file)
            message = b"" if whole.subject else message_of(patch.body)
            yield replace(patch, body=message + whole.body)


def _quilt_names(quilt: Path) -> Iterator[str]:
    text = quilt.read_text(encoding="utf-8", errors="replace")
    for number, line in enumerate(text.splitlines(), 1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        if words[1:] not in ([], ["-p0"], ["-p1"], ["-p2"]):
            raise BadUsage(f"{quilt}: line {number}: only -pN is understood ({line.strip()})")
        yield words[0]


def _without_patch(file: Path) -> list[Mail]:
    """Return the mails of a file that is a cover letter or a reply; empty for other files."""
    inside = mails(_read(file))
    if any(mail.holds_diff for mail in inside):
        return []
    cover = re.match(r"(v\d+-)?0000-", file.name) is not None
    return inside if cover or any(mail.place == 0 or mail.is_answer for mail in inside) else []


def _only_mail(file: Path) -> Mail:
    inside = mails(_read(file))
    found = [mail for mail in inside if mail.holds_diff]
    if len(found) != 1:
        how_many = counted(len(found), "patch", "patches") if found else "no patch"
        way_out = "; give that file alone" if found else why_none(inside)
        raise BadUsage(f"{file}: {how_many} inside, where one is expected{way_out}")
    return replace(found[0], file=file.name)


def _from_file(file: Path, version: int | None) -> list[Patch]:
    patches = _from_mails(mails(_read(file)), file, version)
    if len(patches) != 1:
        return patches
    (alone,) = patches
    # Without a subject it has the name of the file.
    subject = file.name if alone.subject == alone.name else alone.subject
    return [replace(alone, name=file.name, subject=subject)]


def _from_mails(inside: Sequence[Mail], source: Path, version: int | None) -> list[Patch]:
    chosen = of_mailbox(inside, source, version)
    if not chosen:
        raise BadUsage(f"{source}: no patch inside{why_none(inside)}")
    return _patches(chosen, ground_of(inside, chosen))


def _from_bundle(bundle: Path, repository: Path | None) -> list[Patch]:
    with TemporaryDirectory() as room:
        return _patches([_only_mail(file) for file in unbundle(bundle, Path(room), repository)])


def _from_commits(words: str, repository: Path) -> list[Patch]:
    if (its := line_of(words, repository)) is None:
        raise BadUsage(f"{words}: no such file, and git has no such commits in {repository}")
    with TemporaryDirectory() as room:
        files = format_line(its, words, Path(room), repository)
        return _patches([_only_mail(file) for file in files], Ground(its.base))


def _patches(chosen: Sequence[Mail], ground: Ground | None = None) -> list[Patch]:
    names = (
        mail.file or f"{place:04d}-{_slug(mail.title) or 'patch'}.patch"
        for place, mail in enumerate(chosen, 1)
    )
    return [
        Patch(name, mail.title or name, mail.body, ground=ground or Ground())
        for name, mail in zip(names, chosen, strict=True)
    ]


def _read(file: Path) -> bytes:
    with file.open("rb") as opened:
        return _text(file, opened.read(LARGEST_BYTES + 1))


def _read_input() -> bytes:
    return _text(STANDARD_INPUT, _standard_input())


@functools.cache
def _standard_input() -> bytes:
    """Return standard input, cached because it is needed for several bases."""
    return sys.stdin.buffer.read(LARGEST_BYTES + 1)


def _text(file: Path, body: bytes) -> bytes:
    """Return the contents of a file, unpacked; raises BadUsage if it cannot be a patch."""
    for magic, opener in _PACKED.items():
        if body.startswith(magic):
            body = _unpacked_bytes(file, body, opener)
            break
    if not body.strip():
        raise BadUsage(f"{file}: empty")
    if body.startswith(_ZSTD):
        raise BadUsage(f"{file}: compressed; unpack it first (`unzstd`)")
    if b"\0" in body:
        raise BadUsage(f"{file}: not a patch (binary data)")
    if len(body) > LARGEST_BYTES:
        raise BadUsage(f"{file}: not a patch (no series is larger than {LARGEST_BYTES >> 20} MiB)")
    return body


def _unpacked_bytes(file: Path, body: bytes, opener: Opener) -> bytes:
    try:
        with opener(io.BytesIO(body)) as opened:
            return opened.read(LARGEST_BYTES + 1)
    except (EOFError, gzip.BadGzipFile, zlib.error, lzma.LZMAError) as cause:
        raise BadUsage(f"{file}: what it holds compressed is damaged ({cause})") from cause


# --- Names and digests ---------------------------------------------------------------


def _default_name(path: Path) -> str:
    stem = _unpacked(path.resolve()).name
    for suffix in (*_SUFFIXES, ".bundle"):
        stem = stem.removesuffix(suffix)
    return _slug(stem) or "series"


def _unpacked(file: Path) -> Path:
    """Return a file's name without the suffix of its compression."""
    return file.with_suffix("") if file.suffix in _PACKED_SUFFIXES else file


def _slug(text: str) -> str:
    """Return a text as a word for file names, JSON keys and command lines."""
    return re.sub(r"[^A-Za-z0-9._+]+", "-", text).strip("-._+")[:_LONGEST_NAME]


def _digest(digests: Iterable[str]) -> str:
    return hashlib.sha256("".join(f"{one}\n" for one in digests).encode()).hexdigest()
