# SPDX-License-Identifier: GPL-2.0-only
"""Patches as their authors send them: one file, a directory, or a mailbox."""

import email
import hashlib
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from email.errors import MessageError
from email.header import decode_header, make_header
from functools import cached_property
from pathlib import Path

from ream.errors import BadUsage

LARGEST_BYTES = 64 << 20
"""No series is that long; a disk image given by mistake is not read to its end."""

_SUFFIXES = (".patch", ".diff", ".eml", ".mbox")

_PACKED = {b"\x1f\x8b": "gunzip", b"\xfd7zXZ\x00": "unxz", b"\x28\xb5\x2f\xfd": "unzstd"}

_FROM_LINE = re.compile(rb"(?m)^From \S+ .*\d{1,2}:\d\d:\d\d .*\d{4}\r?$")
"""Begins each mail of a mailbox; its time tells it from a sentence that begins with From."""

_DIFF = re.compile(rb"(?m)^(?:diff --git a/|--- \S[^\n]*\n\+\+\+ \S)")

_HEADER = re.compile(rb"From |[A-Za-z][A-Za-z-]*:[ \t]")
"""How a mail begins, and a bare diff does not."""

_TAGS = re.compile(r"^(?:\s*(?:re:|\[[^]]*\]))+\s*", re.IGNORECASE)

_NUMBER = re.compile(r"\[[^]]*\b(\d+)/\d+[^]]*\]")

_LONGEST_NAME = 52
"""As git format-patch cuts a subject to make a file's name."""


@dataclass(frozen=True)
class Patch:
    """One change, in a form that git apply accepts."""

    name: str
    """The file's name, or made from number and subject."""
    subject: str
    body: bytes
    """As it was given; a mail that was encoded for transport is decoded."""
    options: tuple[tuple[str, str], ...] = ()
    """What a kernel with this patch is configured with beside the fragment of that name:
    ("vm.config", "CONFIG_..."). The last patch of a folder has what the folder's *.config say."""

    @cached_property
    def sha256(self) -> str:
        return hashlib.sha256(self.body).hexdigest()


@dataclass(frozen=True)
class Series:
    """Patches in the order in which they apply."""

    name: str
    patches: tuple[Patch, ...]

    @cached_property
    def id(self) -> str:
        """KCIDB's patchset hash: SHA-256 over the patches' SHA-256s, each with a newline."""
        lines = "".join(f"{patch.sha256}\n" for patch in self.patches)
        return hashlib.sha256(lines.encode()).hexdigest()


@dataclass(frozen=True)
class Hunk:
    """Where one hunk of a patch belongs."""

    file: str
    """The file it changes, without the first part of its path; for a new file its new name."""
    number: int
    """Of the hunks of this file, from 1."""
    old_start: int
    """The line at which its author saw it, from 1; 0 for a new file."""
    header: str
    """From the first @@ on."""


def load_series(path: Path, *, name: str | None = None) -> Series:
    """The patches of a file, a directory or a mailbox, in order; cover letters are left out.

    *.config beside the patches of a directory are options that these bring; see Patch.options.

    FILE: a mail from git format-patch, or a plain diff. DIR: its *.patch, *.diff and *.eml by
    name, or in the order of quilt's `series` file if it has one. MBOX: its mails with a diff,
    by their numbers ("[PATCH 2/7]") if all have one.
    Raises BadUsage with one line if there is nothing to apply.
    """
    try:
        patches = _from_directory(path) if path.is_dir() else _from_file(path)
    except OSError as cause:
        raise BadUsage(f"{cause.filename or path}: {cause.strerror}") from cause
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


def hunks(body: bytes) -> tuple[Hunk, ...]:
    """Every hunk of a patch, in its order.

    The lengths in @@ lines are obeyed: a removed line may itself read "--- a/file".
    """
    found: list[Hunk] = []
    old = new = ""
    numbers: dict[str, int] = {}
    lines = iter(body.decode("utf-8", errors="replace").split("\n"))
    for line in lines:
        if line.startswith("--- "):
            old = _path(line)
        elif line.startswith("+++ "):
            new = _path(line)
        elif match := re.match(r"@@ -(\d+)(?:,(\d+))? \+\d+(?:,(\d+))? @@", line):
            file = new if old == "/dev/null" else old
            numbers[file] = numbers.get(file, 0) + 1
            found.append(Hunk(file, numbers[file], int(match[1]), line.rstrip()))
            _skip_hunk(lines, int(match[2] or 1), int(match[3] or 1))
    return tuple(found)


def files(patch: Patch) -> frozenset[str]:
    """The files a patch changes, adds, removes or renames, without the first part of the path."""
    text = patch.body.decode("utf-8", errors="replace")
    git = re.findall(r"(?m)^diff --git a/(.+) b/(.+)$", text)
    return frozenset(name for pair in git for name in pair) | {
        hunk.file for hunk in hunks(patch.body)
    }


# --- Reading ---------------------------------------------------------------------------


def _from_directory(directory: Path) -> list[Patch]:
    quilt = directory / "series"
    if quilt.is_file():
        return [_only_patch(directory / name) for name in _quilt_names(quilt)]
    inside = sorted(file for file in directory.iterdir() if file.suffix in _SUFFIXES)
    if not inside:
        raise BadUsage(f"{directory}: no *.patch, *.diff or *.eml, and no quilt series file")
    # Any other file without a diff is a mistake, and leaving it out would hide it.
    patches = [_only_patch(file) for file in inside if not _is_cover_letter(file)]
    fragments = sorted(directory.glob("*.config"))
    options = tuple((file.name, file.read_text(encoding="utf-8")) for file in fragments)
    return [*patches[:-1], *(replace(last, options=options) for last in patches[-1:])]


