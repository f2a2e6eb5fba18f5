# SPDX-License-Identifier: GPL-2.0-only
"""Undoes what mailers do to a table: quotes, spaces, signs, rules."""

import codecs
import email
import email.policy
import html
import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

from ream.errors import BadUsage

LONGEST = 1 << 20
"""The size limit of a mail in bytes."""

NUMBER = r"[0-9]{1,15}(?:\.[0-9]{1,9})?"
"""An unsigned number in ASCII digits; Python's digit class also matches other scripts."""

_RULE = re.compile(r"[-=_+|~\u2500-\u257f\s]{3,}")
_QUOTE = re.compile(r"(?:[\s|]|[A-Za-z]{0,3}>)*")
"""Quote marks, also with the initials of the quoted author."""
_SIGNS = str.maketrans(
    dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2212", "-")  # hyphens, dashes, minus
    | dict.fromkeys("\u2502\u2503\xa6", "|")
    | dict.fromkeys("\u200b\u200c\u200d\u2060\ufeff\xad")
)
_PLUS_MINUS = re.compile(r"\+ ?/? ?-")
_HEADERS = ("From", "Subject", "Date", "Message-ID", "In-Reply-To")
_ENCODED = re.compile(
    rb"^content-(?:transfer-encoding:\s*(?:quoted-printable|base64)|type:\s*multipart/)",
    re.IGNORECASE | re.MULTILINE,
)
_END_OF_HEADERS = re.compile(rb"\r?\n\r?\n")
_NEXT_IN_MBOX = re.compile(rb"(?<=\n)(?=From \S+ .*\b[0-9]{4}\r?\n[A-Za-z-]+:)")
_DATA = re.compile(rf"\||(?<![\w.]){NUMBER}(?![\w.]*[A-Za-z_])")
_WORD = re.compile(r"[^\W\d_]{2,}")
_LABELLED = re.compile(r"[:=] *[-+~<>]*[0-9]")
_WORDS_OF_A_SENTENCE = 5
_TRAILER = re.compile(r"[A-Z][a-z]+(?:-[a-z]+)*-by: .+|(?:Cc|Fixes|Link|Closes): .+")


@dataclass(frozen=True)
class MailLine:
    """One line other than a rule: its place, and its text without quote marks."""

    number: int
    """The line's number, from 1."""
    text: str
    depth: int = 0
    """The number of quote marks before the text."""
    indent: int = 0
    """The number of spaces between quote marks and text."""

    @property
    def is_sentence(self) -> bool:
        """Whether it is prose: mostly words, and no number after a label."""
        words = len(_WORD.findall(self.text))
        rare = words > 2 * len(re.findall(r"[0-9.]*[0-9]", self.text))
        told = words >= _WORDS_OF_A_SENTENCE and rare
        return told and "|" not in self.text and _LABELLED.search(self.text) is None

    @property
    def is_trailer(self) -> bool:
        """Whether it is a trailer of a commit message."""
        return _TRAILER.fullmatch(self.text) is not None

    @property
    def looks_like_data(self) -> bool:
        """Whether the line may contain a number of a table."""
        return _DATA.search(self.text) is not None


def lines_of(mail: bytes) -> tuple[MailLine, ...]:
    """All lines except rules, without quote marks at their beginnings.

    A bar at a line's beginning counts as one, as no layout needs it. Raises BadUsage if the mail is
    larger than LONGEST.
    """
    if len(mail) > LONGEST:
        raise BadUsage(f"more than {LONGEST >> 20} MiB are no mail; paste the table alone")
    text = "".join(_body(part) or _text(part) for part in _NEXT_IN_MBOX.split(mail))
    found = []
    # Not splitlines(): that ends lines at characters which no mailer ends them at.
    for number, line in enumerate(re.split(r"\r\n|\r|\n", text), start=1):
        # Copied out of a page's source, quote marks and signs are entities.
        told = html.unescape(line).translate(_SIGNS)
        marks = quoting[0] if (quoting := _QUOTE.match(told)) else ""
        plain = told[len(marks) :].rstrip()
        if _RULE.fullmatch(plain) or _RULE.fullmatch(line.strip()):
            continue
        indent = len(marks) - len(marks.rstrip())
        plain = " ".join(_PLUS_MINUS.sub("±", plain).split())
        found.append(MailLine(number, plain, marks.count(">"), indent))
    return tuple(found)


def _text(mail: bytes) -> str:
    if mail.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return mail.decode("utf-16", "replace")
    try:
        return mail.decode("utf-8")
    except UnicodeDecodeError:
        return mail.decode("latin-1")  # where the sign of ± is one byte, too


def _body(mail: bytes) -> str | None:
    """The text of a mail with an encoded or multipart body, after its headers; else None."""
    if _ENCODED.search(_END_OF_HEADERS.split(mail, maxsplit=1)[0]) is None:
        return None
    try:
        message = email.message_from_bytes(mail, policy=email.policy.default)
        told = [f"{name}: {message[name]}" for name in _HEADERS if message[name]]
        body = message.get_body(("plain",))
        return None if body is None else "\n".join([*told, "", str(body.get_content())])
    except (LookupError, ValueError, TypeError, AttributeError):  # not as any standard has it
        return None


def place_of(lines: Sequence[MailLine], number: int) -> int:
    """The index of the line with this number, or where it would be; lines are sorted by number."""
    return bisect_left(lines, number, key=lambda line: line.number)


def cells(line: MailLine) -> tuple[str, ...]:
    """The texts between bars; a bar at the end begins no cell."""
    parts = [part.strip() for part in line.text.split("|")]
    while parts and not parts[-1]:
        parts.pop()
    return tuple(parts)


def number(text: str) -> int | float:
    """The value of a text that NUMBER matches, possibly with a sign before it."""
    return float(text) if "." in text else int(text)
