# SPDX-License-Identifier: GPL-2.0-only
"""Attributes lines to authors: mails of a thread as an archive shows it, and their quotations."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from email.errors import HeaderParseError
from email.header import decode_header, make_header
from email.utils import parsedate_to_datetime

from ream.mail.text import MailLine

_HEADER = re.compile(r"([A-Za-z][A-Za-z-]{1,30}) ?:(?: (.*))?")
_KNOWN = {"from": "from", "author": "from", "subject": "subject", "date": "date",
          "message-id": "message-id", "in-reply-to": "in-reply-to"}  # fmt: skip
_ARCHIVED = re.compile(r"(.+?) @ ([0-9]{4}-[0-9]{2}-[0-9]{2}) .*")
"""A sender with a date on the same line, as archives show it on a page of a whole thread."""
_TITLE = re.compile(
    r"(?:\* )?((?:Re: ?|Fwd: ?)*\[[^\]]*(?:PATCH|RFC)[^\]]*\] ?\S.*)", re.IGNORECASE
)
_REPLY = re.compile(r"(?:(?:Re|Fwd|AW): ?)+", re.IGNORECASE)

_ID = re.compile(r"[^\s<>@:/]+@[^\s<>@:/]+")
_HIDDEN = (
    (re.compile(r" \(\) "), "@"),
    (re.compile(r" ! "), "."),
    (re.compile(r"(?<=\S) at (?=\S)"), "@"),
)
"""How archives obfuscate an address so that it remains readable."""
_LOST = re.compile(r"x{4,}|\*{3,}|\.\.\.", re.IGNORECASE)
"""Placeholders of archives for letters that cannot be recovered."""

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = rf"({'|'.join(_MONTHS)})[a-z]*"
_DAYS = (
    (re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})"), "ymd"),
    (re.compile(rf"([0-9]{{1,2}}) {_MONTH} ([0-9]{{4}})", re.IGNORECASE), "dmy"),
    (re.compile(rf"{_MONTH} ([0-9]{{1,2}}),? (?:[0-9:]{{8}} )?([0-9]{{4}})", re.IGNORECASE), "mdy"),
    (re.compile(r"([0-9]{1,2})\.([0-9]{1,2})\.([0-9]{2,4})"), "dmy"),
    (re.compile(r"([0-9]{1,2})/([0-9]{1,2})/([0-9]{2,4})"), "mdy dmy"),
)
"""Days as mailers print them, with the orders of fields that are possible."""
_CLOCK = r"(?:,? ?(?:at )?[0-9]{1,2}:[0-9]{2}(?::[0-9]{2})?)?(?: ?[AP]M)?"
_ZONE = r"(?: ?[-+][0-9]{4})?(?: ?\(?[A-Z]{2,5}\)?(?=[ ,]))?"
_WROTE = re.compile(r"On (.{4,160}?) (?:wrote|writes) ?(?::|\.\.\.|\u2026)")
_SAID = re.compile(
    r"(?:\* )?([^\d:|]{2,80}?)(?: <[^<>]*>)?,? (?:wrote|writes|said) ?(?::|\.\.\.|\u2026)"
)
_LINES_OF_ATTRIBUTION = 3

_COMMIT = re.compile(r"([^\d:]{3,60}) ([0-9a-f]{10,40}) (\S.*)")
_SIGNED = re.compile(r"Signed-off-by: (.+?) <.*")
_STAMP = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2}) [0-9:]{8} [-+][0-9]{2}:?[0-9]{2}")
_LINK = re.compile(
    r"Link: https?://(?:lkml\.kernel\.org|lore\.kernel\.org|patch\.msgid\.link)/(\S+)"
)


@dataclass
class MailSource:
    """One mail, or a quotation of another mail."""

    facts: dict[str, str] = field(default_factory=dict)
    """title, author, date, message_id and commit, as far as the text contains them."""
    quoted: bool = False
    lines: list[MailLine] = field(default_factory=list)
    parent: str | None = None
    """Message id of the mail that it answers."""
    known: bool = False
    """Whether it has a header or an attribution; its quotations then have other authors."""
    quotes: list["MailSource"] = field(default_factory=list)
    """The quotations that it attributes to somebody."""


def sources_of(lines: Sequence[MailLine]) -> tuple[MailSource, ...]:
    """All lines by author; a blank line replaces lines of other authors in between."""
    thread = _Thread(lines)
    place = 0
    while place < len(lines):
        place = thread.take(place)
    _commit_page(thread.found[0])
    return tuple(thread.found)


class _Thread:
    def __init__(self, lines: Sequence[MailLine]) -> None:
        self._lines = lines
        page = MailSource()
        if (first := next((line for line in lines if line.text), None)) is not None:
            page.facts |= _title_in(first)
        self.found = [page]
        self._levels = {0: page}
        self._last = page

    def take(self, place: int) -> int:
        """Process one header, one attribution, or one other line; return the place of the next."""
        line = self._lines[place]
        end, headers = _headers_at(self._lines, place)
        if headers:
            self._begin(place, headers)
        elif (told := _attribution(self._lines, place)) is not None:
            self._quote(line.depth, *told)
            end = place + 1
        source = self._writer(line.depth)
        if source is not self._last and source.lines:
            source.lines.append(MailLine(line.number, ""))
        source.lines += self._lines[place:end]
        self._last = source
        return end

    def _begin(self, place: int, headers: Mapping[str, str]) -> None:
        """Begin a new mail, or add facts to one that has no sender yet."""
        depth = self._lines[place].depth
        facts = _facts(headers)
        here = self._writer(depth)
        if "from" not in headers or (len(headers) < 2 and "date" not in facts):  # noqa: PLR2004
            if "author" not in here.facts and not here.quoted:
                here.facts = {**here.facts, **facts}
                here.known = "author" in here.facts
                here.parent = here.parent or _message_id(headers.get("in-reply-to", ""))
            return
        above = next((one for one in self._lines[max(0, place - 1) : place]), None)
        if "title" not in facts and above is not None:
            facts |= _title_in(above)
        source = MailSource(facts, parent=_message_id(headers.get("in-reply-to", "")), known=True)
        self._levels = {level: one for level, one in self._levels.items() if level < depth}
        self._levels[depth] = source
        self.found.append(source)

    def _quote(self, depth: int, name: str | None, when: str) -> None:
        """Begin a quotation: deeper lines are by the named author."""
        by = self._writer(depth)
        latest = date.fromisoformat(by.facts["date"]) if "date" in by.facts else None
        facts: dict[str, str] = {}
        if name:
            facts["author"] = name
        if day := _day(when, latest):
            facts["date"] = day
        if by.parent is not None:
            if "title" in by.facts:
                facts["title"] = _REPLY.sub("", by.facts["title"], count=1)
            facts["message_id"] = by.parent
        source = MailSource(facts, quoted=True, known=True)
        by.quotes.append(source)
        if len(by.quotes) > 1:  # which of them it answers is not said
            for one in by.quotes:
                one.facts.pop("message_id", None)
        self._levels = {level: one for level, one in self._levels.items() if level <= depth}
        self._levels[depth + 1] = source
        self.found.append(source)

    def _writer(self, depth: int) -> MailSource:
        """The source for a line of this depth; a mail's own text is never a quotation."""
        level = max((level for level in self._levels if level <= depth), default=0)
        source = self._levels[level]
        if level == depth or not source.known:
            return source
        unknown = MailSource(quoted=True, known=True)
        self._levels[depth] = unknown
        self.found.append(unknown)
        return unknown


