# SPDX-License-Identifier: GPL-2.0-only
"""Every form in which people have a series gives the same patches, or a line on what to do."""

import base64
import quopri
import re
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from ream.errors import BadUsage
from ream.kernel.series import load_series
from ream.kernel.source import Commit
from ream.kernel.variant import DoesNotApply, try_to_apply

SUBJECTS = ["mm: two", "mm: zwölf", "mm: B"]
FILES = {
    "Makefile": "VERSION = 6\nPATCHLEVEL = 12\nSUBLEVEL = 1\nEXTRAVERSION =\n",
    "mm/mm_init.c": "one\ntwo\n\n three\n\tfour\nfive\nsix\nseven\n",
    "mm/a.c": "a\n\tb\nc\n",
}


class Kernel:
    """A git tree with the files of a kernel, and a branch of three commits on them."""

    def __init__(self, place: Path) -> None:
        self.place = place
        for name, text in FILES.items():
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            (place / name).write_text(text)
        self("init", "--quiet", "--initial-branch=master")
        self.commit("base")
        self.base = self("rev-parse", "HEAD").strip()
        self("checkout", "--quiet", "-b", "topic")
        init = place / "mm" / "mm_init.c"
        for subject, old, new in ((SUBJECTS[0], "two", "2"), (SUBJECTS[1], "2", "zwölf")):
            init.write_text(init.read_text().replace(old, new))
            (place / "mm" / "new.c").write_text(new)
            self.commit(subject)
        (place / "mm" / "a.c").write_text(FILES["mm/a.c"].replace("b", "B"))
        self.commit(SUBJECTS[2])

    def __call__(self, *words: str) -> str:
        identity = ("-c", "user.name=x", "-c", "user.email=x@localhost", "-c", "gc.auto=0")
        asked = ("git", *identity, "-c", "commit.gpgsign=false", *words)
        return subprocess.run(
            asked, cwd=self.place, check=True, capture_output=True, text=True
        ).stdout

    def commit(self, subject: str) -> None:
        self("add", "-A")
        self("commit", "--quiet", "-m", subject)

    def sent(self, *options: str) -> str:
        return self("format-patch", "--stdout", *options, "master..topic")

    def mails(self) -> list[str]:
        return [one for one in re.split(r"(?m)(?=^From [0-9a-f]{40} )", self.sent()) if one]


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Kernel:
    return Kernel(tmp_path_factory.mktemp("linux"))


def encoded(mail: str, how: str, end: str = "\n") -> str:
    head, _, body = mail.partition("\n\n")
    head = re.sub(r"(?m)^(?:MIME|Content)-.*\n", "", f"{head}\n")
    encode = quopri.encodestring if how == "quoted-printable" else base64.encodebytes
    text = encode(body.replace("\n", end).encode()).decode()
    kind = f"Content-Type: text/plain; charset=UTF-8\nContent-Transfer-Encoding: {how}\n"
    return f"{head}{kind}\n{text}\n"


def attached(mail: str) -> str:
    head, _, _ = mail.partition("\n\n")
    head = re.sub(r"(?m)^(?:MIME|Content)-.*\n", "", f"{head}\n")
    return (
        f'{head}MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary="X"\n\n'
        "--X\nContent-Type: text/plain\n\nAttached.\n"
        '--X\nContent-Type: application/octet-stream; name="x.patch"\n'
        'Content-Disposition: attachment; filename="x.patch"\n'
        "Content-Transfer-Encoding: base64\n\n"
        f"{base64.encodebytes(mail.encode()).decode()}\n--X--\n"
    )


def flowed(mail: str) -> str:
    head, _, body = mail.partition("\n\n")
    head = re.sub(r"(?m)^(?:MIME|Content)-.*\n", "", f"{head}\n")
    stuffed = re.sub(r"(?m)^ ", "  ", body)
    return f"{head}Content-Type: text/plain; charset=UTF-8; format=flowed\n\n{stuffed}"


def carriage_returns(mail: str) -> str:
    """The mail with CRLF line ends, except in the mailbox's own first line."""
    first, _, rest = mail.partition("\n")
    return f"{first}\n" + rest.replace("\n", "\r\n") + "\n"


def without_line(mail: str) -> str:
    return mail.partition("\n")[2]


def each(made: Callable[..., str], *words: str) -> Callable[[Kernel], str]:
    return lambda kernel: "".join(made(mail, *words) for mail in kernel.mails())


