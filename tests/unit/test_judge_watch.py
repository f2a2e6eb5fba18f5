# SPDX-License-Identifier: GPL-2.0-only
"""Mailboxes that arrive are judged one after the other, whatever is in them."""

import json
from itertools import islice
from pathlib import Path

import pytest

from ream.errors import BadUsage, CannotRunHere
from ream.judge import watch as module
from ream.judge.judgement import Judgement
from ream.judge.reach import WholeReach
from ream.judge.watch import LIST, arriving, watch


def judgement(title: str) -> Judgement:
    none: dict[str, tuple[str, ...]] = dict.fromkeys(
        ("changed", "added", "removed", "moved", "data", "layout"), ()
    )
    reach = WholeReach(991, **none, text_bytes=(0, 0), experiments=(), nearest="fork")
    return Judgement(title, (title,), "a tree", "a machine", reach)


def judged(mailbox: Path) -> Judgement:
    text = mailbox.read_text()
    if "silent" in text:
        raise BadUsage
    if "lacks" in text:
        raise CannotRunHere("no memory")
    if "refused" in text:
        raise BadUsage("no patch inside\nmore")
    if "bug" in text:
        raise ZeroDivisionError
    return judgement(text)


@pytest.fixture
def inbox(tmp_path: Path) -> Path:
    inbox = tmp_path / "inbox"
    inbox.mkdir()
    return inbox


def put(inbox: Path, name: str, text: str) -> Path:
    (inbox / name).write_text(text)
    return inbox / name


def test_no_mail_stops_the_next_one(inbox: Path, tmp_path: Path) -> None:
    texts = ("<b>first</b>", "refused", "a bug", "silent", "last")
    mails = [put(inbox, f"{at}.mbx", text) for at, text in enumerate(texts)]
    pages, said = tmp_path / "pages", list[str]()
    watch([*mails, inbox / "gone", inbox / "no\0path"], pages, judged, said.append)
    told = [json.loads(path.read_text()) for path in pages.glob("*.json")]
    assert {one["series"]: one["exit"] for one in told} == {
        "<b>first</b>": 4, "1.mbx": 2, "2.mbx": 70, "3.mbx": 2, "last": 4,
    }  # fmt: skip
    assert {one["series"]: one["error"] for one in told} == {
        "<b>first</b>": None,
        "1.mbx": {"kind": "bad-usage", "message": "no patch inside\nmore"},
        "2.mbx": {"kind": "bug", "message": "a bug in ream: ZeroDivisionError"},
        "3.mbx": {"kind": "bad-usage", "message": ""},
        "last": None,
    }
    verdicts = {one["series"]: one["verdict"] for one in told if "judgement" in one}
    assert verdicts == {"<b>first</b>": "not-reached", "last": "not-reached"}
    assert [one["verdict"] for one in told if one["error"]] == [None] * 3
    assert len([*pages.glob("*.html")]) == len(("first", "last", LIST))
    text = (pages / LIST).read_text()
    assert "&lt;b&gt;first" in text
    assert "no patch inside" in text
    assert any("No such file" in line for line in said)


def test_what_was_judged_is_not_again(inbox: Path, tmp_path: Path) -> None:
    asked = list[Path]()

    def once(mailbox: Path) -> Judgement:
        asked.append(mailbox)
        return judged(mailbox)

    pages = tmp_path / "pages"
    for name in ("one", "same"):
        watch([put(inbox, name, "text")], pages, once, lambda _: None)
    assert [path.name for path in asked] == ["one"]


def test_what_the_machine_could_not_do_is_tried_again(inbox: Path, tmp_path: Path) -> None:
    asked = list[Path]()

    def lacking(mailbox: Path) -> Judgement:
        asked.append(mailbox)
        return judged(mailbox)

    for _ in range(2):
        watch([put(inbox, "one", "lacks")], tmp_path / "pages", lacking, lambda _: None)
    assert len(asked) == 2


def test_the_newest_is_first_and_what_is_damaged_left_out(tmp_path: Path) -> None:
    for name, when in (("a", "2026-01-01 00:00:00"), ("b", "2026-01-02 00:00:00")):
        told = {"when": when, "series": name, "exit": 0, "sentence": "s", "link": None}
        put(tmp_path, f"{name}.json", json.dumps(told))
    put(tmp_path, "c.json", "{")
    watch([], tmp_path, judged, lambda _: None)
    text = (tmp_path / LIST).read_text()
    assert text.index("2026-01-02") < text.index("2026-01-01")


def test_a_file_is_taken_when_it_grows_no_more(
    inbox: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(inbox, "whole", "text")
    growing = put(inbox, "growing", "a")
    put(inbox, ".hidden", "text")
    looks = iter(range(5))

    def sleep(_: float) -> None:
        if next(looks) < 3:
            growing.write_text(growing.read_text() + "a")

    monkeypatch.setattr(module.time, "sleep", sleep)
    found = [*islice(arriving(inbox, once=False), 2)]
    assert [path.name for path in found] == ["whole", "growing"]
    assert growing.read_text() == "aaaa"


def test_a_file_that_grows_after_it_was_taken_is_taken_again(
    inbox: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mail = put(inbox, "mail", "half")
    looks = iter(range(9))

    def sleep(_: float) -> None:
        if next(looks) == 3:
            mail.write_text("half and half")

    monkeypatch.setattr(module.time, "sleep", sleep)
    found = [path.read_text() for path in islice(arriving(inbox, once=False), 2)]
    assert found == ["half", "half and half"]


def test_once_takes_what_is_there(inbox: Path) -> None:
    put(inbox, "a", "text")
    assert [path.name for path in arriving(inbox, once=True)] == ["a"]
