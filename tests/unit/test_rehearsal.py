# SPDX-License-Identifier: GPL-2.0-only
"""Whether a series applies, tried without building or unpacking anything."""

import re
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from ream.errors import BadUsage, CannotRunHere
from ream.experiment import named
from ream.kernel.cache import appearing
from ream.kernel.mailbox import Ground
from ream.kernel.series import Patch, Series, load_series
from ream.kernel.source import LATEST, fetch_tree
from ream.kernel.variant import DoesNotApply, rehearse, try_to_apply
from ream.session.dry_run import plan_text
from ream.session.request import Request
from ream.variants import Variant, choose_variants

BASE = "0123456789abcdef0123456789abcdef01234567"

GOOD = """\
--- a/mm/mm_init.c
+++ b/mm/mm_init.c
@@ -1,3 +1,3 @@ void f(void)
 one
-two
+2
 three
"""
BAD = GOOD.replace(" three", " four")


def patch(text: str, base: str | None = None) -> Patch:
    return Patch("0001-x.patch", "x", text.encode(), ground=Ground(base))


@pytest.fixture
def kernel(tmp_path: Path) -> Path:
    tree = tmp_path / "linux"
    (tree / "mm").mkdir(parents=True)
    (tree / "Makefile").write_text("VERSION = 6\nPATCHLEVEL = 12\nSUBLEVEL = 1\nEXTRAVERSION =\n")
    (tree / "mm" / "mm_init.c").write_text("one\ntwo\nthree\n")
    return tree


def commit(tree: Path) -> str:
    identity = ("-c", "user.name=x", "-c", "user.email=x@localhost", "-c", "commit.gpgsign=false")
    for words in (("init", "-q"), ("add", "-A"), ("commit", "-q", "-m", "base")):
        subprocess.run(("git", *identity, *words), cwd=tree, check=True)
    found = subprocess.run(
        ("git", "rev-parse", "HEAD"), cwd=tree, check=True, capture_output=True, text=True
    )
    return found.stdout.strip()


def as_from_the_archive(kernel: Path, cache: Path) -> None:
    (cache / "tree").mkdir(parents=True)
    with appearing(
        cache / "tree" / "ab12",
        lambda: {"label": "linux-source 6.12.1", "origin": "linux-source-6.12"},
    ) as partial:
        subprocess.run(("cp", "-a", str(kernel), str(partial / "linux")), check=True)


@pytest.mark.parametrize("base", [None, BASE])
def test_a_patch_that_does_not_apply_names_base_and_ways_out(
    kernel: Path, tmp_path: Path, base: str | None
) -> None:
    tree = fetch_tree(kernel, cache=tmp_path / "cache", step=lambda _: None)
    with pytest.raises(DoesNotApply) as caught:
        rehearse([patch(GOOD.replace("2", "two"), BASE), patch(BAD, base)], tree, cache=tmp_path)
    own = f"; its series names base-commit {BASE}" if base else ""
    assert str(caught.value) == (
        "0001-x.patch: does not apply: mm/mm_init.c: hunk 1 does not match"
        f" (@@ -1,3 +1,3 @@ void f(void)); tried on {tree.label}{own}; not tried: 7.3,"
        " 7.2, 6.12, 6.1 (not fetched); --tree DIR takes another"
        " kernel source"
    )