MAILED: Mapping[str, Callable[[Kernel], str]] = {
    "as git sends it": Kernel.sent,
    "without numbers": lambda kernel: kernel.sent("--no-numbered"),
    "the last one first": lambda kernel: "".join(reversed(kernel.mails())),
    "without a prefix": lambda kernel: kernel.sent("--no-prefix"),
    "another prefix": lambda kernel: kernel.sent(
        "--src-prefix=linux-6.10.11/", "--dst-prefix=linux-6.10.11.mine/"
    ),
    "two parts before the top": lambda kernel: kernel.sent(
        "--src-prefix=src/linux/", "--dst-prefix=src/linux/"
    ),
    "carriage returns": lambda kernel: kernel.sent().replace("\n", "\r\n"),
    "carriage returns in mails alone": each(carriage_returns),
    "quoted-printable": each(encoded, "quoted-printable"),
    "base64": each(encoded, "base64"),
    "base64 with carriage returns": each(encoded, "base64", "\r\n"),
    "attached": each(attached),
    "format=flowed": each(flowed),
    "a byte order mark": lambda kernel: f"\ufeff{kernel.sent()}",
    "one behind the other": each(without_line),
    "each a series of its own": lambda kernel: "".join(
        without_line(kernel("format-patch", "--stdout", "-n", "-1", f"topic~{back}"))
        for back in (2, 1, 0)
    ),
    "git log -p": lambda kernel: kernel("log", "-p", "master..topic"),
    "git log -p --reverse": lambda kernel: kernel("log", "-p", "--reverse", "master..topic"),
}


@pytest.mark.parametrize("form", MAILED)
def test_a_series_is_read_however_it_was_sent(kernel: Kernel, tmp_path: Path, form: str) -> None:
    box = tmp_path / "t.mbox"
    box.write_bytes(MAILED[form](kernel).encode())
    series = load_series(box)
    assert [patch.subject for patch in series.patches] == SUBJECTS
    try_to_apply(series.patches, Commit(kernel.place, kernel.base), cache=tmp_path)
    (tmp_path / "sent.mbox").write_text(kernel.sent())
    if "log" not in form:
        assert series.diff_id == load_series(tmp_path / "sent.mbox").diff_id


LONE = "@@ -1,3 +1,3 @@\n a\n-\tb\n+\tB\n c\n"

BARE: Mapping[str, str] = {
    "of two folders": f"--- linux-6.12/mm/a.c\n+++ linux-6.12.new/mm/a.c\n{LONE}",
    "of two files": f"--- mm/a.c\t2026-01-01\n+++ mm/a.c\t2026-01-02\n{LONE}",
    "of a file that was kept": f"--- mm/a.c.orig\t2026-01-01\n+++ mm/a.c\t2026-01-02\n{LONE}",
    "of a kept file in a folder": f"--- a/mm/a.c~\n+++ b/mm/a.c\n{LONE}",
    "as patch -p1 has it": f"Index: linux/mm/a.c\n--- linux.orig/mm/a.c\n+++ linux/mm/a.c\n{LONE}",
    "from here": f"--- ./mm/a.c\n+++ ./mm/a.c\n{LONE}",
    "of a path from the root": f"--- /home/x/linux-6.12/mm/a.c\n+++ /home/x/linux/mm/a.c\n{LONE}",
    "at other lines": f"--- a/mm/a.c\n+++ b/mm/a.c\n{LONE.replace('@@ -1,3 +1,3', '@@ -9,3 +9,3')}",
}


@pytest.mark.parametrize("form", BARE)
def test_a_diff_is_read_whatever_its_paths_begin_with(
    kernel: Kernel, tmp_path: Path, form: str
) -> None:
    (tmp_path / "x.patch").write_text(BARE[form])
    series = load_series(tmp_path / "x.patch")
    try_to_apply(series.patches, Commit(kernel.place, kernel.base), cache=tmp_path)


def test_a_file_that_comes_or_goes_is_no_path_to_change(kernel: Kernel, tmp_path: Path) -> None:
    new = "--- /dev/null\n+++ mm/other.c\n@@ -0,0 +1 @@\n+new\n"
    gone = "--- mm/a.c\n+++ /dev/null\n@@ -1,3 +0,0 @@\n-a\n-\tb\n-c\n"
    (tmp_path / "x.patch").write_text(new + gone)
    (patch,) = load_series(tmp_path / "x.patch").patches
    assert b"--- /dev/null\n+++ b/mm/other.c\n" in patch.body
    try_to_apply([patch], Commit(kernel.place, kernel.base), cache=tmp_path)


@pytest.mark.parametrize("name", ["ream/kernel/x.c", "mm/kernel/x.c", "new/x.c"])
def test_a_prefix_of_git_is_one_part(tmp_path: Path, name: str) -> None:
    text = f"diff --git a/{name} b/{name}\n--- a/{name}\n+++ b/{name}\n@@ -1 +1 @@\n-a\n+b\n"
    (tmp_path / "x.patch").write_text(text)
    assert load_series(tmp_path / "x.patch").patches[0].body.decode() == text


