# SPDX-License-Identifier: GPL-2.0-only
"""Renders a judgement as a reply to the series, for `git send-email`; ream never sends mail."""

import re
from collections.abc import Iterable, Sequence
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import EmailPolicy
from email.utils import getaddresses
from textwrap import fill

from ream.errors import BadUsage
from ream.judge import explain, page
from ream.judge.judgement import Judgement
from ream.kernel.mailbox import Mail
from ream.kernel.series import Series
from ream.plain import plain
from ream.report.letter import pasteable
from ream.width import as_wide_as

WIDTH = 74
_POLICY = EmailPolicy(max_line_length=WIDTH, cte_type="8bit", utf8=False)
_ID = re.compile(r"<[^<>\s]+>")
_ADDRESS = re.compile(r"[^\s@<>,;:()\"\\]+@[^\s@<>,;:()\"\\]+")


def render(its: Judgement, series: Series, inside: Sequence[Mail], by: str | None = None) -> str:
    """Return the whole mail with its headers, ending in a newline.

    inside: all mails of the source of the series. by: the person of a Tested-by tag, as
    "Name <name@host>"; None: there is no tag.
    Raises BadUsage if no patch of the series came in a mail with a Message-ID, or if `by` is not of
    that form.
    """
    mail = answered(series, inside)
    headers = dict(mail.headers)
    message = EmailMessage(policy=_POLICY)
    message["Subject"] = plain(f"Re: {re.sub(r'^(?:Re: )+', '', mail.subject)}")
    message["In-Reply-To"] = mail.message_id
    before = _ID.findall(headers.get("References") or headers.get("In-Reply-To", ""))
    message["References"] = " ".join(dict.fromkeys((*before, mail.message_id)))
    author = _addresses([headers.get("From", "")])
    others = _addresses([headers.get("To", ""), headers.get("Cc", "")])
    if author:
        message["To"] = author
    known = {one.addr_spec.lower() for one in author}
    rest = [one for one in others if one.addr_spec.lower() not in known]
    if rest:
        message["Cc"] = rest
    message.set_content(_body(its, by), charset="utf-8", cte="8bit")
    return message.as_bytes().decode("utf-8")


def answered(series: Series, inside: Sequence[Mail]) -> Mail:
    """Return the mail to reply to: the cover letter of a series, or else its first patch."""
    bodies = {patch.body for patch in series.patches}
    chosen = [one for one in inside if one.body in bodies and one.message_id]
    if not chosen:
        raise BadUsage(
            f"{series.name}: none of its patches has a Message-ID, so there is no mail to answer;"
            " give the mails as they were sent, or --html FILE for a page"
        )
    covers = (
        one
        for one in inside
        if one.place == 0 and one.version == chosen[0].version and not one.is_answer
    )
    cover = next((one for one in covers if one.message_id), None)
    return cover or chosen[0]


def check_by(by: str) -> str:
    """Return the value of Tested-by; raises BadUsage unless it is a name with an address."""
    (name, address), *more = getaddresses([by]) or [("", "")]
    if more or not name or not _ADDRESS.fullmatch(address) or not by.isprintable():
        raise BadUsage(f"--by {by!r}: give a name and an address, as 'Name <name@example.org>'")
    return f"{name} <{address}>"


def _addresses(headers: Iterable[str]) -> list[Address]:
    """Return each address once, without entries such as undisclosed recipients."""
    found: dict[str, Address] = {}
    for name, address in getaddresses([*headers]):
        if address.isascii() and _ADDRESS.fullmatch(address):
            user, _, domain = address.rpartition("@")
            shown = plain(name)
            found.setdefault(address.lower(), Address(shown, user, domain))
    return [*found.values()]


def _body(its: Judgement, by: str | None) -> str:
    its = explain.for_others(its)
    with as_wide_as(WIDTH):
        text = page.render(its)
    parts = [text]
    if names := [*explain.names(its, page.shown(its))]:
        parts.append("\n".join(("Names above:", *map(_name, names))) + "\n")
    parts.append(fill(explain.ABOUT, WIDTH) + "\n")
    if its.reproduce:
        parts.append(f"To reproduce, with ream:\n\n{pasteable(plain(its.reproduce))}\n")
    if by is not None:
        parts.append(f"Tested-by: {check_by(by)}\n")
    return "\n".join(parts)


def _name(one: tuple[str, str]) -> str:
    """Return a name in the table and its explanation as lines of the mail."""
    name, what = map(plain, one)
    return fill(
        f"{name}: {what}",
        WIDTH,
        initial_indent="  ",
        subsequent_indent="    ",
        break_on_hyphens=False,
        break_long_words=False,
    )
