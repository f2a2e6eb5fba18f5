# SPDX-License-Identifier: GPL-2.0-only
"""A person's own series on the command line: which patches, which version, does it apply."""

import gzip
import subprocess
from pathlib import Path

import pytest

from ream.folders import file_of
from ream.kernel.source import fetch_tree
from ream.paths import CHECKOUT, cache_dir

USAGE = 2
SHIPPED = sorted((CHECKOUT / "kernel/series/zone-device").glob("*.patch"))
NO_CHANGE = CHECKOUT / "tests/native/patches/no-change.patch"


def mailbox(path: Path, *patches: Path, version: str = "") -> bytes:
    """A mailbox of shipped patches, as of another version of their series."""
    text = b"".join(patch.read_bytes() for patch in patches)
    path.write_bytes(text.replace(b"Subject: [PATCH ", f"Subject: [PATCH {version}".encode()))
    return path.read_bytes()


def refused(ream, *words: str) -> str:
    answer = ream(*words)
    assert (answer.code, answer.out) == (USAGE, "")
    (line,) = answer.err.splitlines()
    return line


def test_a_gap_in_a_mailbox_is_named_before_anything_is_built(ream, tmp_path: Path) -> None:
    mailbox(tmp_path / "gap.mbox", *SHIPPED[:3], *SHIPPED[4:])
    said = refused(ream, "run", "zone-device", "--series", "gap.mbox")
    assert said.startswith("ream: gap.mbox: 3/9 is missing; add it, or ")


@pytest.mark.parametrize("command", [("run",), ("plan",)])
def test_of_two_versions_one_is_chosen(ream, tmp_path: Path, command: tuple[str, ...]) -> None:
    both = mailbox(tmp_path / "x", *SHIPPED, version="v2 ")
    both += mailbox(tmp_path / "x", *SHIPPED, version="RFC v3 ")
    (tmp_path / "both.mbox.gz").write_bytes(gzip.compress(both))
    words = (*command[:1], "zone-device", *command[1:]) if command == ("plan",) else command
    words = (*words, "--series", "both.mbox.gz", "--dry-run")
    said = refused(ream, *words)
    assert "both.mbox.gz: 2 versions of a series inside: v2 (9 patches), v3 (9 patches)" in said
    assert "no v4 inside; there is v2 and v3" in refused(ream, *words, "--version", "4")
    assert ream(*words, "--version=3", XDG_CACHE_HOME=str(tmp_path / "cache")).code == 0


def test_a_version_without_a_series_is_refused(ream) -> None:
    assert "--version 3 says which version of a --series" in refused(ream, "run", "--version", "3")


def test_a_dry_run_tries_whether_a_series_applies(ream, tmp_path: Path) -> None:
    fetch_tree(None, cache=cache_dir(), step=lambda _: None)
    good = NO_CHANGE.read_text()
    (tmp_path / "good.patch").write_text(good)
    assert "\napplies     every patch" in ream("run", "--series", "good.patch", "--dry-run").out
    base = "0123456789abcdef0123456789abcdef01234567"
    lines = good.replace("\n ", "\n x").replace("\n---\n", f"\n\nbase-commit: {base}\n---\n", 1)
    (tmp_path / "bad.patch").write_text(lines)
    said = refused(ream, "run", "--series", "bad.patch", "--dry-run")
    assert said.startswith("ream: bad.patch: does not apply: mm/mm_init.c: hunk 1 does not match")
    assert "; tried on linux-source-6.12 6.12." in said
    assert f"; its series names base-commit {base}; " in said
    assert said.endswith("; --tree DIR takes another kernel source")


def test_a_bundle_says_the_way_to_patches(ream, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    identity = ("-c", "user.name=x", "-c", "user.email=x@localhost", "-c", "commit.gpgsign=false")
    subprocess.run(("git", "init", "-q", "-b", "topic"), cwd=tree, check=True)
    for text in ("base", "one"):
        words = ("git", *identity, "commit", "-q", "--allow-empty", "-m", text)
        subprocess.run(words, cwd=tree, check=True)
    words = ("git", "bundle", "create", "-q", str(tmp_path / "my.bundle"), "HEAD~1..topic")
    subprocess.run(words, cwd=tree, check=True)
    said = refused(ream, "run", "--series", "my.bundle")
    assert "`git format-patch --stdout " in said
    assert "--tree DIR" in said


def test_a_file_of_an_experiment_names_series_of_ours_alone(ream, tmp_path: Path) -> None:
    text = file_of("zone-device").read_text()
    assert '["zone-device"]' in text
    (tmp_path / "mine.toml").write_text(text.replace('["zone-device"]', '["../../etc"]', 1))
    said = refused(ream, "run", "mine.toml", "--dry-run")
    assert "mine.toml: variants.published.0: not a folder below kernel/series" in said
    assert "(it is '../../etc')" in said
