# SPDX-License-Identifier: GPL-2.0-only
"""Reads mails with patches, and selects the mails of a mailbox that are the series.

b4's library reads mailboxes as well, but for maintainers who check its choice. It selects the
latest of several versions, renumbers two patches with one number, treats a notice that a patch was
applied as a patch, and refuses mails without a Message-ID. Here ambiguous mailboxes are refused.
"""

import email
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from email.errors import MessageError
from email.header import decode_header, make_header
from email.message import Message
from functools import cached_property
from itertools import combinations, groupby
from pathlib import Path

from ream.counted import counted
from ream.errors import BadUsage
from ream.kernel.diff import essence, holds_diff, rooted

_FROM_LINE = re.compile(rb"(?m)^From \S+ .*\d{1,2}:\d\d:\d\d .*\d{4}\r?$")
"""First line of a mail in a mailbox. Its time distinguishes it from a sentence with "From"."""

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"

_HEAD = re.compile(
    rb"(?m)^(?:From: .*\n(?:(?!From:)(?:[\w-]+:)?[ \t].*\n)*?Subject: "
    rb"|commit [0-9a-f]{40,64}\b.*\nAuthor: )"
)
"""Start of a patch without a line between mails: its headers, or a commit of `git log -p`."""

_LOGGED = re.compile(rb"commit [0-9a-f]{40,64}\b.*\n(?:\w+: .*\n)+\r?\n {4}(.*)")
"""A commit in `git log -p` or `git show`, up to its subject."""

_HEADER = re.compile(rb"From |[A-Za-z][A-Za-z-]*:[ \t]")
"""Start of a mail, as opposed to a bare diff."""

_CARRIAGE_RETURNS = re.compile(rb"(?m)^(?:\+\+\+ \S|diff --git ).*\r$")
"""Diff lines with CRLF, which no tool that makes diffs writes."""

_BLOBS = re.compile(rb"(?m)^index ([0-9a-f]{7,64})\.\.([0-9a-f]{7,64})\b")

_TAGS = re.compile(r"^(?:\s*(?:(?:re|aw|sv|antw)(?:\[\d+\])?:|\[[^]]*\]))+\s*", re.IGNORECASE)

_ANSWER = re.compile(r"(?:^|[\s\]])(?:re|aw|sv|antw)(?:\[\d+\])?:", re.IGNORECASE)
"""Marks of a reply in a subject, in several languages."""

_PLACE = re.compile(r"\b(\d{1,4})/(\d{1,4})\b")

_VERSION = re.compile(r"(?:\b|patch)v(\d+)(?![\w.])", re.IGNORECASE)
"""The 3 of "PATCH v3" and "PATCHv3", but not of "PATCH v3.1", which may be a kernel version."""

_IS_PATCH = re.compile(r"patch|rfc", re.IGNORECASE)

_ID = re.compile(r"<[^<>\s]+>")

_BASE_COMMIT = re.compile(rb"(?m)^base-commit: ([0-9a-f]{7,64})\b")

_PREREQUISITE = re.compile(rb"(?m)^prerequisite-patch-id: ([0-9a-f]{40,64})\b")

HEADERS = ("From", "To", "Cc", "Date", "In-Reply-To", "References")
"""Headers of a mail that a reply needs, besides its subject and its Message-ID."""

MOST_NAMED = 6
"""The most missing patches that are named; the others are only counted."""


@dataclass(frozen=True)
class Mail:
    """A mail, or a bare diff, whose subject is then empty."""

    subject: str
    body: bytes
    """The body with its transport encoding decoded and paths in git's form."""
    message_id: str = ""
    answers: frozenset[str] = frozenset()
    """Message-IDs of earlier mails in its thread."""
    file: str = ""
    """The name of its file, if that has only this mail."""
    headers: tuple[tuple[str, str], ...] = ()
    """Those of HEADERS that it has, each in one line."""

    @cached_property
    def holds_diff(self) -> bool:
        return holds_diff(self.body)

    @property
    def place(self) -> int | None:
        """The number of the patch, which is 2 in "[PATCH v3 2/7]"."""
        return self.numbered[0] if self.numbered else None

    @cached_property
    def numbered(self) -> tuple[int, int] | None:
        """Number and total, which are 2 and 7 in "[PATCH v3 2/7]"; None for 1/1, a single patch."""
        match = _PLACE.search(self._tags)
        found = (int(match[1]), int(match[2])) if match else None
        return None if found == (1, 1) else found

    @cached_property
    def version(self) -> int | None:
        """The version: 3 in "[PATCH v3 2/7]", 1 if a mail names none, None for a bare diff."""
        match = _VERSION.search(self._tags)
        return int(match[1]) if match else 1 if self.subject else None

    @property
    def title(self) -> str:
        """The subject without "Re:" and tags."""
        return _TAGS.sub("", self.subject)

    @property
    def is_answer(self) -> bool:
        """Whether it is a reply, which may still contain a patch."""
        return _ANSWER.search(self._tags) is not None

    @property
    def is_tagged(self) -> bool:
        """Whether its subject has a tag of a patch."""
        return _IS_PATCH.search(self._tags) is not None

    @property
    def _tags(self) -> str:
        match = _TAGS.match(self.subject)
        return match[0] if match else ""


