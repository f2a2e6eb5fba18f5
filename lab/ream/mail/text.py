# SPDX-License-Identifier: GPL-2.0-only
"""What mailers do to a table, undone: quotes, spaces, signs, rules."""

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
"""Bytes of a mail worth reading for a table."""

NUMBER = r"[0-9]{1,15}(?:\.[0-9]{1,9})?"
"""Without a sign; \\d would take the digits of every script."""

_RULE = re.compile(r"[-=_+|~\u2500-\u257f\s]{3,}")
_QUOTE = re.compile(r"(?:[\s|]|[A-Za-z]{0,3}>)*")
"""Also with the initials of whom it quotes."""
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
    """One line that is no rule: where it was, and its words without quote marks."""

    number: int
    """From 1."""
    text: str
    depth: int = 0
    """Signs of quotation before it."""
    indent: int = 0
    """Spaces between these and the text."""

    @property
    def is_sentence(self) -> bool:
        """Whether it is prose: mostly words, and no number after a name of its own."""
        words = len(_WORD.findall(self.text))
        rare = words > 2 * len(re.findall(r"[0-9.]*[0-9]", self.text))
        told = words >= _WORDS_OF_A_SENTENCE and rare
        return told and "|" not in self.text and _LABELLED.search(self.text) is None

    @property
    def is_trailer(self) -> bool:
        """Whether it ends a message of a commit."""
        return _TRAILER.fullmatch(self.text) is not None

    @property
    def looks_like_data(self) -> bool:
        """Whether leaving it out could leave a number of the table out."""
        return _DATA.search(self.text) is not None


def lines_of(mail: bytes) -> tuple[MailLine, ...]:
    """All lines but rules; quote marks at their beginning are gone, as no layout needs a bar there.

    Raises BadUsage if it is longer than any mail with a table.
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
    """The text of a whole mail whose body is encoded or has parts, after its own headers; else
    None.
    """
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
    """Where the line of that number is, or would be; a file's lines are in its order."""
    return bisect_left(lines, number, key=lambda line: line.number)


def cells(line: MailLine) -> tuple[str, ...]:
    """What stands between bars; a bar at the end begins no cell."""
    parts = [part.strip() for part in line.text.split("|")]
    while parts and not parts[-1]:
        parts.pop()
    return tuple(parts)


def number(text: str) -> int | float:
    """Of text that NUMBER matches, perhaps with a sign before it."""
    return float(text) if "." in text else int(text)