def _headers_at(lines: Sequence[MailLine], place: int) -> tuple[int, dict[str, str]]:
    """The known fields of a run of header lines, and its end; empty without a header."""
    told: dict[str, str] = {}
    first, end, name = lines[place], place, None
    while end < len(lines) and (line := lines[end]).text and line.depth == first.depth:
        found = _HEADER.fullmatch(line.text)
        if end > place and line.indent > first.indent:
            if name is not None:
                told[name] = f"{told[name]} {line.text}".strip()
        elif found is not None:
            name = _KNOWN.get(found[1].lower())
            if name in told:
                name = None
            elif name is not None:
                told[name] = found[2] or ""
        else:
            break
        end += 1
    return max(end, place + 1), told


def _facts(headers: Mapping[str, str]) -> dict[str, str]:
    def said() -> Iterator[tuple[str, str | None]]:
        sender, day = headers.get("from", ""), headers.get("date", "")
        if (archived := _ARCHIVED.fullmatch(sender)) is not None:
            sender, day = archived.groups()
        yield "author", _name(sender)
        yield "title", _decoded(headers.get("subject", ""))
        yield "message_id", _message_id(headers.get("message-id", ""))
        yield "date", _sent(day)

    return {name: value for name, value in said() if value}


def _title_in(line: MailLine) -> dict[str, str]:
    found = _TITLE.fullmatch(line.text)
    return {"title": found[1]} if found is not None else {}


