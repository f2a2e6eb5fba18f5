# SPDX-License-Identifier: GPL-2.0-only
"""The answer to a series: a mail that git send-email takes, and a page for a browser."""

import email
import html as html_module
from dataclasses import replace
from email.policy import default
from pathlib import Path

import pytest

from ream.errors import BadUsage
from ream.judge import html, letter
from ream.judge.judgement import (
    CountedChange,
    Judgement,
    Operation,
    PatchStep,
    TimedChange,
    Wrong,
)
from ream.judge.reach import Reach, WholeReach
from ream.kernel.series import Series, load_series, mails_of

COLUMNS = 75
EVIL = "mm: \x1b[2J<script>alert(1)</script>\u202e"
DIFF = "---\n--- a/mm/a.c\n+++ b/mm/a.c\n@@ -1 +1 @@\n-old\n+new %s\n-- \n2.39.5\n\n"


def mail(subject: str, own: str, *, answers: str = "", more: str = "", body: str = "") -> str:
    thread = f"In-Reply-To: <{answers}>\nReferences: <root@x> <{answers}>\n" if answers else ""
    return (
        "From mboxrd@z Thu Jan  1 00:00:00 1970\nFrom: =?utf-8?q?J=C3=BCrgen?= Author"
        f" <author@x.org>\nTo: linux-mm@x.org, Other <other@x.org>\n{more}{thread}"
        f"Message-ID: <{own}>\nSubject: {subject}\n\nWhy.\n{body}"
    )


def mailbox(tmp_path: Path, *mails: str) -> tuple[Series, list]:
    path = tmp_path / "v5.mbx"
    path.write_text("".join(mails))
    return load_series(path), mails_of(path)


def judgement(*operations: Operation) -> Judgement:
    none: dict[str, tuple[str, ...]] = dict.fromkeys(
        ("changed", "added", "removed", "moved", "data", "layout"), ()
    )
    fork = Reach("fork", ("copy_page_range",), ("fork-4k",), 64, None)
    reach = WholeReach(991, **none, text_bytes=(64, 80), experiments=(fork,), nearest=None)
    return Judgement(
        EVIL,
        (EVIL, "mm: two"),
        "a tree",
        "a machine " * 12,
        reach,
        operations,
        command=f"ream judge {Path.home()}/v5.mbx --letter {Path.home()}/reply",
        reproduce="ream judge cover@x --seed 5",
    )


def operation(row: str) -> Operation:
    change = CountedChange("page", {"instructions": 2.0}, {"instructions": 1.0}, repeats=True)
    step = PatchStep(1, EVIL, {"instructions": -1.0})
    timed = TimedChange(0.5, 0.49, 0.51, "faster", None, 1.02)
    return Operation(
        "fork",
        row,
        "fork() of 1 GiB",
        change,
        timed,
        (("a_function", {"instructions": -1.0}),),
        (step,),
    )


ROWS = judgement(operation("fork-4k"), operation("a-row-with-a-very-long-name-indeed"))


@pytest.fixture
def thread(tmp_path: Path) -> tuple[Series, list]:
    cc = "Cc: <cc@x.org>, AUTHOR@x.org\n"
    return mailbox(
        tmp_path,
        mail("[PATCH v5 0/2] mm: faster", "cover@x", answers="v4@x", more=cc),
        mail("[PATCH v5 1/2] mm: one", "one@x", answers="cover@x", body=DIFF % 1),
        mail("[PATCH v5 2/2] mm: two", "two@x", answers="cover@x", body=DIFF % 2),
    )


def test_the_answer_goes_to_the_cover_letter_and_all_who_got_it(
    thread: tuple[Series, list],
) -> None:
    text = letter.render(ROWS, *thread)
    said = email.message_from_string(text, policy=default)
    assert said["Subject"] == "Re: [PATCH v5 0/2] mm: faster"
    assert said["In-Reply-To"] == "<cover@x>"
    assert said["References"].split() == ["<root@x>", "<v4@x>", "<cover@x>"]
    assert [(one.display_name, one.addr_spec) for one in said["To"].addresses] == [
        ("Jürgen Author", "author@x.org")
    ]
    assert [one.addr_spec for one in said["Cc"].addresses] == [
        "linux-mm@x.org", "other@x.org", "cc@x.org",
    ]  # fmt: skip


def test_no_line_is_wider_than_a_mail_and_no_escape_is_in_it(thread: tuple[Series, list]) -> None:
    text = letter.render(ROWS, *thread)
    assert max(map(len, text.splitlines())) <= COLUMNS
    assert not {one for one in text if not one.isprintable()} - {"\n"}
    assert "Tested-by" not in text
    assert "\n  ream judge cover@x --seed 5\n" in text


WRONG = Wrong(
    "fork",
    (
        "anon-order-0/fork: patched: the child's entry 0 is 0x1, the oracle says 0x5",
        f"core in {Path.home()}/.cache/ream/console/a.log, {Path.cwd()}/runs/x and /proc/self/maps",
    ),
    (1, "mm: one"),
)


