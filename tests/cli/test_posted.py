# SPDX-License-Identifier: GPL-2.0-only
"""The author's mails on the author's tree: a git history, and mailboxes whose base lies in it."""

import subprocess
from pathlib import Path

import pytest

from ream.kernel.cache import appearing

USAGE = 2
MAKEFILE = "VERSION = 6\nPATCHLEVEL = 12\nSUBLEVEL = 1\nEXTRAVERSION =\n"
LINES = [f"line {number}" for number in range(20)]


def git(tree: Path, *words: str) -> str:
    identity = ("-c", "user.name=x", "-c", "user.email=x@localhost", "-c", "commit.gpgsign=false")
    done = subprocess.run(
        ("git", *identity, *words), cwd=tree, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


class History:
    """A kernel's git history: its first commit, the author's base, and one that came after."""

    def __init__(self, tree: Path) -> None:
        self.tree = tree
        (tree / "mm").mkdir(parents=True)
        (tree / "Makefile").write_text(MAKEFILE)
        self._lines = LINES.copy()
        git(tree, "init", "-q", "-b", "main")
        self.first = self.commit("first", {})
        self.base = self.commit("base", {5: "of the base"})
        self.head = self.commit("head", {5: "of the head"})

    def commit(self, subject: str, changed: dict[int, str]) -> str:
        for at, text in changed.items():
            self._lines[at] = text
        (self.tree / "mm" / "mm_init.c").write_text("\n".join(self._lines) + "\n")
        git(self.tree, "add", "-A")
        git(self.tree, "commit", "-q", "-m", subject)
        return git(self.tree, "rev-parse", "HEAD")

    def posted(self, where: Path, *changes: dict[int, str], since: int = 0, base: str = "") -> str:
        """Write what an author on the base sends: his commits after the first `since`."""
        git(self.tree, "checkout", "-q", "-B", "author", self.base)
        self._lines = (self.tree / "mm" / "mm_init.c").read_text().splitlines()
        commits = [self.commit(f"mm: {n}", one) for n, one in enumerate(changes)]
        begin = commits[since - 1] if since else self.base
        words = [
            "format-patch",
            "--stdout",
            "--cover-letter",
            "--thread",
            *([base] if base else []),
        ]
        where.write_text(git(self.tree, *words, f"{begin}..author") + "\n")
        git(self.tree, "checkout", "-q", "main")
        git(self.tree, "branch", "-q", "-D", "author")
        return commits[0]


@pytest.fixture
def history(tmp_path: Path) -> History:
    return History(tmp_path / "linux")


def dry(ream, tmp_path: Path, *words: str):
    asked = ("run", "zone-device", "--only", "before,v5", "--tree", "linux", "--dry-run")
    return ream(*asked, *words, XDG_CACHE_HOME=str(tmp_path / "cache"))


def refused(ream, tmp_path: Path, *words: str) -> str:
    answer = dry(ream, tmp_path, *words)
    assert (answer.code, answer.out) == (USAGE, "")
    return answer.err.splitlines()[-1]


def test_the_commit_that_a_mailbox_is_made_for_is_taken(
    ream, history: History, tmp_path: Path
) -> None:
    history.posted(tmp_path / "v5.mbx", {6: "six"}, {8: "eight"}, base=f"--base={history.base}")
    said = dry(ream, tmp_path, "--series", "v5.mbx")
    assert said.code == 0, said.err
    assert f"linux (git {history.base[:12]})" in " ".join(said.out.split())
    assert "variant     v5: v5 (2 patches)\n" in said.out


def test_a_mail_made_for_an_older_commit_without_saying_so_names_file_and_hunk(
    ream, history: History, tmp_path: Path
) -> None:
    history.posted(tmp_path / "v5.mbx", {6: "six"})
    said = refused(ream, tmp_path, "--series", "v5.mbx")
    assert "mm: 0" not in said
    assert ": does not apply: mm/mm_init.c: hunk 1 does not match (@@ -4,7 +4,7 @@" in said
    assert (
        f"; tried on linux (git {history.head[:12]}); not tried: 7.3, 7.2, 6.12, 6.1 (not f" in said
    )


def test_a_mail_whose_base_the_tree_has_not_names_the_commit(
    ream, history: History, tmp_path: Path
) -> None:
    history.posted(tmp_path / "v5.mbx", {6: "six"}, base=f"--base={history.base}")
    text = (tmp_path / "v5.mbx").read_text()
    other = "0123456789abcdef0123456789abcdef01234567"
    (tmp_path / "v5.mbx").write_text(text.replace(history.base, other))
    answer = dry(ream, tmp_path, "--series", "v5.mbx")
    assert answer.code == USAGE
    note, said = answer.err.splitlines()
    assert note == (
        f"ream: linux has no commit {other[:12]}, which the series is made for: HEAD is taken;"
        " `git fetch` may have it"
    )
    assert "hunk 1 does not match (@@ -4,7 +4,7 @@" in said
    assert f"; its series names base-commit {other}; not tried: " in said


def test_a_mail_that_needs_others_before_it_says_how_many(
    ream, history: History, tmp_path: Path
) -> None:
    """The author's second patch stands on his first, which another series has."""
    changes = ({6: "six"}, {7: "seven"})
    history.posted(tmp_path / "v5.mbx", *changes, since=1, base=f"--base={history.base}")
    said = refused(ream, tmp_path, "--series", "v5.mbx")
    assert "hunk 1 does not match" in said
    assert f"; its series names base-commit {history.base} and 1 prerequisite patch on that" in said
    assert "--variant NAME=TREE+THEIRS+YOURS" in said
    history.posted(tmp_path / "theirs.mbx", changes[0])
    tree = f"linux@{history.base}"
    both = ("--variant", tree, "--variant", f"mine={tree}+theirs.mbx+v5.mbx")
    whole = ream("run", "zone-device", *both, "--dry-run", XDG_CACHE_HOME=str(tmp_path / "cache"))
    assert whole.code == 0, whole.err


def test_the_nearest_base_to_which_it_applies_is_named(
    ream, history: History, tmp_path: Path
) -> None:
    """The base is searched among kernel sources that are here; nothing is fetched."""
    trees = tmp_path / "cache" / "ream" / "tree"
    trees.mkdir(parents=True)
    for version, old in (("6.1", "of the base"), ("7.3", "of the base"), ("6.12", "line 5")):
        stamp = {"label": f"linux-source-{version} x", "origin": f"linux-source-{version}"}
        with appearing(trees / f"key{version}", lambda stamp=stamp: stamp) as partial:
            mm = partial / "linux" / "mm"
            mm.mkdir(parents=True)
            lines = [*LINES[:5], old, *LINES[6:]]
            (mm / "mm_init.c").write_text("\n".join(lines) + "\n")
            major, minor = version.split(".")
            text = MAKEFILE.replace("6", major, 1).replace("12", minor, 1)
            (partial / "linux" / "Makefile").write_text(text)
    history.posted(tmp_path / "v5.mbx", {6: "six"})
    answer = ream(
        *("run", "zone-device", "--only", "before,v5", "--series", "v5.mbx", "--dry-run"),
        XDG_CACHE_HOME=str(tmp_path / "cache"),
    )
    assert answer.code == USAGE
    assert "; it applies to linux-source-6.1 x: --base 6.1; " in answer.err
    said = refused(ream, tmp_path, "--series", "v5.mbx")
    assert "; it applies to linux-source-7.3 x: --base 7.3; " in said


def test_a_series_comes_through_standard_input(ream, history: History, tmp_path: Path) -> None:
    history.posted(tmp_path / "v5.mbx", {6: "six"}, base=f"--base={history.base}")
    words = ("run", "zone-device", "--only", "before,stdin", "--tree", "linux", "--dry-run")
    said = ream(*words, "--series", "-", fed=(tmp_path / "v5.mbx").read_text())
    assert said.code == 0, said.err
    assert "variant     stdin: stdin (1 patch)\n" in said.out
    empty = ream(*words, "--series", "-")
    assert (empty.code, empty.err) == (USAGE, "ream: -: empty\n")


def test_a_series_alone_is_a_run_and_what_of_ours_does_not_apply_is_left_out_by_a_line(
    ream, history: History, tmp_path: Path
) -> None:
    """The tree has no mm/rmap.c: nothing of ours is for it."""
    history.posted(tmp_path / "v5.mbx", {6: "six"}, base=f"--base={history.base}")
    asked = ("run", "fork", "--tree", "linux", "--series", "v5.mbx", "--dry-run")
    environment = {"XDG_CACHE_HOME": str(tmp_path / "cache"), "COLUMNS": "300"}
    whole = ream(*asked, **environment)
    assert whole.code == 0, whole.err
    notes = [line for line in whole.out.splitlines() if line.startswith("not there")]
    # Of one base or the other `published` is the tree as it is, and needs no line.
    names = [line.split()[2] for line in notes]
    assert [name for name in names if name != "published"] == ["before", "ours"]
    assert "before is the tree itself: 0001-" in notes[0]
    assert all("is left out: 0001-" in line for line in notes[1:])
    variants = [line.split()[1] for line in whole.out.splitlines() if line.startswith("variant")]
    assert variants == ["before:", "before-again:", "v5:"]
    alone = ream(*asked, "--only", "before,v5", **environment)
    assert alone.code == 0, alone.err
    notes = [line for line in alone.out.splitlines() if line.startswith("not there")]
    assert [line.split()[2] for line in notes] == ["before"]
    variants = [line.split()[1] for line in alone.out.splitlines() if line.startswith("variant")]
    assert variants == ["before:", "before-again:", "v5:"]