def test_lines_of_a_hunk_are_no_paths(tmp_path: Path) -> None:
    text = "--- mm/a.c\n+++ mm/a.c\n@@ -1,2 +1,2 @@\n--- mm/x\n+++ mm/x\n z\n"
    (tmp_path / "x.patch").write_text(text)
    (patch,) = load_series(tmp_path / "x.patch").patches
    assert patch.body.decode() == text.replace("--- mm/a", "--- a/mm/a", 1).replace(
        "+++ mm/a", "+++ b/mm/a", 1
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "*** a/mm/a.c\n--- b/mm/a.c\n" + "*" * 15 + "\n*** 1 ****\n",
            "it holds a context diff: `",
        ),
        (
            "".join(f"> {one}\n" for one in BARE["from here"].split("\n")),
            "its diff is quoted or ind",
        ),
        ("".join(f"    {one}\n" for one in BARE["from here"].split("\n")), "its diff is quoted or"),
    ],
)
def test_what_is_no_patch_is_told_how_to_get_one(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "x.patch").write_text(text)
    with pytest.raises(BadUsage, match=f"x.patch: no patch inside; {re.escape(said)}") as caught:
        load_series(tmp_path / "x.patch")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            f"--- a/mm/a.c\n+++ b/mm/a.c\n{LONE}".replace("\t", "        "),
            "but for white space, which",
        ),
        (f"--- a/a.c\n+++ b/a.c\n{LONE}", "its paths do not begin at the top of a kernel source"),
    ],
)
def test_a_damaged_patch_is_told_from_one_for_another_kernel(
    kernel: Kernel, tmp_path: Path, text: str, said: str
) -> None:
    (tmp_path / "x.patch").write_text(text)
    series = load_series(tmp_path / "x.patch")
    with pytest.raises(DoesNotApply, match=re.escape(said)) as caught:
        try_to_apply(series.patches, Commit(kernel.place, kernel.base), cache=tmp_path)
    assert "\n" not in str(caught.value)


def test_a_maildir_is_a_mailbox(kernel: Kernel, tmp_path: Path) -> None:
    for name, text in zip(("new/1:2,", "cur/3:2,S", "cur/2:2,S"), kernel.mails(), strict=True):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    assert [patch.subject for patch in load_series(tmp_path).patches] == SUBJECTS


def test_patches_of_quilt_may_have_any_depth(kernel: Kernel, tmp_path: Path) -> None:
    (tmp_path / "a.diff").write_text(kernel("diff", "--no-prefix", "master..topic"))
    (tmp_path / "series").write_text("a.diff -p0\n")
    series = load_series(tmp_path)
    try_to_apply(series.patches, Commit(kernel.place, kernel.base), cache=tmp_path)


@pytest.mark.parametrize(
    ("words", "nr"),
    [
        ("HEAD~2..", 2),
        ("master..topic", 3),
        ("master...topic", 3),
        ("topic", 3),
        ("HEAD", 3),
        ("topic~1", 1),
        ("v6.12-rc1..topic", 3),
    ],
)
def test_commits_of_a_git_tree_are_a_series_on_what_is_before_them(
    kernel: Kernel, tmp_path: Path, words: str, nr: int
) -> None:
    kernel("tag", "--force", "v6.12-rc1", "master")
    series = load_series(Path(words), repository=kernel.place)
    end = 2 if words == "topic~1" else 3
    assert [patch.subject for patch in series.patches] == SUBJECTS[end - nr : end]
    (base,) = {patch.ground.commit for patch in series.patches}
    assert base == kernel("rev-parse", f"topic~{3 - end + nr}").strip()
    try_to_apply(series.patches, Commit(kernel.place, str(base)), cache=tmp_path)


def test_a_branch_begins_where_its_upstream_has_it_or_else_at_a_release(tmp_path: Path) -> None:
    place = tmp_path / "linux"
    place.mkdir()
    kernel = Kernel(place)
    kernel("branch", "--move", "master", "other")
    with pytest.raises(BadUsage, match=r"topic: after which commit does it begin\? BASE..topic"):
        load_series(Path("topic"), repository=place)
    kernel("tag", "v6.12", "topic~2")
    assert len(load_series(Path("topic"), repository=place).patches) == 2
    kernel("branch", "--set-upstream-to=other", "topic")
    assert len(load_series(Path("topic"), repository=place).patches) == 3


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("nothing.mbx", "nothing.mbx: no such file, and git has no such commits in "),
        ("nowhere..topic", "nowhere..topic: no such file, and git has no such commits in "),
        ("topic..", "topic..: 0 commits inside; a series has 1 to 1,000"),
    ],
)
def test_commits_that_are_not_there_are_one_line(kernel: Kernel, words: str, said: str) -> None:
    with pytest.raises(BadUsage, match=re.escape(said)) as caught:
        load_series(Path(words), repository=kernel.place)
    assert "\n" not in str(caught.value)


def test_commits_without_a_git_tree_name_the_way(tmp_path: Path) -> None:
    with pytest.raises(BadUsage, match="; --tree DIR names the git tree of commits"):
        load_series(Path("HEAD~3.."), repository=tmp_path)


def test_a_file_of_headers_alone_takes_no_longer_the_longer_it_is(tmp_path: Path) -> None:
    (tmp_path / "x.patch").write_text("From: a\n" * 100_000)
    with pytest.raises(BadUsage, match="x.patch: no patch inside"):
        load_series(tmp_path / "x.patch")
