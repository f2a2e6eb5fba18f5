# SPDX-License-Identifier: GPL-2.0-only
"""Mails with patches: how one is read, and which mails of a mailbox are the series.

b4's library reads mailboxes, too, but for maintainers who look at what it took: it goes on with
the latest of several versions, numbers two patches of one number anew, takes a notice of what was
applied for a patch, and refuses mails without a Message-ID. Here whatever is in doubt is refused.
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
"""Begins each mail of a mailbox; its time tells it from a sentence that begins with From."""

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"

_HEAD = re.compile(
    rb"(?m)^(?:From: .*\n(?:(?!From:)(?:[\w-]+:)?[ \t].*\n)*?Subject: "
    rb"|commit [0-9a-f]{40,64}\b.*\nAuthor: )"
)
"""How a patch begins where no line is between mails: with its headers, or as in `git log -p`."""

_LOGGED = re.compile(rb"commit [0-9a-f]{40,64}\b.*\n(?:\w+: .*\n)+\r?\n {4}(.*)")
"""A commit in `git log -p` or `git show`, up to its subject."""

_HEADER = re.compile(rb"From |[A-Za-z][A-Za-z-]*:[ \t]")
"""How a mail begins, and a bare diff does not."""

_CARRIAGE_RETURNS = re.compile(rb"(?m)^(?:\+\+\+ \S|diff --git ).*\r$")
"""No tool that makes a diff ends these lines so."""

_BLOBS = re.compile(rb"(?m)^index ([0-9a-f]{7,64})\.\.([0-9a-f]{7,64})\b")

_TAGS = re.compile(r"^(?:\s*(?:(?:re|aw|sv|antw)(?:\[\d+\])?:|\[[^]]*\]))+\s*", re.IGNORECASE)

_ANSWER = re.compile(r"(?:^|[\s\]])(?:re|aw|sv|antw)(?:\[\d+\])?:", re.IGNORECASE)
"""In the tags of a subject: what mail programs of several languages put there."""

_PLACE = re.compile(r"\b(\d{1,4})/(\d{1,4})\b")

_VERSION = re.compile(r"(?:\b|patch)v(\d+)(?![\w.])", re.IGNORECASE)
"""The 3 of "PATCH v3" and "PATCHv3", not of "PATCH v3.1": that may be a kernel."""

_IS_PATCH = re.compile(r"patch|rfc", re.IGNORECASE)

_ID = re.compile(r"<[^<>\s]+>")

_BASE_COMMIT = re.compile(rb"(?m)^base-commit: ([0-9a-f]{7,64})\b")

_PREREQUISITE = re.compile(rb"(?m)^prerequisite-patch-id: ([0-9a-f]{40,64})\b")

HEADERS = ("From", "To", "Cc", "Date", "In-Reply-To", "References")
"""What somebody who answers needs of a mail, besides its subject and its id."""

MOST_NAMED = 6
"""Of missing patches; how many more there are is said."""


@dataclass(frozen=True)
class Mail:
    """A mail, or a bare diff, whose subject is then empty."""

    subject: str
    body: bytes
    """The body as it came; transport encodings are decoded, and paths are as git has them."""
    message_id: str = ""
    answers: frozenset[str] = frozenset()
    """Ids of the mails before it in its thread."""
    file: str = ""
    """The name of the file that it is alone in."""
    headers: tuple[tuple[str, str], ...] = ()
    """Headers in HEADERS that it has, each in one line."""

    @cached_property
    def holds_diff(self) -> bool:
        return holds_diff(self.body)

    @property
    def place(self) -> int | None:
        """The 2 of "[PATCH v3 2/7]"."""
        return self.numbered[0] if self.numbered else None

    @cached_property
    def numbered(self) -> tuple[int, int] | None:
        """The 2 and the 7 of "[PATCH v3 2/7]"; None of 1/1, which has no place among others."""
        match = _PLACE.search(self._tags)
        found = (int(match[1]), int(match[2])) if match else None
        return None if found == (1, 1) else found

    @cached_property
    def version(self) -> int | None:
        """The 3 of "[PATCH v3 2/7]", 1 of a mail that names none, None of a bare diff."""
        match = _VERSION.search(self._tags)
        return int(match[1]) if match else 1 if self.subject else None

    @property
    def title(self) -> str:
        """The subject without "Re:" and tags."""
        return _TAGS.sub("", self.subject)

    @property
    def is_answer(self) -> bool:
        """Whether it is said about a patch, though it may hold another."""
        return _ANSWER.search(self._tags) is not None

    @property
    def is_tagged(self) -> bool:
        """Whether its subject says that it is a patch."""
        return _IS_PATCH.search(self._tags) is not None

    @property
    def _tags(self) -> str:
        match = _TAGS.match(self.subject)
        return match[0] if match else ""


# --- Reading ---------------------------------------------------------------------------


def mails(body: bytes) -> list[Mail]:
    """The mails of a mailbox, or of patches one behind the other; or the one that a file is."""
    body = body.removeprefix(_BYTE_ORDER_MARK)
    starts = _starts(body)
    ends = [*starts[1:], len(body)]
    return [_mail(body[start:end]) for start, end in zip(starts, ends, strict=True)]


def _starts(body: bytes) -> list[int]:
    starts = [match.start() for match in _FROM_LINE.finditer(body)]
    if starts and not body[: starts[0]].strip():
        return starts
    # A message may quote such lines: a patch follows a diff, or the signature of git.
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
    """Whether a part of a mail may be a patch: text, or an attached file that is called so."""
    named = (part.get_filename() or "").endswith((".patch", ".diff"))
    return named or (part.get_content_maintype() == "text" and part.get_content_subtype() != "html")


def _text(part: Message) -> bytes:
    """What a part of a mail holds; RFC 3676 puts a space before lines that begin with one."""
    payload = part.get_payload(decode=True)
    text = _unix_lines(payload) if isinstance(payload, bytes) else b""
    return re.sub(rb"(?m)^ ", b"", text) if part.get_param("format") == "flowed" else text


def _as_applied(body: bytes) -> bytes:
    return rooted(_unix_lines(body))


def _words(header: object) -> str:
    """A header as one line of text, its encoded words decoded."""
    raw = str(header or "")
    with suppress(LookupError, ValueError, MessageError):  # if wrongly encoded, as it came
        raw = str(make_header(decode_header(raw)))
    return " ".join(raw.split())


def _unix_lines(body: bytes) -> bytes:
    """Undo CRLF that a mail program put at the end of every line, as git am does."""
    if body.count(b"\r\n") == body.count(b"\n") or _CARRIAGE_RETURNS.search(body):
        return body.replace(b"\r\n", b"\n")
    return body


def why_none(inside: Iterable[Mail]) -> str:
    """What to do where mails hold no patch, if they look as if they should; else nothing."""
    text = b"\n".join(mail.body for mail in inside)
    if re.search(rb"(?m)^\*{15}$", text):
        return "; it holds a context diff: `diff -u` or `git diff` writes one that can be applied"
    if re.search(rb"(?m)^(?:[>|][>| \t]*|[ \t]+)(?:diff --git \S|--- \S+/\S)", text):
        return "; its diff is quoted or indented: give the mail or the file that it is from"
    return ""


# --- Choosing --------------------------------------------------------------------------


def of_mailbox(inside: Sequence[Mail], source: Path, version: int | None) -> list[Mail]:
    """The patches of one version of one series, in order: cover letters and answers are left out.

    version: the one that is wanted; None: the only one there is.
    Raises BadUsage naming what is missing, what is there twice, or which versions there are.
    """
    patches = _distinct((mail for mail in inside if mail.holds_diff), source)
    # Of a file with a single patch, even in an answer, there is nothing to choose.
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
    # What was never sent, files of git format-patch one behind the other, is in the file's order.
    if numbered == ordered and not any(one.message_id or one.answers for one in inside):
        return patches
    raise BadUsage(
        f"{source}: {loose[0].title!r} has no number among patches that have; take it out of the"
        " mailbox, or give the patches as files of a folder"
    )


def of_folder(inside: Sequence[Mail], source: Path, version: int | None) -> list[Mail]:
    """The patches of a folder's files, in the order of its files; see `of_mailbox`.

    Somebody chose these files, so that a series may end early, and others may follow it.
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
    """What a series says it is put on, as git format-patch --base has it."""

    commit: str | None = None
    prerequisites: tuple[str, ...] = ()
    """By git patch-id, the patches between that commit and the series."""


