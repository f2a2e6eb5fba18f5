# SPDX-License-Identifier: GPL-2.0-only
"""`ream bisect` on the real thing: a history of kernels, of which one made fork() slower."""

import json
import os
import random
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from ream.kernel.source import Tree

pytestmark = [pytest.mark.vm, pytest.mark.xdist_group("bisect")]

HISTORY = Path(__file__).parent / "history"
SLOWER = HISTORY / "slower-fork.patch"
BROKEN = HISTORY / "does-not-build.patch"
HARMLESS = tuple(sorted(HISTORY.glob("harmless-*.patch")))
NR_COMMITS = 20
TRIES = 10
ROW = "fork-4k"
WHO = {
    f"GIT_{who}_{what}": value
    for who in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "a"), ("EMAIL", "a@b"), ("DATE", "2026-01-01T00:00:00Z"))
}


@dataclass(frozen=True)
class Repository:
    """One whose first commit is a kernel tree, which is never checked out."""

    place: Path

    def git(self, *words: str | Path) -> str:
        done = subprocess.run(
            ("git", *words),
            cwd=self.place,
            env={**os.environ, **WHO},
            check=True,
            capture_output=True,
            text=True,
        )
        return done.stdout.strip()

    def commit(self, subject: str, *parents: str) -> str:
        """What is in the index."""
        onto = [word for parent in parents for word in ("-p", parent)]
        return self.git("commit-tree", *onto, "-m", subject, self.git("write-tree"))


@dataclass(frozen=True)
class Planted:
    """A history, and what is in it."""

    commits: tuple[str, ...]
    culprit: int
    broken: int


@pytest.fixture(scope="module")
def repository(kernel: Tree, tmp_path_factory: pytest.TempPathFactory) -> Repository:
    made = Repository(tmp_path_factory.mktemp("linux"))
    made.git("init", "--quiet")
    made.git("-c", "core.compression=0", f"--work-tree={kernel.path}", "add", "--all", "--force")
    made.git("update-ref", "refs/heads/base", made.commit("the base"))
    return made


def planted(repository: Repository, seed: int) -> Planted:
    """A history of 20 commits: one makes fork() slower, one does not build, the others do no harm.

    Each of these puts a patch in that changes no function that is timed, or takes it out again.
    The one that does not build is mended by the next, and neither stands right before the culprit:
    else nobody could tell which of the two it is.
    """
    draw = random.Random(seed)
    culprit = draw.randint(1, NR_COMMITS)
    broken = draw.choice([one for one in range(1, NR_COMMITS) if one not in (culprit - 1, culprit)])
    repository.git("read-tree", "base")
    commits = [repository.git("rev-parse", "base")]
    there: set[Path] = set()
    for number in range(1, NR_COMMITS + 1):
        patch = SLOWER if number == culprit else draw.choice(HARMLESS)
        if number in (broken, broken + 1):
            patch = BROKEN
        back = ("--reverse",) if patch in there else ()
        repository.git("apply", "--cached", *back, patch)
        there ^= {patch}
        subject = f"change {number}: {'drop ' if back else ''}{patch.stem}"
        commits.append(repository.commit(subject, commits[-1]))
    return Planted(tuple(commits), culprit, broken)


@pytest.mark.parametrize("seed", range(TRIES))
@pytest.mark.parametrize("by", ["time", "count"])
def test_the_commit_that_made_fork_slower_is_found_among_20(
    repository: Repository, ream, tmp_path: Path, by: str, seed: int
) -> None:
    history = planted(repository, seed)
    good, bad = history.commits[0], history.commits[-1]
    ends = ("--tree", str(repository.place), "--good", good, "--bad", bad)
    where = ("--output", str(tmp_path / "runs"), "--seed", str(seed))
    how = ("--count",) if by == "count" else ()
    ran = ream("bisect", "fork", "--row", ROW, *ends, *where, *how, "--json")
    assert ran.code == 0, ran.err
    said = json.loads(ran.out)
    assert said["commits"] == [history.commits[history.culprit]], ran.err
    assert said["ratio"]["low"] > 1
    skipped = [one["commit"] for one in said["steps"] if one["verdict"] == "skip"]
    assert set(skipped) <= {history.commits[history.broken]}, ran.err
    # Every step that was measured has its record.
    kept = {record.name for record in (tmp_path / "runs").iterdir()}
    measured = [one for one in said["steps"] if one["verdict"] != "skip"]
    assert all(one["records"] and {*one["records"]} <= kept for one in measured)
