# SPDX-License-Identifier: GPL-2.0-only
"""Patches as their authors send them: one file, a directory, or a mailbox."""

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
"""No series is that long; a disk image given by mistake is not read to its end."""

_SUFFIXES = (".patch", ".diff", ".eml", ".mbox", ".mbx")

_PACKED_SUFFIXES = (".gz", ".xz")

Opener = Callable[[io.BytesIO], io.BufferedIOBase]

_PACKED: Mapping[bytes, Opener] = {
    b"\x1f\x8b": lambda packed: gzip.GzipFile(fileobj=packed),
    b"\xfd7zXZ\x00": lzma.LZMAFile,
}
"""By the first bytes of what is compressed, as lore.kernel.org gives t.mbox.gz."""

_ZSTD = b"\x28\xb5\x2f\xfd"

_LONGEST_NAME = 52
"""As git format-patch cuts a subject to make a file's name."""


Options = tuple[tuple[str, str], ...]
"""By the name of a fragment of the kernel's configuration, what it says besides."""


@dataclass(frozen=True)
class Patch:
    """One change, in a form that git apply accepts."""

    name: str
    """The file's name, or made from number and subject."""
    subject: str
    body: bytes
    """As it was given; transport encodings of a mail are decoded, and paths are as git has them."""
    options: Options = ()
    """What a kernel with this patch is configured with beside the fragment of that name:
    ("vm.config", "CONFIG_..."). The last patch of a folder has what the folder's *.config say."""

    ground: Ground = field(default=Ground(), compare=False)
    """What its series says that it is made for."""

    @cached_property
    def sha256(self) -> str:
        """The digest of the mail as it came, which anybody with the same file gets."""
        return hashlib.sha256(self.body).hexdigest()

    @cached_property
    def diff_sha256(self) -> str:
        """The digest of the diff alone. Patches with equal digests make the same kernel."""
        return hashlib.sha256(essence(self.body)).hexdigest()


@dataclass(frozen=True)
class Series:
    """Patches in the order in which they apply."""

    name: str
    patches: tuple[Patch, ...]

    @cached_property
    def id(self) -> str:
        """KCIDB's patchset hash: SHA-256 over the patches' SHA-256s, each with a newline."""
        return _digest(patch.sha256 for patch in self.patches)

    @cached_property
    def diff_id(self) -> str:
        """The same over the SHA-256s of their diffs: which series it is, however it was sent."""
        return _digest(patch.diff_sha256 for patch in self.patches)


def named_series(folder: str, experiment: Path) -> Series:
    """The series that an experiment's file names by its folder.

    It lies in the folder `series` of the experiment or, where that has none of the name, in
    kernel/series. A folder in a folder is one word: the name of a variant may come of it.
    """
    own = own_series(folder, experiment)
    return load_series(own or SERIES / folder, name=folder.replace("/", "-"))


def own_series(folder: str, experiment: Path) -> Path | None:
    """Where it lies, if that is in the experiment's folder."""
    own = experiment / "series" / folder
    return own if own.is_dir() else None


def ported(folder: str, base: str, experiment: Path) -> str:
    """The folder of a series' port to a base; where it has none, the folder itself.

    A port is a series like any other. It lies in a folder that is named after the base, beside
    the series that it is used in place of.
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
    """The patches of a file, a folder, a mailbox or of commits; cover letters are left out.

    *.config beside the patches of a folder are options that these bring; see Patch.options.

    FILE: a mail from git format-patch, or a plain diff. DIR: its *.patch, *.diff and *.eml by
    name, or in the order of quilt's `series` file if it has one, where a folder stands for all
    that is in it, changed as files of the same names beside the list say: see _beside(). MBOX: its
    mails with a diff, by their numbers ("[PATCH 2/7]") if they have any. Each may be compressed by
    gzip or xz. `-`: any of these but a folder or a bundle, from standard input. A Message-ID, or a
    mail's address in an archive: the series in its thread. Commits of a git tree as `line_of`
    names them; what comes before them is the patches' ground.
    version: which of several to take, as the 3 of "[PATCH v3 2/7]".
    repository: the git tree of these, or of the commits that a bundle continues from.
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
    """Whether words for a series name no file and no mail."""
    return not (path == STANDARD_INPUT or path.exists() or is_message_id(path))


def mails_of(path: Path) -> list[Mail]:
    """All mails of what `load_series` takes, cover letters and answers among them.

    Of a git bundle, and of commits, which are no file, there are none. Raises what `load_series`
    raises where it cannot be read.
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
    """The series cut after its first patch, after its second, and so on up to all of it."""
    total = len(series.patches)
    return tuple(
        Series(f"{series.name}-{count}of{total}", series.patches[:count])
        for count in range(1, total + 1)
    )


def files(patch: Patch) -> frozenset[str]:
    """The files a patch changes, adds, removes or renames, without the first part of the path."""
    return changed_files(patch.body)


# --- Reading ---------------------------------------------------------------------------


def _mail_files(directory: Path) -> list[Path]:
    """The files of a folder that hold mails or patches, by name; of a Maildir those that came."""
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
        # Any other file without a diff is a mistake, and leaving it out would hide it.
        found += [] if said else [_only_mail(file)]
    chosen = of_folder([*beside, *found], directory, version)
    patches = _patches(chosen, ground_of([*beside, *found], chosen))
    fragments = sorted(directory.glob("*.config"))
    options = tuple((file.name, file.read_text(encoding="utf-8")) for file in fragments)
    return [*patches[:-1], *(replace(last, options=options) for last in patches[-1:])]


def _listed(directory: Path, quilt: Path) -> list[Patch]:
    """What quilt's file lists: patches and, as no other tool has it, folders of them."""
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
    """The patches of a listed folder, for which files of the same names beside the list stand in.

    Such a file is a patch, or its diff alone below the same message, or a unified diff from the
    listed patch to the one that is meant. One with words alone says why the patch is left out.
    """
    listed = _from_directory(place, None)
    texts = {one.name: _read(file) for one in listed if (file := directory / one.name).is_file()}
    stay = [one for one in listed if one.name not in texts or holds_diff(texts[one.name])]
    if stay:  # the last one has the options of all
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
    """The mails of a cover letter or an answer that is a file of a folder; of others none."""
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
    # Without a subject it is called as the file.
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
    """Standard input, which can be read once, while variants are chosen for several bases."""
    return sys.stdin.buffer.read(LARGEST_BYTES + 1)


def _text(file: Path, body: bytes) -> bytes:
    """What was read of a file, unpacked; raises BadUsage if it can be no patch."""
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
    """A file's name without that of its compression."""
    return file.with_suffix("") if file.suffix in _PACKED_SUFFIXES else file


def _slug(text: str) -> str:
    """Text as a file name, a JSON key and a word on a command line."""
    return re.sub(r"[^A-Za-z0-9._+]+", "-", text).strip("-._+")[:_LONGEST_NAME]


def _digest(digests: Iterable[str]) -> str:
    return hashlib.sha256("".join(f"{one}\n" for one in digests).encode()).hexdigest()