# --- Reading ---------------------------------------------------------------------------


def mails(body: bytes) -> list[Mail]:
    """Return the mails of a mailbox or of concatenated patches, or the file's only mail."""
    body = body.removeprefix(_BYTE_ORDER_MARK)
    starts = _starts(body)
    ends = [*starts[1:], len(body)]
    return [_mail(body[start:end]) for start, end in zip(starts, ends, strict=True)]


def _starts(body: bytes) -> list[int]:
    starts = [match.start() for match in _FROM_LINE.finditer(body)]
    if starts and not body[: starts[0]].strip():
        return starts
    # A message may quote such lines, so a new patch must follow a diff or git's signature.
    found, seen, ended = [0], 0, False
    for start in sorted([*starts, *(match.start() for match in _HEAD.finditer(body))]):
        before, seen = body[seen:start], start
        ended = ended or holds_diff(before) or re.search(rb"(?m)^-- \r?$", before) is not None
        if ended:
            found.append(start)
            ended = False
    return found


def _mail(raw: bytes) -> Mail:
    if logged := _LOGGED.match(raw):
        return Mail(logged[1].decode(errors="replace").strip(), _as_applied(raw))
    if not _HEADER.match(raw):
        return Mail("", _as_applied(raw))
    message = email.message_from_bytes(raw)
    subject = _words(message.get("Subject"))
    encoding = str(message.get("Content-Transfer-Encoding", "")).strip().lower()
    is_flowed = message.get_param("format") == "flowed"
    if is_flowed or encoding in ("quoted-printable", "base64") or message.is_multipart():
        content = b"\n".join(_text(part) for part in message.walk() if _may_hold(part))
        raw = f"Subject: {subject}\n\n".encode("utf-8", errors="replace") + content
    thread = f"{message.get('In-Reply-To', '')} {message.get('References', '')}"
    own = _ID.search(str(message.get("Message-ID", "")))
    headers = tuple((name, _words(message[name])) for name in HEADERS if message[name])
    id_ = own[0] if own else ""
    return Mail(subject, _as_applied(raw), id_, frozenset(_ID.findall(thread)), headers=headers)


def _may_hold(part: Message) -> bool:
    """Whether a part of a mail may be a patch: text, or an attached file named as a patch."""
    named = (part.get_filename() or "").endswith((".patch", ".diff"))
    return named or (part.get_content_maintype() == "text" and part.get_content_subtype() != "html")


def _text(part: Message) -> bytes:
    """Return the content of a part of a mail, with the space stuffing of RFC 3676 removed."""
    payload = part.get_payload(decode=True)
    text = _unix_lines(payload) if isinstance(payload, bytes) else b""
    return re.sub(rb"(?m)^ ", b"", text) if part.get_param("format") == "flowed" else text


def _as_applied(body: bytes) -> bytes:
    return rooted(_unix_lines(body))


def _words(header: object) -> str:
    """Return a header as one line of text, with encoded words decoded."""
    raw = str(header or "")
    with suppress(LookupError, ValueError, MessageError):  # if wrongly encoded, it is not decoded
        raw = str(make_header(decode_header(raw)))
    return " ".join(raw.split())


def _unix_lines(body: bytes) -> bytes:
    """Replace CRLF by LF if a mail program put it at the end of every line, as git am does."""
    if body.count(b"\r\n") == body.count(b"\n") or _CARRIAGE_RETURNS.search(body):
        return body.replace(b"\r\n", b"\n")
    return body


def why_none(inside: Iterable[Mail]) -> str:
    """Return advice for mails that seem to have patches but have none; empty for others."""
    text = b"\n".join(mail.body for mail in inside)
    if re.search(rb"(?m)^\*{15}$", text):
        return "; it holds a context diff: `diff -u` or `git diff` writes one that can be applied"
    if re.search(rb"(?m)^(?:[>|][>| \t]*|[ \t]+)(?:diff --git \S|--- \S+/\S)", text):
        return "; its diff is quoted or indented: give the mail or the file that it is from"
    return ""


