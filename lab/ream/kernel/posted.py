# SPDX-License-Identifier: GPL-2.0-only
"""Fetches the thread of a Message-ID from a mail archive, as b4 does."""

import logging
import re
from pathlib import Path

from ream.errors import BadUsage, CannotRunHere
from ream.kernel.mailbox import Mail, mails

_ID = re.compile(r"<?[^<>@\s]+@[^<>@\s]+>?")

_URL = re.compile(r"https?:/+")


def is_message_id(words: Path) -> bool:
    """Whether words are a Message-ID or a mail's URL in an archive, and not an existing file."""
    text = str(words)
    return (_ID.fullmatch(text) is not None or _URL.match(text) is not None) and not words.exists()


def thread_of(words: Path) -> tuple[list[Mail], int | None]:
    """Return the mails of a Message-ID's thread, and the version of that mail's series.

    The version is None if it is a reply or no patch. The archive is that of b4; git's configuration
    may name mirrors (liblore.fallback).
    Raises BadUsage if the archive has no such mail, CannotRunHere if it cannot be reached.
    """
    # Imported here, as it takes a quarter of a second and files do not need it.
    from liblore import LibloreError, LoreNode, RemoteError  # noqa: PLC0415
    from liblore.utils import get_msgid_from_url  # noqa: PLC0415

    # Path merges the two slashes of a URL.
    own = get_msgid_from_url(_URL.sub("https://", str(words), count=1))
    if "@" not in own:
        raise BadUsage(f"{words}: no Message-ID in this address")
    logging.getLogger("liblore").setLevel(logging.ERROR)  # failures are reported below
    node = LoreNode.from_git_config()
    try:
        body = node.get_mbox_by_msgid(own)
    except RemoteError as cause:
        if cause.status_code is not None:
            said = f"its archive at {node.hostname} answers {cause.status_code}"
            raise BadUsage(f"{own}: no such mail: {said}") from cause
        raise CannotRunHere(
            f"{own}: its archive at {node.hostname} cannot be reached; give the mails as a file,"
            " as `b4 mbox` and the archive's mbox.gz have them"
        ) from cause
    except (LibloreError, OSError, EOFError) as cause:
        raise CannotRunHere(f"{own}: {node.hostname}: {str(cause).splitlines()[0]}") from cause
    finally:
        node.close()
    return thread_in(body, own)


def thread_in(body: bytes, own: str) -> tuple[list[Mail], int | None]:
    """Return the thread of a mail and the version of its series.

    body: an archive's mailbox, which may hold several threads, as a page of a list does.
    own: the Message-ID without brackets. The version is None unless that mail is a tagged patch and
    no reply. Raises BadUsage if the thread does not hold that mail.
    """
    from liblore.utils import get_clean_msgid, get_strict_thread, split_mbox  # noqa: PLC0415

    thread = get_strict_thread(split_mbox(body), own)
    ids = {f"<{get_clean_msgid(one)}>" for one in thread or ()}
    inside = [one for one in mails(body) if one.message_id in ids]
    named = next((one for one in inside if one.message_id == f"<{own}>"), None)
    if named is None:
        raise BadUsage(f"{own}: the archive's thread does not hold this mail")
    return inside, named.version if named.is_tagged and not named.is_answer else None
