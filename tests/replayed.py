# SPDX-License-Identifier: GPL-2.0-only
"""What patches and cover letters say of themselves: diffstats, and the names of blobs.

`git am -3` looks for the blobs that a patch names, and a reader for the lines that its cover
promises; both are wrong as soon as an earlier patch is changed by hand.
"""

import re
import shutil
import subprocess
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from ream.kernel.source import Tree

FILE = re.compile(r"^(?:---|\+\+\+) [ab]/(\S+)", re.MULTILINE)
STAT = re.compile(r"(?:^ \S.*\|.*\n)+ \d+ files? changed.*$", re.MULTILINE)
INDEX = re.compile(r"^index \w+\.\.\w+", re.MULTILINE)
COVER = "0000-"


class _Replay:
    """A git repository of the files that some patches change, which are applied one by one."""

    def __init__(self, tree: Tree, patches: Sequence[Path], work: Path) -> None:
        self._work = work
        self._git("init", "-q")
        for name in {one for patch in patches for one in FILE.findall(patch.read_text())}:
            if (tree.path / name).is_file():
                (work / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(tree.path / name, work / name)
        self.commit()

    def _git(self, *words: str, text: str | None = None) -> str:
        who = ("-c", "user.name=ream", "-c", "user.email=ream@localhost", "-c", "core.abbrev=7")
        argv = ("git", *who, "-c", "diff.renames=false", *words)
        return subprocess.run(
            argv, cwd=self._work, check=True, capture_output=True, text=True, input=text
        ).stdout

    def commit(self) -> str:
        self._git("add", "-A")
        self._git("commit", "-q", "--allow-empty", "-m", "next")
        return self._git("rev-parse", "HEAD").strip()

    def apply(self, patch: Path) -> str:
        self._git("apply", "--unidiff-zero", "-", text=patch.read_text())
        return self.commit()

    def stat(self, since: str) -> str:
        return self._git("diff", "--stat=72", since).rstrip("\n")

    def blobs(self, since: str) -> list[str]:
        return INDEX.findall(self._git("diff", since))


def misstated(
    tree: Tree, folders: Sequence[Path], work: Path, *, of_others: Collection[Path] = ()
) -> Iterator[str]:
    """What is not so of series that are applied one after another; work: an empty folder.

    of_others: series among them that speak of themselves on another base.
    """
    texts = {one: sorted(one.glob("[0-9]*.patch")) for one in folders}
    replay = _Replay(tree, [patch for its in texts.values() for patch in its], work)
    last = replay.commit()
    for folder, its in texts.items():
        begin, judged = last, folder not in of_others
        for patch in its:
            if patch.name.startswith(COVER):
                continue
            before, last = last, replay.apply(patch)
            text = patch.read_text()
            name = f"{folder.name}/{patch.name}"
            if judged and INDEX.findall(text) != replay.blobs(before):
                yield f"{name}: blobs are {replay.blobs(before)}"
            if judged and (stat := replay.stat(before)) not in text:
                yield f"{name}: the diffstat is\n{stat}"
        for cover in (one for one in its if judged and one.name.startswith(COVER)):
            said = STAT.search(cover.read_text())
            if said and said[0] != (stat := replay.stat(begin)):
                yield f"{folder.name}/{cover.name}: the diffstat is\n{stat}"