def ground_of(inside: Iterable[Mail], chosen: Sequence[Mail]) -> Ground:
    """What a series is made for, as its cover letter or one of its patches says."""
    versions = {one.version for one in chosen}
    covers = [one for one in inside if one.place == 0 and one.version in versions]
    for mail in (*covers, *chosen):
        if not mail.is_answer and (match := _BASE_COMMIT.search(mail.body)):
            ids = (found.decode() for found in _PREREQUISITE.findall(mail.body))
            return Ground(match[1].decode(), tuple(ids))
    return Ground()


def _without_answers(patches: Sequence[Mail]) -> list[Mail]:
    """Without a maintainer's notice of what was applied, too, which has the diff once more."""
    tagged = any(one.is_tagged for one in patches)
    return [
        one
        for one in patches
        if not one.is_answer and not (tagged and one.answers and not one.is_tagged)
    ]


def _distinct(patches: Iterable[Mail], source: Path) -> list[Mail]:
    """Each mail once, though it reached a mailbox by several lists."""
    found: dict[str, Mail] = {}
    for number, one in enumerate(patches):
        known = found.setdefault(one.message_id or str(number), one)
        if known is not one and essence(known.body) != essence(one.body):
            raise BadUsage(f"{source}: two mails with the id {one.message_id} hold unlike diffs")
    return list(found.values())


def _of_version(
    patches: Sequence[Mail], inside: Sequence[Mail], source: Path, wanted: int | None
) -> list[Mail]:
    """The patches of one version; those that are no mail are of each."""
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
    """The patches of a version and, where it replaces single ones of another, that one's others.

    It does if each of its patches is posted below that with the same number, and there is no
    cover letter of its own.
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
    """Patches without numbers; the other way round if one begins with a file that a later leaves.

    `git log -p` has the newest first.
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
    """Numbered patches by their numbers; threads are not always in order."""
    totals = {_total([one]) for one in patches}
    if len(totals) > 1:
        each = " and ".join(f"n/{total}" for total in sorted(totals))
        raise BadUsage(f"{source}: patches of several series inside ({each}); give one a file")
    found = []
    for _, group in groupby(sorted(patches, key=lambda one: one.place or 0), lambda one: one.place):
        first, *others = group
        for other in others:
            # What was sent again as it was is the same.
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
    """Name places in a series, as in 2/5, 3/5 and 5/5."""
    *most, last = [f"{place}/{total}" for place, total in places]
    if len(places) > MOST_NAMED:
        most, last = most[:MOST_NAMED], f"{len(places) - MOST_NAMED} more"
    return f"{', '.join(most)} and {last}" if most else last
