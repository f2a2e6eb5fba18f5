# SPDX-License-Identifier: GPL-2.0-only
"""What mailers do to a table, undone: quotes, spaces, signs, rules."""

import codecs
import email
import email.policy
import html
import re
from collections.abc import Iterator
from dataclasses import dataclass
from email.errors import HeaderParseError
from email.header import decode_header, make_header
from email.utils import parseaddr, parsedate_to_datetime

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
_HEADERS = ("From", "Subject", "Date", "Message-ID")
_HEADER = re.compile(rf"({'|'.join(_HEADERS)}): (.+)", re.IGNORECASE)
_ENCODED = re.compile(
    rb"^content-(?:transfer-encoding:\s*(?:quoted-printable|base64)|type:\s*multipart/)",
    re.IGNORECASE | re.MULTILINE,
)
_END_OF_HEADERS = re.compile(rb"\r?\n\r?\n")
_DATA = re.compile(rf"\||(?<![\w.]){NUMBER}(?![\w.]*[A-Za-z_])")


@dataclass(frozen=True)
class Line:
    """One line that is no rule: where it was, and its words without quote marks."""

    number: int
    """From 1."""
    text: str

    @property
    def looks_like_data(self) -> bool:
        """Whether leaving it out could leave a number of the table out."""
        return _DATA.search(self.text) is not None


def lines_of(mail: bytes) -> tuple[Line, ...]:
    """All lines but rules; quote marks at their beginning are gone, as no layout needs a bar there.

    Raises BadUsage if it is longer than any mail with a table.
    """
    if len(mail) > LONGEST:
        raise BadUsage(f"more than {LONGEST >> 20} MiB are no mail; paste the table alone")
    text = _body(mail) or _text(mail)
    found = []
    # Not splitlines(): that ends lines at characters which no mailer ends them at.
    for number, line in enumerate(re.split(r"\r\n|\r|\n", text), start=1):
        # Copied out of a page's source, quote marks and signs are entities.
        plain = _QUOTE.sub("", html.unescape(line).translate(_SIGNS), count=1).rstrip()
        if _RULE.fullmatch(plain) or _RULE.fullmatch(line.strip()):
            continue
        plain = " ".join(_PLUS_MINUS.sub("±", plain).split())
        found.append(Line(number, plain))
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


def cells(line: Line) -> tuple[str, ...]:
    """What stands between bars; a bar at the end begins no cell."""
    parts = [part.strip() for part in line.text.split("|")]
    while parts and not parts[-1]:
        parts.pop()
    return tuple(parts)


def number(text: str) -> int | float:
    """Of text that NUMBER matches, perhaps with a sign before it."""
    return float(text) if "." in text else int(text)


def headers(lines: tuple[Line, ...]) -> dict[str, str]:
    """What the mail's own header lines say, where they were pasted, too: the first of each."""
    facts: dict[str, str] = {}
    for name, value in _headers(lines):
        facts.setdefault(name, value)
    return facts


def _headers(lines: tuple[Line, ...]) -> Iterator[tuple[str, str]]:
    for line in lines:
        found = _HEADER.fullmatch(line.text)
        if found is None:
            continue
        name, value = found[1].lower(), found[2]
        if name == "from" and (author := parseaddr(value)[0]):
            yield "author", _decoded(author)
        elif name == "subject":
            yield "title", _decoded(value)
        elif name == "message-id":
            yield "message_id", value.strip("<>")
        elif name == "date":
            try:
                yield "date", parsedate_to_datetime(value).date().isoformat()
            except (ValueError, TypeError, OverflowError):
                continue


def _decoded(value: str) -> str:
    """A header's words as their author wrote them: outside of ASCII mails have them encoded."""
    try:
        return str(make_header(decode_header(value)))
    except (LookupError, ValueError, HeaderParseError):  # not as any standard has it
        return value