def test_it_is_tried_on_the_cached_tree_of_the_archive(kernel: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    assert try_to_apply([patch(GOOD)], None, cache=cache) is None
    assert not cache.exists()
    as_from_the_archive(kernel, cache)
    for tree in (None, LATEST):
        assert try_to_apply([patch(GOOD)], tree, cache=cache) == "linux-source 6.12.1"
        with pytest.raises(
            DoesNotApply, match=r"tried on linux-source 6.12.1; not tried: 7.3, 7.2, 6.1 \("
        ):
            try_to_apply([patch(BAD)], tree, cache=cache)
    whole = cache / "tree" / "ab12" / "linux" / "mm" / "mm_init.c"
    assert whole.read_text() == "one\ntwo\nthree\n"


def test_a_directory_is_tried_where_it_lies(kernel: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    assert try_to_apply([patch(GOOD)], kernel, cache=cache) == str(kernel)
    with pytest.raises(DoesNotApply, match=f"tried on {re.escape(str(kernel))}; "):
        try_to_apply([patch(BAD)], kernel, cache=cache)
    assert not cache.exists()
    (kernel / ".config").write_text("")
    with pytest.raises(BadUsage, match=r"built in place \(it has .config\)"):
        try_to_apply([patch(GOOD)], kernel, cache=cache)


def test_of_a_git_tree_the_commit_is_tried_and_not_what_lies_there(
    kernel: Path, tmp_path: Path
) -> None:
    head = commit(kernel)
    (kernel / "mm" / "mm_init.c").write_text("four\n")
    new = patch("--- /dev/null\n+++ b/mm/new.c\n@@ -0,0 +1 @@\n+new\n")
    label = try_to_apply([patch(GOOD), new], kernel, cache=tmp_path / "cache")
    assert label == f"linux (git {head[:12]})"
    with pytest.raises(DoesNotApply, match="hunk 1 does not match"):
        try_to_apply([patch(BAD)], kernel, cache=tmp_path / "cache")


def test_a_tar_ball_is_tried_once_it_has_been_unpacked(kernel: Path, tmp_path: Path) -> None:
    ball, cache = tmp_path / "linux.tar", tmp_path / "cache"
    subprocess.run(("tar", "-cf", ball, "-C", kernel.parent, kernel.name), check=True)
    assert try_to_apply([patch(GOOD)], ball, cache=cache) is None
    fetch_tree(ball, cache=cache, step=lambda _: None)
    assert (try_to_apply([patch(GOOD)], ball, cache=cache) or "").startswith("linux.tar (sha256 ")


def test_a_tree_that_is_not_there_is_bad_usage(tmp_path: Path) -> None:
    with pytest.raises(BadUsage, match="nowhere: no such file or directory"):
        try_to_apply([patch(GOOD)], tmp_path / "nowhere", cache=tmp_path / "cache")


@pytest.mark.parametrize("path", ["../out.c", "/out.c"])
def test_nothing_outside_of_the_tree_is_tried(kernel: Path, tmp_path: Path, path: str) -> None:
    out = GOOD.replace("a/mm/mm_init.c", f"a/{path}").replace("b/mm/mm_init.c", f"b/{path}")
    with pytest.raises(DoesNotApply):
        try_to_apply([patch(out)], kernel, cache=tmp_path / "cache")


def request(tmp_path: Path, *patches: Patch, tree: Path | None) -> Request:
    experiment = named("zone-device").at("native").only(["small-256MB"])
    return Request(
        experiment=experiment,
        stage="native",
        variants=(Variant("before", ()), Variant("mine", (Series("mine", patches),), "before")),
        tree=tree,
        threads=None,
        seed=1,
        runs=tmp_path / "runs",
        cache=tmp_path / "cache",
        command="",
    )


def test_a_dry_run_tries_whether_the_series_applies(kernel: Path, tmp_path: Path) -> None:
    said = plan_text(request(tmp_path, patch(GOOD), tree=kernel))
    assert "variant     mine: mine (1 patch)\n" in said
    applies = next(line for line in said.splitlines() if line.startswith("applies"))
    assert applies.startswith("applies     every patch of every variant, to")
    with pytest.raises(DoesNotApply, match="0001-x.patch: does not apply: mm/mm_init.c: hunk 1"):
        plan_text(request(tmp_path, patch(BAD), tree=kernel))
    assert not (tmp_path / "cache").exists()


def test_a_dry_run_says_what_of_ours_a_tree_cannot_have(kernel: Path, tmp_path: Path) -> None:
    asked = request(tmp_path, patch(GOOD), tree=kernel)
    ours = Variant("ream", (Series("ours", (patch(BAD),)),))
    said = plan_text(replace(asked, variants=(*asked.variants, ours)))
    line = next(line for line in said.splitlines() if line.startswith("not there"))
    assert line.startswith("not there   ours is left out: 0001-x.patch does not apply: mm/")


@pytest.mark.parametrize(("ball", "way"), [(False, "downloaded"), (True, "unpacked")])
def test_a_dry_run_says_why_it_could_not_try(tmp_path: Path, ball: bool, way: str) -> None:
    (tmp_path / "linux.tar").write_bytes(b"not looked into")
    asked = request(tmp_path, patch(BAD), tree=tmp_path / "linux.tar" if ball else None)
    text = f"not tried   whether the patches apply: the kernel source has to be {way} first\n"
    assert text in plan_text(asked)


def test_a_dry_run_without_git_says_so(
    kernel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    said = plan_text(request(tmp_path, patch(GOOD), tree=kernel))
    assert "not tried   whether the patches apply: git: not installed" in said


def test_what_others_begin_with_is_not_tried_again(
    kernel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[int] = []

    def count(patches: tuple[Patch, ...], _tree: Path, *, cache: Path) -> str:
        tried.append(len(patches))
        return str(cache)

    monkeypatch.setattr("ream.session.dry_run.try_to_apply", count)
    patches = [patch(GOOD.replace("+2", f"+{number}")) for number in range(3)]
    asked = request(tmp_path, *patches, tree=kernel)
    parts = [Variant(f"mine-{n}", (Series("mine", tuple(patches[:n])),)) for n in (1, 2)]
    other = Variant("other", (Series("other", (patches[1],)),))
    plan_text(replace(asked, variants=(*asked.variants, *parts, other)))
    assert tried == [3, 1]


def test_a_variant_is_its_diffs_and_its_options(tmp_path: Path) -> None:
    """Equal ones are built once; a prefix that is another variant is not measured twice."""
    mails = [f"Subject: [PATCH {n}/2] {n}\n\n{text}" for n, text in ((1, GOOD), (2, BAD))]
    for name, author in (("one", "a"), ("two", "b")):
        (tmp_path / name).mkdir()
        for number, text in enumerate(mails):
            (tmp_path / name / f"{number}.patch").write_text(f"From: {author}@localhost\n{text}")
    one, two = (Variant(name, (load_series(tmp_path / name),)) for name in ("one", "two"))
    assert one.content == two.content
    assert one.patches != two.patches
    (tmp_path / "two" / "native.config").write_text("CONFIG_X=y\n")
    assert Variant("two", (load_series(tmp_path / "two"),)).content != one.content
    (tmp_path / "two" / "1.patch").unlink()
    (tmp_path / "two" / "native.config").unlink()
    experiment = named("zone-device")
    user = (tmp_path / "one", tmp_path / "two")
    names = [v.name for v in choose_variants(experiment, user_series=user, per_patch=True)]
    assert names.count("one-1of2") == 1


def test_a_version_without_a_series_is_bad_usage() -> None:
    with pytest.raises(BadUsage, match="--version 3 says which version of a --series"):
        choose_variants(named("zone-device"), version=3)


def test_a_machine_without_git_cannot_rehearse(
    kernel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(CannotRunHere, match="git: not installed"):
        try_to_apply([patch(GOOD)], kernel, cache=tmp_path / "cache")
