# SPDX-License-Identifier: GPL-2.0-only
"""Judges mailboxes as they arrive, one at a time, with a page for each and a list of all.

A mailbox that cannot be judged is listed with the reason, and the next one follows. Judged
mailboxes are recognised by their content, so a watch that is restarted continues where it ended.
"""

import hashlib
import json
import logging
import time
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ream.errors import CannotRunHere, ReamError, to_object
from ream.files import write_whole
from ream.judge import page, words
from ream.judge.html import Listed, render, render_list
from ream.judge.judgement import Judgement
from ream.plain import plain

log = logging.getLogger(__name__)

POLL_S = 2.0
DIGITS = 16
LIST = "index.html"
EXIT_BUG = 70
PASSING = (CannotRunHere.exit_code, ReamError.exit_code, EXIT_BUG)
"""Exit codes that are about the machine or ream, not about the series."""
LARGEST_BYTES = 64 << 20
"""Largest size of a mailbox; the limit is the same for any series."""


def arriving(folder: Path, *, once: bool) -> Iterator[Path]:
    """Yield the files of a folder, the oldest first, and then new ones; once: only existing ones.

    A file is yielded when its size did not change between two polls, so that a slow writer can
    finish, and again after each later change. Names that begin with a dot are ignored.
    """
    sizes: dict[Path, int] = {}
    taken: set[tuple[Path, tuple[float, int]]] = set()
    while True:
        found = {path: stat for path in folder.iterdir() if (stat := _regular(path)) is not None}
        ready = [
            (path, stat)
            for path, stat in sorted(found.items(), key=lambda one: one[1])
            if (path, stat) not in taken and (once or sizes.get(path) == stat[1])
        ]
        taken.update(ready)
        yield from (path for path, _ in ready)
        if once:
            return
        sizes = {path: nr_bytes for path, (_, nr_bytes) in found.items()}
        time.sleep(POLL_S)


def _regular(path: Path) -> tuple[float, int] | None:
    """Return a file's mtime and size; None for a dot file or what is no regular file."""
    try:
        return None if path.name.startswith(".") or not path.is_file() else _stat(path)
    except OSError:  # it is gone again
        return None


def _stat(path: Path) -> tuple[float, int]:
    stat = path.stat()
    return stat.st_mtime, stat.st_size


def watch(
    mailboxes: Iterable[Path],
    pages: Path,
    judge: Callable[[Path], Judgement],
    step: Callable[[str], None],
) -> None:
    """Judge each new mailbox; its page and the list are written immediately.

    pages: the folder of both, which is created.
    """
    pages.mkdir(parents=True, exist_ok=True)
    _write_list(pages)
    for mailbox in mailboxes:
        try:
            own = _digest(mailbox)
        except (OSError, ValueError) as cause:  # no path at all, if it has a byte 0
            step(plain(f"{mailbox}: {getattr(cause, 'strerror', None) or cause}"))
            continue
        if _is_judged(pages / f"{own}.json"):
            step(plain(f"{mailbox}: judged already: {own}"))
            continue
        step(plain(f"judging {mailbox}: {own}"))
        told = _judged(mailbox, own, pages, judge)
        _write(pages / f"{own}.json", json.dumps(told))
        _write_list(pages)
        step(plain(f"{mailbox}: {told['sentence']}"))


def _is_judged(told: Path) -> bool:
    """Whether there is a judgement already. Failures due to the machine are judged again."""
    try:
        exit_code = json.loads(told.read_text(encoding="utf-8"))["exit"]
    except (OSError, ValueError, KeyError, TypeError):
        return False
    return exit_code not in PASSING


def _judged(
    mailbox: Path, own: str, pages: Path, judge: Callable[[Path], Judgement]
) -> dict[str, Any]:
    told: dict[str, Any] = {
        "when": f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S}",
        "series": mailbox.name,
        "verdict": None,
        "link": None,
        "error": None,
    }
    try:
        its = judge(mailbox)
        _write(pages / f"{own}.html", render(its))
        title = its.subjects[0] if its.subjects else its.series
        return {
            **told,
            "series": title,
            "exit": its.exit_code,
            "verdict": words.in_a_word(its),
            "sentence": words.sentence(its),
            "link": f"{own}.html",
            "judgement": page.to_object(its),
        }
    except ReamError as cause:
        why = next(iter(str(cause).splitlines()), type(cause).__name__)
        return {**told, "exit": cause.exit_code, "sentence": why, "error": to_object(cause)}
    except Exception as cause:  # a bug in ream must not stop the next judgement
        log.exception("a bug in ream, not in the series; please report it with this trace")
        why = f"a bug in ream: {type(cause).__name__}"
        error = {"kind": "bug", "message": why}
        return {**told, "exit": EXIT_BUG, "sentence": why, "error": error}


def _digest(mailbox: Path) -> str:
    with mailbox.open("rb") as opened:
        return hashlib.sha256(opened.read(LARGEST_BYTES + 1)).hexdigest()[:DIGITS]


def _write_list(pages: Path) -> None:
    _write(pages / LIST, render_list(sorted(_listed(pages), key=lambda one: one.when)[::-1]))


def _listed(pages: Path) -> Iterator[Listed]:
    """Yield all judgements of a folder; damaged ones are left out."""
    for path in pages.glob("*.json"):
        try:
            told = json.loads(path.read_text(encoding="utf-8"))
            yield Listed(
                when=str(told["when"]),
                series=str(told["series"]),
                exit_code=int(told["exit"]),
                sentence=str(told["sentence"]),
                link=told["link"] and str(told["link"]),
            )
        except (OSError, ValueError, KeyError, TypeError):
            log.warning("%s: damaged, and not in the list", path)


def _write(path: Path, text: str) -> None:
    write_whole(path, text.encode("utf-8", "backslashreplace"), force=True)