def _quilt_names(quilt: Path) -> Iterator[str]:
    text = quilt.read_text(encoding="utf-8", errors="replace")
    for number, line in enumerate(text.splitlines(), 1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        if words[1:] not in ([], ["-p1"]):
            raise BadUsage(f"{quilt}: line {number}: only -p1 is understood ({line.strip()})")
        yield words[0]


def _is_cover_letter(file: Path) -> bool:
    mails = _mails(file)
    return not any(mail.holds_diff for mail in mails) and (
        file.name.startswith("0000-") or any(mail.place == 0 for mail in mails)
    )


def _only_patch(file: Path) -> Patch:
    patches = _from_file(file)
    if len(patches) != 1:
        how_many = f"{len(patches)} patches" if patches else "no patch"
        raise BadUsage(f"{file}: {how_many} inside, where one is expected")
    return patches[0]


def _from_file(file: Path) -> list[Patch]:
    mails = [mail for mail in _mails(file) if mail.holds_diff]
    if len(mails) == 1:
        return [mail.patch(file.name) for mail in mails]
    places = [mail.place for mail in mails if mail.place is not None]
    if len(set(places)) == len(mails):  # threads are not always in order
        mails.sort(key=lambda mail: mail.place or 0)
    return [
        mail.patch(f"{place:04d}-{_slug(mail.title) or 'patch'}.patch")
        for place, mail in enumerate(mails, 1)
    ]


@dataclass(frozen=True)
class _Mail:
    """A mail, or a bare diff, whose subject is then empty."""

    subject: str
    body: bytes

    @property
    def holds_diff(self) -> bool:
        return _DIFF.search(self.body) is not None

    @property
    def place(self) -> int | None:
        """The 2 of "[PATCH v3 2/7]"."""
        match = _NUMBER.search(self.subject)
        return int(match[1]) if match else None

    @property
    def title(self) -> str:
        """The subject without "Re:" and tags."""
        return _TAGS.sub("", self.subject)

    def patch(self, name: str) -> Patch:
        return Patch(name, self.title or name, self.body)


def _mails(file: Path) -> list[_Mail]:
    body = _read(file)
    starts = [match.start() for match in _FROM_LINE.finditer(body)]
    if not starts or starts[0] != 0:
        starts = [0]  # a bare diff, or a single mail without its From line
    ends = [*starts[1:], len(body)]
    return [_mail(body[start:end]) for start, end in zip(starts, ends, strict=True)]


def _read(file: Path) -> bytes:
    with file.open("rb") as opened:
        body = opened.read(LARGEST_BYTES + 1)
    if not body.strip():
        raise BadUsage(f"{file}: empty")
    for magic, program in _PACKED.items():
        if body.startswith(magic):
            raise BadUsage(f"{file}: compressed; unpack it first (`{program}`)")
    if b"\0" in body or len(body) > LARGEST_BYTES:
        raise BadUsage(f"{file}: not a patch (binary data)")
    return body


def _mail(raw: bytes) -> _Mail:
    if not _HEADER.match(raw):
        return _Mail("", _unix_lines(raw))
    message = email.message_from_bytes(raw)
    subject = _words(message.get("Subject"))
    encoding = str(message.get("Content-Transfer-Encoding", "")).strip().lower()
    if encoding in ("quoted-printable", "base64") or message.is_multipart():
        texts = [part for part in message.walk() if part.get_content_maintype() == "text"]
        decoded = [part.get_payload(decode=True) for part in texts]
        content = b"\n".join(text for text in decoded if isinstance(text, bytes))
        raw = f"Subject: {subject}\n\n".encode("utf-8", errors="replace") + content
    return _Mail(subject, _unix_lines(raw))


def _words(header: object) -> str:
    """A header as one line of text, its encoded words decoded."""
    raw = str(header or "")
    with suppress(LookupError, ValueError, MessageError):  # if wrongly encoded, as it came
        raw = str(make_header(decode_header(raw)))
    return " ".join(raw.split())


def _unix_lines(body: bytes) -> bytes:
    """Undo CRLF that a mail program put at the end of every line, as git am does."""
    if body.count(b"\r\n") == body.count(b"\n"):
        return body.replace(b"\r\n", b"\n")
    return body


# --- Names and lines -------------------------------------------------------------------


def _default_name(path: Path) -> str:
    stem = path.resolve().name
    for suffix in _SUFFIXES:
        stem = stem.removesuffix(suffix)
    return _slug(stem) or "series"


def _slug(text: str) -> str:
    """Text as a file name, a JSON key and a word on a command line."""
    return re.sub(r"[^A-Za-z0-9._+]+", "-", text).strip("-._+")[:_LONGEST_NAME]


def _path(line: str) -> str:
    """The path in a "--- a/mm/mm_init.c" line, without its first part; /dev/null stays."""
    name = line[4:].partition("\t")[0].strip().strip('"')
    return name if name == "/dev/null" else name.partition("/")[2]


def _skip_hunk(lines: Iterator[str], nr_old: int, nr_new: int) -> None:
    """Consume as many lines as a hunk's header says it has."""
    while nr_old > 0 or nr_new > 0:
        line = next(lines, None)
        if line is None:
            return
        kind = line[:1]
        nr_old -= kind not in ("+", "\\")
        nr_new -= kind not in ("-", "\\")
