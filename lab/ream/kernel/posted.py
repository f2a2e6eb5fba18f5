# SPDX-License-Identifier: GPL-2.0-only
"""Mails of an archive: the thread of a Message-ID, fetched as b4 fetches it."""

import logging
import re
from pathlib import Path

from ream.errors import BadUsage, CannotRunHere
from ream.kernel.mailbox import Mail, mails

_ID = re.compile(r"<?[^<>@\s]+@[^<>@\s]+>?")

_URL = re.compile(r"https?:/+")


def is_message_id(words: Path) -> bool:
    """Whether a Message-ID or a mail's address in an archive is meant; a file goes before it."""
    text = str(words)
    return (_ID.fullmatch(text) is not None or _URL.match(text) is not None) and not words.exists()


def thread_of(words: Path) -> tuple[list[Mail], int | None]:
    """The mails of a Message-ID's thread, and the version that the mail of that id is of.

    That is None where it is an answer or no patch. The archive is the one that b4 asks:
    git's configuration may name mirrors of it (liblore.fallback).
    Raises BadUsage if the archive has no such mail, CannotRunHere if it cannot be asked.
    """
    # Imported here: it takes a quarter of a second, and a file needs none of it.
    from liblore import LibloreError, LoreNode, RemoteError  # noqa: PLC0415
    from liblore.utils import get_msgid_from_url  # noqa: PLC0415

    # A path has no two slashes in a row.
    own = get_msgid_from_url(_URL.sub("https://", str(words), count=1))
    if "@" not in own:
        raise BadUsage(f"{words}: no Message-ID in this address")
    logging.getLogger("liblore").setLevel(logging.ERROR)  # what it tries in vain is said below
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
    """Of an archive's mailbox the thread of a mail: a page of a list may hold several."""
    from liblore.utils import get_clean_msgid, get_strict_thread, split_mbox  # noqa: PLC0415

    thread = get_strict_thread(split_mbox(body), own)
    ids = {f"<{get_clean_msgid(one)}>" for one in thread or ()}
    inside = [one for one in mails(body) if one.message_id in ids]
    named = next((one for one in inside if one.message_id == f"<{own}>"), None)
    if named is None:
        raise BadUsage(f"{own}: the archive's thread does not hold this mail")
    return inside, named.version if named.is_tagged and not named.is_answer else None
