# SPDX-License-Identifier: GPL-2.0-only
"""`ream judge`: words that cannot be meant, and mails that cannot be judged."""

import json
import subprocess
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from ream.cli.judge import seed_of
from ream.kernel.series import load_series
from ream.paths import CHECKOUT

PATCHES = CHECKOUT / "tests/native/patches"
BARE = str(PATCHES / "no-change.patch")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((BARE, "--base-ref", "v6.12"), "--base-ref v6.12: a commit of what? --tree DIR names it"),
        ((BARE, "--by", "A <a@b>"), "--by A <a@b>: it is a line of --letter"),
        ((BARE, "--letter", "reply"), "has a Message-ID, so there is no mail to answer"),
        ((BARE, "--watch", "--html", "pages"), "no folder; give one, or - for standard input"),
        ((BARE, "--markdown", "."), ".: is a directory; name a file in it"),
        ((BARE, "--junit", "no/where.xml"), "no/where.xml: cannot be written: no is no directory"),
        ((".", "--watch", "--html", "p", "--junit", "x"), "--watch writes pages alone, into the"),
        ((".", "--watch"), "--watch writes pages alone, into the folder that --html names"),
        ((), "a series is missing"),
        (("--from", "6.12"), "--from 6.12: the other kernel is missing; name it with --to KERNEL"),
        (("--to", "7.3"), "--to 7.3: the other kernel is missing; name it with --from KERNEL"),
        ((BARE, "--from", "6.12", "--to", "7.3"), "an upgrade is judged alone; leave out the seri"),
        (
            ("--from", "6.12", "--to", "7.3", "--version", "2"),
            "an upgrade is judged alone; leave out what is of a series",
        ),
        (("nothing.mbx",), "nothing.mbx: No such file or directory"),
    ],
)
def test_what_cannot_be_meant_is_refused(ream, words: tuple[str, ...], said: str) -> None:
    ran = ream("judge", *words)
    assert (ran.code, ran.out) == (2, "")
    assert said in ran.err


def test_mails_that_are_no_series_are_listed_with_the_reason(ream, tmp_path: Path) -> None:
    inbox, pages = tmp_path / "inbox", tmp_path / "pages"
    inbox.mkdir()
    (inbox / "empty.mbx").write_text("")
    (inbox / "spam.mbx").write_text("Subject: \x1b[2Jbuy <b>this</b>\n\nnow\n")
    (inbox / "noise.mbx").write_bytes(bytes(range(256)) * 100)
    ran = ream("judge", str(inbox), "--watch", "--once", "--html", str(pages))
    assert ran.code == 0, ran.err
    told = [json.loads(path.read_text()) for path in pages.glob("*.json")]
    assert {one["series"]: one["exit"] for one in told} == {
        "empty.mbx": 2, "spam.mbx": 2, "noise.mbx": 2,
    }  # fmt: skip
    assert (pages / "index.html").read_text().count(">not judged</td>") == len(told)


def test_paths_of_mailboxes_come_on_standard_input(ream, tmp_path: Path) -> None:
    (tmp_path / "spam.mbx").write_text("Subject: a\n\nb\n")
    fed = "spam.mbx\n\ngone.mbx\n"
    ran = ream("judge", "-", "--watch", "--html", "pages", fed=fed)
    assert ran.code == 0, ran.err
    assert "gone.mbx: No such file or directory" in ran.err
    assert len([*(tmp_path / "pages").glob("*.json")]) == 1


def linux(place: Path) -> None:
    """A git tree with what makes it a kernel's, a commit in it, and two more on a branch."""
    mm_init = place / "mm" / "mm_init.c"
    mm_init.parent.mkdir(parents=True)
    (place / "Makefile").write_text("VERSION = 6\nPATCHLEVEL = 12\nSUBLEVEL = 1\n")
    identity = ("-c", "user.name=x", "-c", "user.email=x@localhost", "-c", "commit.gpgsign=false")
    git = ("git", *identity)
    subprocess.run((*git, "init", "--quiet", "--initial-branch=master"), cwd=place, check=True)
    for subject in ("base", "mm: one", "mm: two"):
        mm_init.write_text(f"{subject}\n")
        subprocess.run((*git, "add", "-A"), cwd=place, check=True)
        subprocess.run((*git, "commit", "--quiet", "-m", subject), cwd=place, check=True)
    subprocess.run((*git, "branch", "topic"), cwd=place, check=True)
    subprocess.run((*git, "reset", "--quiet", "--hard", "HEAD~2"), cwd=place, check=True)