# --- Selecting -------------------------------------------------------------------------


def of_mailbox(inside: Sequence[Mail], source: Path, version: int | None) -> list[Mail]:
    """Return the patches of one version of a series in order, without cover letters and replies.

    version: the requested version; None: the only one.
    Raises BadUsage naming missing patches, duplicate patches, or several versions.
    """
    patches = _distinct((mail for mail in inside if mail.holds_diff), source)
    # A single patch is always selected, even in a reply.
    if len(patches) > 1 and not (patches := _without_answers(patches)):
        raise BadUsage(f"{source}: only answers (Re:) hold a diff; give one of them as a file")
    patches = _of_version(patches, inside, source, version)
    if len(inside) == 1 or not any(one.numbered for one in patches):
        return _oldest_first(patches)
    numbered = [one for one in patches if one.numbered]
    ordered = _in_order(numbered, source)
    _refuse_gaps(ordered, source, upto=_total(ordered))
    if not (loose := [one for one in patches if one.numbered is None]):
        return ordered
    # Concatenated files of git format-patch, which were never sent, are in the file's order.
    if numbered == ordered and not any(one.message_id or one.answers for one in inside):
        return patches
    raise BadUsage(
        f"{source}: {loose[0].title!r} has no number among patches that have; take it out of the"
        " mailbox, or give the patches as files of a folder"
    )


def of_folder(inside: Sequence[Mail], source: Path, version: int | None) -> list[Mail]:
    """Return the patches of a folder's files in the order of the files; see `of_mailbox`.

    The user chose these files, so a series may be incomplete, and several may follow each other.
    """
    patches = _distinct((mail for mail in inside if mail.holds_diff), source)
    patches = _of_version(patches, inside, source, version)
    if len({one.version for one in patches if one.numbered}) > 1:
        patches.sort(key=lambda one: one.place or 0)
    places = {one.place for one in patches if one.place is not None}
    if len(places) == len(patches) > 1 and len({_total([one]) for one in patches}) == 1:
        _refuse_gaps(patches, source, upto=max(places))
    return patches


@dataclass(frozen=True)
class Ground:
    """The base of a series by its own statement, in the form of git format-patch --base."""

    commit: str | None = None
    prerequisites: tuple[str, ...] = ()
    """git patch-ids of the patches between that commit and the series."""


def ground_of(inside: Iterable[Mail], chosen: Sequence[Mail]) -> Ground:
    """Return the base that the cover letter or a patch of a series states."""
    versions = {one.version for one in chosen}
    covers = [one for one in inside if one.place == 0 and one.version in versions]
    for mail in (*covers, *chosen):
        if not mail.is_answer and (match := _BASE_COMMIT.search(mail.body)):
            ids = (found.decode() for found in _PREREQUISITE.findall(mail.body))
            return Ground(match[1].decode(), tuple(ids))
    return Ground()


def _without_answers(patches: Sequence[Mail]) -> list[Mail]:
    """Return patches without replies, such as a notice of an applied patch that repeats it."""
    tagged = any(one.is_tagged for one in patches)
    return [
        one
        for one in patches
        if not one.is_answer and not (tagged and one.answers and not one.is_tagged)
    ]


def _distinct(patches: Iterable[Mail], source: Path) -> list[Mail]:
    """Return each mail once, as it may be in a mailbox several times through several lists."""
    found: dict[str, Mail] = {}
    for number, one in enumerate(patches):
        known = found.setdefault(one.message_id or str(number), one)
        if known is not one and essence(known.body) != essence(one.body):
            raise BadUsage(f"{source}: two mails with the id {one.message_id} hold unlike diffs")
    return list(found.values())


def _of_version(
    patches: Sequence[Mail], inside: Sequence[Mail], source: Path, wanted: int | None
) -> list[Mail]:
    """Return the patches of one version. Patches that are no mail belong to every version."""
    there = {one.version for one in patches if one.version is not None}
    known = {number: [one for one in patches if one.version == number] for number in sorted(there)}
    if len(known) > 1 and wanted is None:
        each = ", ".join(_described(number, known, inside) for number in known)
        raise BadUsage(
            f"{source}: {len(known)} versions of a series inside: {each}; choose one with"
            " --version N"
        )
    if wanted is not None and known and wanted not in known:
        each = " and ".join(f"v{number}" for number in known)
        raise BadUsage(f"{source}: no v{wanted} inside; there is {each}")
    if wanted is None or wanted not in known:
        return list(patches)
    whole = _rerolled(wanted, known, inside)
    ids = {id(one) for one in whole}
    return [one for one in patches if one.version is None or id(one) in ids]


