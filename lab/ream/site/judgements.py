# SPDX-License-Identifier: GPL-2.0-only
"""Judgements that `ream judge` wrote, as pages of a site with a list of them."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

from ream.errors import BadUsage
from ream.judge import html, words
from ream.judge.judgement import Judgement
from ream.judge.written import DAMAGED, object_in

FOLDER = "judgements"
HOME = "../index.html"


@dataclass(frozen=True)
class Judged:
    """A judgement in the list of all, and its page; None for a series that could not be judged."""

    name: str
    listed: html.Listed
    text: str | None


def judged_in(folder: Path) -> Sequence[Judged]:
    """The judgements of a folder, newest first: what --json printed, or --watch wrote.

    The page that stands beside one has more, such as listings, and is taken as it is. Raises
    BadUsage if there is none, or a file is no judgement.
    """
    paths = sorted(folder.glob("*.json"))
    if not paths:
        raise BadUsage(f"{folder}: no judgements; `ream judge --json` prints one for a file there")
    return sorted(map(_judged, paths), key=lambda one: (one.listed.when, one.name), reverse=True)


def pages_of(judged: Sequence[Judged]) -> Iterator[tuple[str, str]]:
    """Each page relative to the site, the list last."""
    for one in judged:
        if one.text is not None:
            yield f"{FOLDER}/{one.name}.html", one.text
    listed = [one.listed for one in judged]
    yield f"{FOLDER}/index.html", html.render_list(listed, home=HOME)


def _judged(path: Path) -> Judged:
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
        return _of(path, told)
    except DAMAGED as cause:
        raise BadUsage(f"{path}: not what `ream judge --json` or --watch wrote") from cause


def _of(path: Path, told: dict[str, Any]) -> Judged:
    """The judgement of a file. Raises ValueError, KeyError or TypeError if it is damaged."""
    name = f"of-{path.stem}" if path.stem == "index" else path.stem
    when = told.get("when") or f"{datetime.fromtimestamp(path.stat().st_mtime, UTC):%Y-%m-%d %H:%M}"
    if (its := object_in(told)) is None:  # it could not be judged
        said = told["sentence"] if "sentence" in told else told["error"]["message"]
        series = str(told.get("series", path.stem))
        return Judged(
            name, html.Listed(str(when), series, int(told["exit"]), str(said), None), None
        )
    judgement = Judgement.from_object(its)
    beside = path.with_suffix(".html")
    listed = html.Listed(
        str(when), html.title_of(judgement), judgement.exit_code, words.sentence(judgement),
        f"{quote(name)}.html",
    )  # fmt: skip
    text = beside.read_text(encoding="utf-8") if beside.is_file() else html.render(judgement)
    return Judged(name, listed, text)