@pytest.mark.parametrize("words", ["topic~2..topic", "master..topic", "topic"])
def test_commits_of_a_git_tree_are_judged_on_the_one_before_them(
    ream, tmp_path: Path, words: str
) -> None:
    linux(tmp_path / "linux")
    ran = ream("judge", "--tree", "linux", words, "--dry-run")
    assert ran.code == 0, ran.err
    assert "\npatches    1. mm: one\n           2. mm: two\n" in ran.out
    head = ("git", "rev-parse", "--short=12", "master")
    base = subprocess.run(head, cwd=tmp_path / "linux", check=True, capture_output=True, text=True)
    assert f"\napplies    to linux (git {base.stdout.strip()})\n" in ran.out


def test_in_a_kernel_s_git_tree_commits_need_no_tree(ream, tmp_path: Path) -> None:
    assert "; --tree DIR names the git tree of commits" in ream("judge", "master..topic").err
    linux(tmp_path)
    ran = ream("judge", "topic~1", "--dry-run")
    assert (ran.code, ran.err) == (0, "")
    assert "\npatches    1. mm: one\napplies    to " in ran.out


def test_reasons_why_there_is_no_judgement_replace_an_earlier_one(ream, tmp_path: Path) -> None:
    (tmp_path / "mine.patch").write_text("--- a/mm/mmap.c\n+++ b/mm/mmap.c\n@@ -1 +1 @@\n-x\n+y\n")
    linux(tmp_path / "linux")
    places = [str(tmp_path / name) for name in ("j.xml", "s.md")]
    asked = ("judge", str(tmp_path / "mine.patch"), "--tree", str(tmp_path / "linux"), "--json")
    asked = (*asked, "--junit", places[0], "--markdown", places[1])
    for place in places:
        Path(place).write_text("passed\n")
    refused = ream(*asked)
    assert json.loads(refused.out)["error"]["message"] in refused.err
    assert all(Path(place).exists() for place in places)
    ran = ream(*asked, "--force")
    error = json.loads(ran.out)["error"]
    assert (ran.code, error["kind"]) == (2, "does-not-apply")
    suites = ET.parse(places[0]).getroot()  # noqa: S314
    (case,) = suites.iter("testcase")
    assert (case.get("name"), suites.get("skipped"), suites.get("failures")) == (
        "judgement", "1", "0",
    )  # fmt: skip
    text = Path(places[1]).read_text()
    assert text.startswith("## mine: not judged\n\n")
    for written in (case[0].attrib["message"], text):
        assert "mm/mmap.c" in written
        assert "does not apply" in written
        assert str(tmp_path) not in written


def test_a_series_has_one_seed_unless_another_is_given() -> None:
    first, second = (PATCHES / name for name in ("no-change.patch", "lines-moved.patch"))
    seeds = [seed_of(load_series(one)) for one in (first, first, second)]
    assert seeds[0] == seeds[1] != seeds[2]


def test_a_series_that_is_missing_is_an_object_too(ream) -> None:
    ran = ream("judge", "--json")
    assert (ran.code, json.loads(ran.out)["error"]["kind"]) == (2, "bad-usage")


@pytest.mark.parametrize(
    ("text", "kind"), [("", "bad-usage"), ("no patch\n", "bad-usage"), ("\0", "bad-usage")]
)
def test_what_cannot_be_judged_is_an_object_too(ream, tmp_path, text: str, kind: str) -> None:
    (tmp_path / "mine.patch").write_text(text)
    ran = ream("judge", str(tmp_path / "mine.patch"), "--quick", "--json")
    its = json.loads(ran.out)
    assert (its["exit"], its["error"]["kind"]) == (ran.code, kind) == (2, kind)
    assert its["error"]["message"] in ran.err