def _rerolled(number: int, known: Mapping[int, list[Mail]], inside: Sequence[Mail]) -> list[Mail]:
    """Return a version's patches, completed from an earlier version if it replaces only some.

    It replaces some if each of its patches is a reply to that with the same number, and it has no
    cover letter.
    """
    own = known[number]
    earlier = [one for one in known if one < number]
    if not earlier or any(one.place == 0 and one.version == number for one in inside):
        return own
    older = _rerolled(earlier[-1], known, inside)
    ids = {one.numbered: one.message_id for one in older if one.message_id}
    if all(one.numbered and ids.get(one.numbered) in one.answers for one in own):
        replaced = {one.numbered for one in own}
        return [*own, *(one for one in older if one.numbered not in replaced)]
    return own


def _described(number: int, known: Mapping[int, list[Mail]], inside: Sequence[Mail]) -> str:
    own = known[number]
    places = sorted({one.numbered for one in own if one.numbered})
    if len(_rerolled(number, known, inside)) > len(own):
        return f"v{number} ({_named(places)}, in place of earlier ones)"
    missing = _missing(places, upto=places[-1][1]) if places else []
    without = f" without {_named(missing)}" if missing else ""
    return f"v{number} ({counted(len(own), 'patch', 'patches')}{without})"


def _oldest_first(patches: list[Mail]) -> list[Mail]:
    """Return patches without numbers, reversed if one starts from a file state that a later makes.

    This is the order of `git log -p`, which has the newest first.
    """
    blobs = [_BLOBS.findall(one.body) for one in patches]
    old, new = (
        [{pair[at] for pair in one if pair[at].strip(b"0")} for one in blobs] for at in (0, 1)
    )
    pairs = [*combinations(range(len(patches)), 2)]
    forward = any(new[one] & old[later] for one, later in pairs)
    backward = any(old[one] & new[later] for one, later in pairs)
    return patches[::-1] if backward and not forward else patches


def _in_order(patches: Sequence[Mail], source: Path) -> list[Mail]:
    """Return numbered patches by number, since threads are not always in order."""
    totals = {_total([one]) for one in patches}
    if len(totals) > 1:
        each = " and ".join(f"n/{total}" for total in sorted(totals))
        raise BadUsage(f"{source}: patches of several series inside ({each}); give one a file")
    found = []
    for _, group in groupby(sorted(patches, key=lambda one: one.place or 0), lambda one: one.place):
        first, *others = group
        for other in others:
            # A patch that was sent again unchanged is the same patch.
            if essence(first.body) != essence(other.body):
                both = f"{first.title!r} and {other.title!r}"
                place = _named([first.numbered or (0, 0)])
                raise BadUsage(f"{source}: two unlike patches are {place}: {both}; take one out")
        found.append(first)
    return found


def _refuse_gaps(patches: Sequence[Mail], source: Path, *, upto: int) -> None:
    places = [one.numbered for one in patches if one.numbered]
    if missing := _missing(places, upto=upto):
        versions = {one.version for one in patches}
        last = max(version or 1 for version in versions)
        which = f" of v{last}" if last > 1 else ""
        verb, them = ("is", "it") if len(missing) == 1 else ("are", "them")
        raise BadUsage(
            f"{source}: {_named(missing)}{which} {verb} missing; add {them}, or name the patches"
            " that you want in a folder's quilt `series` file"
        )


def _missing(places: Sequence[tuple[int, int]], *, upto: int) -> list[tuple[int, int]]:
    total = places[0][1]
    there = {place for place, _ in places}
    return [(place, total) for place in range(1, upto + 1) if place not in there]


def _total(patches: Sequence[Mail]) -> int:
    return patches[0].numbered[1] if patches[0].numbered else 0


def _named(places: Sequence[tuple[int, int]]) -> str:
    """Return places in a series in words, as in 2/5, 3/5 and 5/5."""
    *most, last = [f"{place}/{total}" for place, total in places]
    if len(places) > MOST_NAMED:
        most, last = most[:MOST_NAMED], f"{len(places) - MOST_NAMED} more"
    return f"{', '.join(most)} and {last}" if most else last
