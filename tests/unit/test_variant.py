# SPDX-License-Identifier: GPL-2.0-only
"""Patches on trees that share their files; what goes into a variant, and what its key is."""

import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from ream.errors import BadUsage, CannotRunHere, ReamError
from ream.kernel import variant
from ream.kernel.build import BUILT
from ream.kernel.cache import locked
from ream.kernel.series import Patch
from ream.kernel.source import Tree
from ream.kernel.variant import apply, assemble

ORIGINAL = "".join(f"line {number}\n" for number in range(1, 41))


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A tree whose files are hard links to a pristine one beside it."""
    pristine = tmp_path / "pristine"
    (pristine / "mm").mkdir(parents=True)
    (pristine / "mm" / "mm_init.c").write_text(ORIGINAL)
    (pristine / "mm" / "gone.c").write_text("going\n")
    (pristine / "link").symlink_to(tmp_path)
    subprocess.run(["cp", "-al", pristine, tmp_path / "tree"], check=True)
    return tmp_path / "tree"


def change(number: int, *, to: str, context: str = "line") -> str:
    """A hunk that changes one line of the original."""
    where = f"-{number - 1},3 +{number - 1},3"
    before, after = f" {context} {number - 1}\n", f" {context} {number + 1}\n"
    return f"@@ {where} @@ int f(void)\n{before}-line {number}\n+{to}\n{after}"


def patch(*hunks: str, path: str = "mm/mm_init.c", name: str = "0001-x.patch") -> Patch:
    return Patch(name, "x", f"--- a/{path}\n+++ b/{path}\n{''.join(hunks)}".encode())


def add(path: str, name: str = "0001-x.patch") -> Patch:
    head = f"diff --git a/{path} b/{path}\nnew file mode 100644\n--- /dev/null\n+++ b/{path}\n"
    return Patch(name, "x", f"{head}@@ -0,0 +1 @@\n+new\n".encode())


def test_a_patch_replaces_a_shared_file_and_never_writes_into_it(tree: Path) -> None:
    shared = tree / "mm" / "mm_init.c"
    pristine = tree.parent / "pristine" / "mm" / "mm_init.c"
    assert shared.samefile(pristine)
    apply([patch(change(10, to="LINE TEN"))], tree)
    assert "LINE TEN" in shared.read_text()
    assert pristine.read_text() == ORIGINAL
    assert pristine.stat().st_nlink == 1


def test_adding_removing_and_renaming_leave_the_shared_files_alone(tree: Path) -> None:
    body = (
        "diff --git a/mm/gone.c b/mm/gone.c\ndeleted file mode 100644\n"
        "--- a/mm/gone.c\n+++ /dev/null\n@@ -1 +0,0 @@\n-going\n"
        "diff --git a/mm/mm_init.c b/mm/moved.c\nsimilarity index 100%\n"
        "rename from mm/mm_init.c\nrename to mm/moved.c\n"
    )
    apply([add("mm/new.c"), Patch("0002-y.patch", "y", body.encode())], tree)
    assert sorted(path.name for path in (tree / "mm").iterdir()) == ["moved.c", "new.c"]
    pristine = tree.parent / "pristine" / "mm"
    assert sorted(path.name for path in pristine.iterdir()) == ["gone.c", "mm_init.c"]
    assert (pristine / "mm_init.c").read_text() == ORIGINAL


def test_line_numbers_may_be_off_but_context_may_not(tree: Path) -> None:
    moved = change(20, to="x").replace("-19,3 +19,3", "-25,3 +25,3")
    apply([patch(moved)], tree)
    with pytest.raises(BadUsage):
        apply([patch(change(30, to="y", context="Line"))], tree)


def test_a_patch_that_does_not_apply_is_named_with_its_file_and_hunk(tree: Path) -> None:
    good = patch(change(10, to="x"), name="0001-good.patch")
    bad = patch(
        change(5, to="y"), change(12, to="z"), change(30, to="w", context="Line"),
        name="0002-bad.patch",
    )  # fmt: skip
    with pytest.raises(BadUsage) as caught:
        apply([good, bad], tree)
    assert str(caught.value) == (
        "0002-bad.patch: does not apply: mm/mm_init.c: hunk 3 does not match "
        "(@@ -29,3 +29,3 @@ int f(void))"
    )


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("mm/absent.c", "mm/absent.c: No such file or directory"),
        ("../pristine/mm/mm_init.c", "invalid path '../pristine/mm/mm_init.c'"),
    ],
)
def test_a_file_that_is_not_there_or_not_ours_is_refused(tree: Path, path: str, text: str) -> None:
    with pytest.raises(BadUsage, match=f"0001-x.patch: does not apply: {text}"):
        apply([patch(change(10, to="x"), path=path)], tree)


@pytest.mark.parametrize("path", ["../out.c", "/out.c", "mm/../../out.c", ".git/hooks/x"])
def test_no_patch_writes_outside_the_tree(tree: Path, path: str) -> None:
    with pytest.raises(BadUsage, match="does not apply: "):
        apply([add(path)], tree)
    assert not (tree.parent / "out.c").exists()


def test_no_patch_writes_through_a_symbolic_link(tree: Path) -> None:
    with pytest.raises(BadUsage, match="beyond a symbolic link"):
        apply([add("link/out.c")], tree)
    assert not (tree.parent / "out.c").exists()


def test_a_damaged_patch_is_refused(tree: Path) -> None:
    damaged = change(10, to="x").replace("-9,3 +9,3", "-9,9 +9,9")
    with pytest.raises(BadUsage, match="does not apply: corrupt patch at .*8"):
        apply([patch(damaged)], tree)


def test_a_file_that_is_there_already_cannot_be_added(tree: Path) -> None:
    with pytest.raises(BadUsage, match="mm/gone.c: already exists"):
        apply([add("mm/gone.c")], tree)


def test_patches_apply_inside_somebody_elses_repository(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A home directory kept in git, or a hook that sets GIT_DIR, must not change the outcome."""
    subprocess.run(["git", "init", "-q", tree.parent], check=True)
    apply([patch(change(10, to="INSIDE"))], tree)
    assert "INSIDE" in (tree / "mm" / "mm_init.c").read_text()
    monkeypatch.setenv("GIT_DIR", str(tree.parent / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(tree.parent))
    apply([patch(change(30, to="AGAIN"))], tree)
    assert "AGAIN" in (tree / "mm" / "mm_init.c").read_text()


def test_a_users_git_settings_do_not_change_a_patch(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".gitconfig").write_text("[apply]\n\twhitespace = fix\n[core]\n\tautocrlf = true\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    apply([patch(change(10, to="trailing  "))], tree)
    assert b"trailing  \n" in (tree / "mm" / "mm_init.c").read_bytes()


# --- assemble(), with a Makefile that stands in for kbuild -----------------------------

KBUILD = """\
O := build
tinyconfig olddefconfig prepare:
	@touch $(O)/.config
	@echo $@ >>$(O)/log
	@mkdir -p $(O)/tools && echo "cmd_x := $(CURDIR)/tools/x" >$(O)/tools/.x.cmd
"""
MERGE = 'cat "$5" >"$4"\n'


@pytest.fixture
def pristine(tmp_path: Path) -> Tree:
    path = tmp_path / "cache" / "tree" / "key" / "linux"
    (path / "mm").mkdir(parents=True)
    (path / "mm" / "mm_init.c").write_text(ORIGINAL)
    (path / "scripts" / "kconfig").mkdir(parents=True)
    (path / "scripts" / "kconfig" / "merge_config.sh").write_text(MERGE)
    (path / "Makefile").write_text(KBUILD)
    (path / "Kbuild").write_text("obj-y += mm/\n")
    (path / "Kbuild").chmod(0o444)
    return Tree(path, "key", "linux-source 6.12", "6.12.117")


class Workshop:
    def __init__(self, tmp_path: Path, tree: Tree) -> None:
        self.cache, self.tree = tmp_path / "cache", tree
        self.fragment = tmp_path / "native.config"
        self.fragment.write_text("CONFIG_SMP=y\n# CONFIG_KASAN is not set\n")
        self.home = tmp_path / "home"
        self.home.mkdir()
        (self.home / "glue.c").write_text("int x;\n")
        (self.home / "glue.h").write_text("extern int x;\n")
        (self.home / "notes.txt").write_text("not compiled\n")
        self.said: list[str] = []

    def assemble(self, *patches: Patch, homes: tuple[Path, ...] | None = None) -> Path:
        return assemble(
            self.tree,
            patches,
            cache=self.cache,
            fragments=[self.fragment],
            homes=(self.home,) if homes is None else homes,
            step=self.said.append,
        )

    def whole(self) -> list[str]:
        kinds = [self.cache / kind for kind in ("base", "variant") if (self.cache / kind).exists()]
        entries = [path for kind in kinds for path in kind.iterdir()]
        return sorted(path.name for path in entries if path.suffix != ".lock")


@pytest.fixture
def workshop(tmp_path: Path, pristine: Tree) -> Workshop:
    return Workshop(tmp_path, pristine)


def test_a_variant_holds_patches_configuration_and_our_files(workshop: Workshop) -> None:
    place = workshop.assemble(patch(change(10, to="TEN")))
    assert "TEN" in (place / "mm" / "mm_init.c").read_text()
    assert (place / "ream" / "glue.c").read_text() == "int x;\n"
    assert (place / "ream" / "Makefile").read_text().splitlines()[1] == "obj-y := glue.o"
    assert not (place / "ream" / "notes.txt").exists()
    assert (place / "Kbuild").read_text() == "obj-y += mm/\n\nobj-y += ream/\n"
    assert "CONFIG_SMP=y" in (place / "build" / ".config").read_text()
    assert (place / "build" / "log").read_text().split() == [
        "tinyconfig",
        "olddefconfig",
        "prepare",
    ]


def test_the_pristine_tree_is_never_written_to(workshop: Workshop) -> None:
    workshop.assemble(patch(change(10, to="TEN")))
    workshop.assemble(add("mm/new.c"))
    path = workshop.tree.path
    assert (path / "mm" / "mm_init.c").read_text() == ORIGINAL
    assert (path / "Kbuild").read_text() == "obj-y += mm/\n"
    assert sorted(file.name for file in path.iterdir()) == ["Kbuild", "Makefile", "mm", "scripts"]


def test_the_same_variant_is_made_once(workshop: Workshop) -> None:
    first = workshop.assemble()
    said = list(workshop.said)
    assert workshop.assemble() == first
    assert workshop.said == said


def test_the_same_diff_in_another_mail_is_the_same_variant(workshop: Workshop) -> None:
    one = patch(change(10, to="TEN"))
    mail = b"From: a@localhost\nSubject: [PATCH v2] y\n\nWhy.\n---\n" + one.body + b"-- \n2.39\n"
    first = workshop.assemble(one)
    said = list(workshop.said)
    assert workshop.assemble(Patch("0001-y.patch", "y", mail)) == first
    assert workshop.said == said


def test_whatever_goes_in_makes_another_variant_on_a_shared_base(workshop: Workshop) -> None:
    one, two = patch(change(10, to="x")), patch(change(20, to="y"))
    places = {workshop.assemble(), workshop.assemble(one), workshop.assemble(one, two)}
    places.add(workshop.assemble(two, one))
    places.add(workshop.assemble(homes=()))
    (workshop.home / "glue.h").write_text("extern int y;\n")
    places.add(workshop.assemble())
    assert len(places) == 6
    assert len(list((workshop.cache / "base").glob("*/stamp.json"))) == 1
    workshop.fragment.write_text("CONFIG_SMP=y\nCONFIG_NUMA=y\n")
    places.add(workshop.assemble())
    assert len(places) == 7
    assert len(list((workshop.cache / "base").glob("*/stamp.json"))) == 2


def test_a_variant_of_another_compiler_is_another_variant(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = workshop.assemble()
    monkeypatch.setattr(variant, "compiler_version", lambda _cc, _arch: "gcc 99")
    assert workshop.assemble() != first


def test_a_variant_begins_with_what_was_built_of_the_patches_before(workshop: Workshop) -> None:
    one, two = add("mm/new.c"), add("mm/newer.c", name="0002-y.patch")
    begun = workshop.assemble(one)
    (begun / "build" / "made.o").write_text("of new.c")
    (begun / "ream" / "have.h").write_text("#define HAVE_OTHER 1\n")
    assert not (workshop.assemble(one, two) / "build" / "made.o").exists()  # it may be half made

    (begun.parent / BUILT).write_text("[]")
    longer = workshop.assemble(one, two, add("mm/newest.c", name="0003-z.patch"))
    assert (longer / "build" / "made.o").read_text() == "of new.c"
    assert all((longer / "mm" / name).exists() for name in ("new.c", "newer.c", "newest.c"))
    assert (longer / "Kbuild").read_text() == (begun / "Kbuild").read_text()
    assert (longer / "ream" / "have.h").read_text() != (begun / "ream" / "have.h").read_text()


def test_a_patch_of_the_file_that_names_ours_applies_to_the_kernels_own(workshop: Workshop) -> None:
    (workshop.assemble().parent / BUILT).write_text("[]")
    hunk = "@@ -1 +1,2 @@\n obj-y += mm/\n+obj-y += new/\n"
    place = workshop.assemble(patch(hunk, path="Kbuild"))
    assert (place / "Kbuild").read_text() == "obj-y += mm/\nobj-y += new/\n\nobj-y += ream/\n"


def test_a_patch_that_does_not_apply_leaves_the_cache_as_it_was(workshop: Workshop) -> None:
    good = workshop.assemble()
    before = workshop.whole()
    with pytest.raises(BadUsage, match="0001-x.patch: does not apply: mm/mm_init.c: hunk 1"):
        workshop.assemble(patch(change(10, to="x", context="Line")))
    assert workshop.whole() == before
    assert workshop.assemble() == good


def test_a_patch_that_does_not_apply_is_told_before_anything_is_prepared(
    workshop: Workshop,
) -> None:
    with pytest.raises(BadUsage):
        workshop.assemble(add("mm/new.c"), add("mm/new.c", name="0002-again.patch"))
    assert workshop.said == []


@pytest.mark.parametrize("path", ["../../../secret", "/etc/hostname"])
def test_a_rehearsal_looks_at_nothing_outside_the_tree(workshop: Workshop, path: str) -> None:
    with pytest.raises(BadUsage, match="0001-x.patch: does not apply: "):
        workshop.assemble(patch(change(10, to="x"), path=path))


def test_a_symbolic_link_of_the_kernels_can_be_changed(workshop: Workshop) -> None:
    (workshop.tree.path / "mm" / "short").symlink_to("mm_init.c")
    head = "diff --git a/mm/short b/mm/short\nindex 1111111..2222222 120000\n"
    no_newline = "\n\\ No newline at end of file\n"
    hunk = f"@@ -1 +1 @@\n-mm_init.c{no_newline}+memory.c{no_newline}"
    change_link = f"{head}--- a/mm/short\n+++ b/mm/short\n{hunk}"
    place = workshop.assemble(Patch("0001-x.patch", "x", change_link.encode()))
    assert (place / "mm" / "short").readlink() == Path("memory.c")
    assert (workshop.tree.path / "mm" / "short").readlink() == Path("mm_init.c")


def test_tools_recorded_commands_move_with_their_tree(workshop: Workshop) -> None:
    for place in (workshop.assemble(), workshop.assemble(add("mm/new.c"))):
        record = (place / "build" / "tools" / ".x.cmd").read_text()
        assert record == f"cmd_x := {place}/tools/x\n"


def test_a_patch_of_kconfig_has_the_configuration_made_again(workshop: Workshop) -> None:
    place = workshop.assemble(add("mm/Kconfig.debug"))
    assert (place / "build" / "log").read_text().split()[-1] == "olddefconfig"


def test_a_patch_can_bring_options_to_a_fragment(workshop: Workshop) -> None:
    options = (("native.config", "CONFIG_NEW=m"), ("vm.config", "CONFIG_OTHER=y"))
    brings = replace(add("mm/Kconfig.debug"), options=options)
    place = workshop.assemble(brings)
    assert (place / "build" / ".config").read_text().split("\n")[-2:] == ["CONFIG_NEW=m", ""]
    assert (place / "build" / "log").read_text().split()[-1] == "olddefconfig"
    assert workshop.assemble(add("mm/Kconfig.debug")) != place


def test_options_that_do_not_come_out_are_all_named(workshop: Workshop, pristine: Tree) -> None:
    script = pristine.path / "scripts" / "kconfig" / "merge_config.sh"
    script.write_text('echo "CONFIG_KASAN=y" >"$4"\n')
    with pytest.raises(ReamError, match="CONFIG_SMP: asked for y, got n\nCONFIG_KASAN: asked for"):
        workshop.assemble()
    assert workshop.whole() == []


def test_a_makefile_of_ours_is_used_as_it_is(workshop: Workshop) -> None:
    (workshop.home / "Makefile").write_text("obj-y := other.o\n")
    assert (workshop.assemble() / "ream" / "Makefile").read_text() == "obj-y := other.o\n"


def test_two_files_of_ours_with_one_name_are_refused(workshop: Workshop, tmp_path: Path) -> None:
    (tmp_path / "glue.c").write_text("")
    with pytest.raises(ReamError, match="cannot both be ream/glue.c"):
        workshop.assemble(homes=(workshop.home, tmp_path / "glue.c"))


def test_a_tree_that_has_a_ream_of_its_own_is_refused(workshop: Workshop) -> None:
    with pytest.raises(BadUsage, match="has a ream/ of its own"):
        workshop.assemble(add("ream/theirs.c"))


def test_a_cache_where_kbuild_cannot_build_is_said(workshop: Workshop, tmp_path: Path) -> None:
    workshop.cache = tmp_path / "my cache"
    with pytest.raises(CannotRunHere, match="space or a colon; set XDG_CACHE_HOME"):
        workshop.assemble()


def test_leftovers_of_a_killed_run_are_removed(workshop: Workshop) -> None:
    workshop.assemble()
    dead = workshop.cache / "variant" / "dead.partial-abc"
    held = workshop.cache / "variant" / "held.partial-abc"
    for leftover in (dead, held):
        (leftover / "linux").mkdir(parents=True)
    with locked(workshop.cache / "variant" / "held", print):
        workshop.assemble(add("mm/new.c"))
    assert (dead.exists(), held.exists()) == (False, True)


def test_a_variant_unused_for_a_month_makes_room(workshop: Workshop) -> None:
    old = workshop.assemble()
    os.utime(old.parent / "stamp.json", (1000, 1000))
    workshop.assemble(add("mm/new.c"))
    assert not old.exists()


def test_a_used_variant_counts_as_new(workshop: Workshop) -> None:
    old = workshop.assemble()
    os.utime(old.parent / "stamp.json", (1000, 1000))
    workshop.assemble()
    workshop.assemble(add("mm/new.c"))
    assert old.exists()