def _name(sender: str) -> str | None:
    """The name in an address as mails and archives write it; None without one."""
    forms = (r"(.*?) ?<[^<>]*>?.*", r"\S+(?:@| at )\S+ \((.+)\)", r"([^@]*)")
    found = next((one for form in forms if (one := re.fullmatch(form, sender))), None)
    told = "" if found is None else found[1]
    return _decoded(told.strip("\"' ,")) or None


def _message_id(value: str) -> str | None:
    """The message id in a header's value; None if the archive hides it."""
    inside = re.search(r"<([^<>]+)>", value)
    told = (inside[1] if inside else value.partition("(raw)")[0]).strip()
    for hidden, plain in _HIDDEN:
        told = hidden.sub(plain, told)
    return told if _ID.fullmatch(told) and not _LOST.search(told.partition("@")[2]) else None


def _sent(value: str) -> str | None:
    """The day of sending, in the sender's own time zone."""
    try:
        return parsedate_to_datetime(value).date().isoformat()
    except (ValueError, TypeError, OverflowError, IndexError):
        return _day(value, None)


def _day(value: str, latest: date | None) -> str | None:
    """The first day that the text names, if it is unambiguous and not later than `latest`."""
    for pattern, orders in _DAYS:
        if (found := pattern.search(value)) is not None:
            meant = {_calendar(dict(zip(order, found.groups(), strict=True)))
                     for order in orders.split()}  # fmt: skip
            days = [day for day in meant if day and (latest is None or day <= latest)]
            return days[0].isoformat() if len(days) == 1 else None
    return None


def _calendar(parts: Mapping[str, str]) -> date | None:
    month = parts["m"][:3].lower()
    number = _MONTHS.index(month) + 1 if month in _MONTHS else int(parts["m"])
    year = int(parts["y"])
    try:
        return date(year if year > 99 else 2000 + year, number, int(parts["d"]))  # noqa: PLR2004
    except ValueError:
        return None


def _attribution(lines: Sequence[MailLine], place: int) -> tuple[str | None, str] | None:
    """Author and time of the quotation below, from "On ..., X wrote:" on up to three lines."""
    line = lines[place]
    if not line.text:
        return None
    told = ""
    for number, more in enumerate(lines[place : place + _LINES_OF_ATTRIBUTION]):
        if not more.text or more.depth != line.depth:
            return None
        told = f"{told} {more.text}".strip()
        if (found := _WROTE.fullmatch(told)) is not None:
            when, name = _when_and_who(found[1])
            return name, when
        found = _SAID.fullmatch(told)
        if found is not None and _is_quoted_next(lines, place + number):
            return _name(found[1]), ""
        if not line.text.startswith("On "):
            return None
    return None


def _is_quoted_next(lines: Sequence[MailLine], place: int) -> bool:
    after = next((line for line in lines[place + 1 :] if line.text), None)
    return after is not None and after.depth > lines[place].depth


def _when_and_who(told: str) -> tuple[str, str | None]:
    """The time and the author in the text between "On" and "wrote"."""
    for pattern, _ in _DAYS:
        if (found := pattern.search(told)) is not None:
            rest = re.match(rf"{_CLOCK}{_ZONE},? ?", told[found.end() :])
            end = found.end() + (rest.end() if rest is not None else 0)
            return told[: found.end()], _name(told[end:])
    return "", None


def _commit_page(page: MailSource) -> None:
    """Take author, commit and title of a commit's page from its first lines and trailers."""
    if "author" in page.facts:
        return
    signers = {found[1] for line in page.lines if (found := _SIGNED.fullmatch(line.text))}
    commits = (_COMMIT.fullmatch(line.text) for line in page.lines)
    commit = next((one for one in commits if one is not None and one[1] in signers), None)
    if commit is None:
        return
    page.facts |= {"author": commit[1], "commit": commit[2], "title": commit[3]}
    for line in page.lines:
        if (stamp := _STAMP.fullmatch(line.text)) is not None:
            page.facts.setdefault("date", stamp[1])
        link = _LINK.fullmatch(line.text)
        told = _message_id(link[1].rstrip("/").rpartition("/")[2]) if link is not None else None
        if told is not None:
            page.facts.setdefault("message_id", told)


def _decoded(value: str) -> str:
    """A header's text with encoded words decoded."""
    try:
        return str(make_header(decode_header(value)))
    except (LookupError, ValueError, HeaderParseError):  # not as any standard has it
        return value