def test_neither_letter_nor_page_has_a_path_of_this_machine(thread: tuple[Series, list]) -> None:
    long = f"{Path.home()}/{'/'.join(['a-folder-of-mine'] * 9)}/one"
    its = replace(ROWS, wrong=WRONG, notes=(f"kept in {long}",), unhosted={"fork": f"{long}: no"})
    for text in (letter.render(its, *thread), html.render(its)):
        assert str(Path.home()) + "/" not in text
        assert str(Path.cwd()) not in text
        assert "a-folder-of-mine" not in text
        assert "kept in one" in text
        assert "core in a.log, x and /proc/self/maps" in " ".join(text.split())
        assert "ream judge cover@x --seed 5" in text


def test_names_and_ream_itself_are_explained(thread: tuple[Series, list]) -> None:
    its = replace(ROWS, wrong=WRONG)
    for text in (letter.render(its, *thread), html.render(its)):
        said = " ".join(html_module.unescape(text).split())
        assert "an edge case of fork: memory of the shape 'anon-order-0', on which fork was" in said
        assert "fork() of 1 GiB" in said
        assert "docs/method.md in its source explains how" in said
    row = replace(WRONG, lines=("fork-64k: patched: pte at 8",))
    assert "fork-64k: a row of fork: fork of" in " ".join(
        letter.render(replace(ROWS, wrong=row), *thread).split()
    )


def test_tested_by_is_there_if_somebody_says_so(thread: tuple[Series, list]) -> None:
    text = letter.render(ROWS, *thread, by="A Tester <tester@x.org>")
    assert text.rstrip().endswith("Tested-by: A Tester <tester@x.org>")


@pytest.mark.parametrize("by", ["", "nobody", "a@b", "A <a@b>\nBcc: <x@y>", "A <a@b>, B <c@d>"])
def test_who_is_no_name_with_an_address_tests_nothing(thread: tuple[Series, list], by: str) -> None:
    with pytest.raises(BadUsage, match="give a name and an address"):
        letter.render(ROWS, *thread, by=by)


def test_a_single_patch_is_answered_itself(tmp_path: Path) -> None:
    its = mailbox(tmp_path, mail("[PATCH] mm: one", "one@x", body=DIFF % 1))
    said = email.message_from_string(letter.render(ROWS, *its), policy=default)
    assert (said["Subject"], said["In-Reply-To"]) == ("Re: [PATCH] mm: one", "<one@x>")
    assert said["References"] == "<one@x>"


def test_what_came_in_no_mail_cannot_be_answered(tmp_path: Path) -> None:
    (tmp_path / "a.patch").write_text(DIFF % 1)
    series = load_series(tmp_path / "a.patch")
    with pytest.raises(BadUsage, match="none of its patches has a Message-ID"):
        letter.render(ROWS, series, mails_of(tmp_path / "a.patch"))


def test_headers_of_a_mail_cannot_add_headers(tmp_path: Path) -> None:
    more = 'Cc: "x\n Bcc: evil@x.org" <cc@x.org>, =?utf-8?q?y=0ABcc=3A_evil?= <dd@x.org>\n'
    its = mailbox(tmp_path, mail("[PATCH] mm: one", "one@x", more=more, body=DIFF % 1))
    said = email.message_from_string(letter.render(ROWS, *its), policy=default)
    assert said["Bcc"] is None
    assert {one.addr_spec for one in said["Cc"].addresses} >= {"cc@x.org", "dd@x.org"}


def test_what_is_wrong_on_all_of_mm_has_a_page_though_nothing_else_was_looked_at() -> None:
    text = html.render(replace(ROWS, reach=None, operations=(), wrong=WRONG))
    assert "WRONG" in text
    assert WRONG.lines[0] in html_module.unescape(text)
    assert "<dt>Reach</dt>" not in text


def test_a_page_shows_text_of_strangers_as_text() -> None:
    text = html.render(ROWS)
    ours = (html.REPORT / html.SCRIPT).read_text(encoding="utf-8")
    assert text.count("<script>") == 1
    assert f"<script>\n{ours}</script>" in text
    assert "&lt;script&gt;" in text
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "default-src 'none'" in text


def test_a_list_of_judgements_links_to_their_pages() -> None:
    one = html.Listed("2026-11-25 08:10", EVIL, 5, "WRONG: <b>", "abc.html")
    text = html.render_list([one, html.Listed("2026-11-25 08:00", "b", 2, "no patch", None)])
    assert '<a href="abc.html">mm:' in text
    assert text.index("08:10") < text.index("08:00")
    assert '<td class="bad" data-value="5">wrong</td>' in text
    assert '<td class="words">WRONG: &lt;b&gt;</td>' in text
    assert '<td class="unclear" data-value="2">not judged</td>' in text
