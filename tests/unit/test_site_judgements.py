# SPDX-License-Identifier: GPL-2.0-only
"""Judgements as pages of a site: all that was judged is listed, and what is beside it is kept."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from judgement_world import RIGHT, WRONG
from ream.errors import BadUsage
from ream.judge import page
from ream.judge.judgement import Judgement
from ream.site.judgements import judged_in, pages_of
from ream.width import as_wide_as
from shipped import RECORDS, copied

Ream = Callable[..., Any]

MREMAP = "20261128T232540Z-mremap-native-3e9e"
HOSTILE = "<script>alert(1)</script>"


@pytest.mark.parametrize("its", [RIGHT, WRONG])
def test_a_judgement_is_read_as_it_was_printed(its: Judgement) -> None:
    printed = json.loads(json.dumps(its.to_object()))
    read = Judgement.from_object(printed)
    assert json.loads(json.dumps(read.to_object())) == printed
    assert read.exit_code == its.exit_code


def test_each_judgement_has_its_page_and_the_newest_is_first(tmp_path: Path) -> None:
    (tmp_path / "right.json").write_text(json.dumps(RIGHT.to_object()))
    (tmp_path / "right.html").write_text("the page with listings")
    (tmp_path / "index.json").write_text(json.dumps({**WRONG.to_object(), "series": HOSTILE}))
    os.utime(tmp_path / "right.json", (0, 0))
    watched = {"when": "2099-01-01 00:00:00", "series": "mail", "link": None, "exit": 3}
    (tmp_path / "0123.json").write_text(json.dumps({**watched, "sentence": "no memory"}))
    error = {"schema": 1, "exit": 2, "error": {"kind": "bad-usage", "message": HOSTILE}}
    (tmp_path / "error.json").write_text(json.dumps(error))
    its = dict(pages_of(judged_in(tmp_path)))
    assert [*its] == [f"judgements/{name}.html" for name in ("of-index", "right", "index")]
    assert its["judgements/right.html"] == "the page with listings"
    assert WRONG.subjects[0] in its["judgements/of-index.html"]
    listed = its["judgements/index.html"]
    places = [listed.index(one) for one in ("no memory", 'href="of-index.html"', 'href="right')]
    assert places == sorted(places)
    assert not any(HOSTILE in text for text in its.values())


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"operations": [{}]}', '{"exit": "a"}'])
def test_a_file_that_is_no_judgement_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(BadUsage, match=r"a\.json: not what"):
        judged_in(tmp_path)


@pytest.mark.parametrize("its", [RIGHT, WRONG])
@pytest.mark.parametrize("watched", [False, True])
def test_a_judgement_that_was_printed_is_shown_again(
    ream: Ream, tmp_path: Path, its: Judgement, *, watched: bool
) -> None:
    printed = page.to_object(its)
    file = tmp_path / "judged.json"
    file.write_text(json.dumps({"when": "now", "judgement": printed} if watched else printed))
    shown = ream("show", str(file), COLUMNS="80")
    with as_wide_as(80):
        assert (shown.code, shown.out) == (0, page.render(its))
    assert json.loads(ream("show", str(file), "--json").out) == json.loads(json.dumps(printed))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("text", "neither a record nor what `ream judge --json` or --watch wrote"),
        ('{"schema": 1}', "neither a record nor what `ream judge --json` or --watch wrote"),
        ('{"error": {"message": "no memory"}}', "the series was not judged: no memory"),
    ],
)
def test_what_is_neither_a_run_nor_a_judgement_is_not_shown(
    ream: Ream, tmp_path: Path, text: str, said: str
) -> None:
    file = tmp_path / "other"
    file.write_text(text)
    shown = ream("show", str(file))
    assert (shown.code, shown.out, shown.err) == (2, "", f"ream: {file}: {said}\n")


def test_the_site_leads_to_judgements(ream: Ream, tmp_path: Path) -> None:
    judgements, runs, site = (tmp_path / one for one in ("judgements", "runs", "site"))
    judgements.mkdir()
    copied(RECORDS / MREMAP, runs / MREMAP)
    words = ("site", str(site), "--runs", str(runs), "--judgements", str(judgements))
    said = ream(*words)
    assert said.code == BadUsage.exit_code
    assert "no judgements; `ream judge --json` prints one" in said.err
    (judgements / "right.json").write_text(json.dumps(RIGHT.to_object()))
    assert ream(*words).code == 0
    assert 'href="judgements/index.html"' in (site / "index.html").read_text()
    assert 'href="right.html"' in (site / "judgements" / "index.html").read_text()
    assert (site / "judgements" / "right.html").is_file()
