# SPDX-License-Identifier: GPL-2.0-only
"""Git bundles given as series."""

import subprocess
from pathlib import Path

import pytest

from ream.errors import BadUsage
from ream.kernel.series import load_series


def git(where: Path, *words: str) -> str:
    name = ("-c", "user.name=A", "-c", "user.email=a@localhost", "-c", "commit.gpgsign=false")
    said = subprocess.run(
        ("git", *name, *words), cwd=where, check=True, capture_output=True, text=True
    )
    return said.stdout.strip()


def commit(tree: Path, text: str) -> str:
    (tree / "file").write_text(f"{text}\n")
    git(tree, "add", "file")
    git(tree, "commit", "--quiet", "--message", f"mm: {text}")
    return git(tree, "rev-parse", "HEAD")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A repository with a base, and two commits on it."""
    place = tmp_path / "tree"
    place.mkdir()
    git(place, "init", "--quiet", "--initial-branch=topic")
    for text in ("base", "one", "two"):
        commit(place, text)
    return place


def bundled(tree: Path, *what: str) -> Path:
    bundle = tree.parent / "topic.bundle"
    git(tree, "bundle", "create", "--quiet", str(bundle), *what)
    return bundle


def refused(bundle: Path, repository: Path | None = None) -> str:
    with pytest.raises(BadUsage) as caught:
        load_series(bundle, repository=repository)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_the_commits_of_a_bundle_with_all_its_history_are_a_series(tree: Path) -> None:
    series = load_series(bundled(tree, "topic"))
    assert series.name == "topic"
    assert [patch.subject for patch in series.patches] == ["mm: one", "mm: two"]
    assert [patch.name for patch in series.patches] == ["0001-mm-one.patch", "0002-mm-two.patch"]
    assert b"-one\n+two\n" in series.patches[1].body


def test_a_bundle_that_continues_from_elsewhere_names_the_commit_and_the_ways_out(
    tree: Path,
) -> None:
    base = git(tree, "rev-parse", "HEAD~2")[:12]
    said = refused(bundled(tree, "HEAD~2..topic"))
    assert f"continues from {base} (mm: base)" in said
    assert "--tree DIR" in said
    assert f"`git format-patch --stdout {base}..topic > topic.mbox`" in said


def test_a_bundle_is_read_with_the_git_tree_that_it_continues_from(tree: Path) -> None:
    bundle = bundled(tree, "HEAD~2..topic")
    git(tree, "reset", "--quiet", "--hard", "HEAD~2")
    series = load_series(bundle, repository=tree)
    assert [patch.subject for patch in series.patches] == ["mm: one", "mm: two"]


def test_a_tree_without_that_commit_is_named(tree: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    git(other, "init", "--quiet")
    assert f"which {other} has not" in refused(bundled(tree, "HEAD~1..topic"), other)


def test_a_bundle_of_two_branches_is_no_series(tree: Path) -> None:
    git(tree, "branch", "older", "HEAD~1")
    said = refused(bundled(tree, "topic", "older"))
    assert "a git bundle of one branch is a series; it has refs/heads/" in said


def test_a_bundle_with_a_merge_is_no_series(tree: Path) -> None:
    git(tree, "checkout", "--quiet", "-b", "side", "HEAD~1")
    git(tree, "commit", "--quiet", "--allow-empty", "--message", "beside")
    git(tree, "merge", "--quiet", "--message", "both", "topic")
    assert "is a merge; a series is a straight line" in refused(bundled(tree, "side"))


def test_a_bundle_of_a_tree_alone_has_no_patch(tree: Path) -> None:
    git(tree, "reset", "--quiet", "--hard", "HEAD~2")
    assert "0 commits inside; a series has 1 to 1,000" in refused(bundled(tree, "topic"))


def test_a_bundle_that_was_cut_off_is_one_line(tree: Path) -> None:
    bundle = bundled(tree, "topic")
    bundle.write_bytes(bundle.read_bytes()[:-40])
    assert "git cannot read this bundle: " in refused(bundle)
