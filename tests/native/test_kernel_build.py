# SPDX-License-Identifier: GPL-2.0-only
"""The real kernel source, configured and compiled: variants share what they do not change."""

import subprocess
from pathlib import Path

import pytest

from ream.errors import BadUsage, ReamError
from ream.kernel.build import BUILD, build_objects, options, suited, unmet_options
from ream.kernel.series import Patch
from ream.kernel.source import Tree
from ream.kernel.variant import assemble
from ream.paths import KERNEL_CONFIG

FRAGMENT = KERNEL_CONFIG / "native.config"
OBJECT = "mm/mm_init.o"

COMMENT_ONLY = Patch(
    "0001-comment.patch",
    "mm: spell a comment otherwise",
    b"""\
--- a/mm/mm_init.c
+++ b/mm/mm_init.c
@@ -1,6 +1,6 @@
 // SPDX-License-Identifier: GPL-2.0-only
 /*
- * mm_init.c - Memory initialisation verification and debugging
+ * mm_init.c - Memory initialization verification and debugging
  *
  * Copyright 2008 IBM Corporation, 2008
  * Author Mel Gorman <mel@csn.ul.ie>
""",
)

ELSEWHERE = Patch("0002-elsewhere.patch", "x", COMMENT_ONLY.body.replace(b"Mel", b"Nobody"))

DOES_NOT_COMPILE = Patch(
    "0003-broken.patch",
    "x",
    COMMENT_ONLY.body.replace(b"+ * mm_init.c", b"+ */ int broken = nothing; /*"),
)


def variant(kernel: Tree, cache: Path, *patches: Patch, said: list[str] | None = None) -> Path:
    step = (said if said is not None else []).append
    return assemble(kernel, patches, cache=cache, fragments=[FRAGMENT], homes=(), step=step)


@pytest.fixture(scope="module")
def base(kernel: Tree, cache: Path) -> Path:
    return variant(kernel, cache)


def entries(cache: Path) -> set[str]:
    kinds = (cache / "base", cache / "tree")
    return {path.name for kind in kinds for path in kind.iterdir() if path.suffix != ".lock"}


def code_of(built: Path) -> str:
    """What objdump makes of an object, without the line that names the file."""
    words = ("objdump", "--disassemble", "--reloc", str(built))
    listing = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    return listing.partition("Disassembly")[2]


def test_every_option_we_ask_for_is_in_the_configuration(base: Path) -> None:
    config = (base / BUILD / ".config").read_text()
    assert unmet_options(suited(FRAGMENT.read_text(), base), config) == ()
    held = options(config)
    assert held["DYNAMIC_MEMORY_LAYOUT"] == held["ARCH_HAS_UACCESS_FLUSHCACHE"] == "y"
    for unwanted in ("MITIGATION_RETPOLINE", "CALL_THUNKS", "TRACEPOINTS", "KALLSYMS", "KASAN"):
        assert held.get(unwanted, "n") == "n"


def test_the_same_variant_is_assembled_and_built_once(
    kernel: Tree, cache: Path, base: Path
) -> None:
    build_objects(base, [OBJECT], step=print)
    said: list[str] = []
    assert variant(kernel, cache, said=said) == base
    built = build_objects(base, [OBJECT], step=said.append)
    assert said == []
    assert built == {OBJECT: base / BUILD / OBJECT}


def test_a_change_of_comments_changes_no_code(kernel: Tree, cache: Path, base: Path) -> None:
    patched = variant(kernel, cache, COMMENT_ONLY)
    assert patched != base
    before = build_objects(base, [OBJECT], step=print)[OBJECT]
    after = build_objects(patched, [OBJECT], step=print)[OBJECT]
    assert "memmap_init_zone_device" in code_of(before)
    assert code_of(before) == code_of(after)


def test_a_variant_shares_all_files_but_those_it_changes(kernel: Tree, cache: Path) -> None:
    patched = variant(kernel, cache, COMMENT_ONLY)
    changed, kept = (name for name in ("mm/mm_init.c", "mm/memory.c"))
    assert not (patched / changed).samefile(kernel.path / changed)
    assert (patched / kept).samefile(kernel.path / kept)
    assert "initialisation verification" in (kernel.path / changed).read_text()
    assert "initialization verification" in (patched / changed).read_text()


def test_building_changes_nothing_in_the_pristine_tree(kernel: Tree, base: Path) -> None:
    build_objects(base, [OBJECT], step=print)
    assert not (kernel.path / BUILD).exists()
    assert not (kernel.path / ".config").exists()
    newest = max(path.stat().st_mtime for path in (kernel.path / "mm").iterdir())
    assert newest <= (kernel.path.parent / "stamp.json").stat().st_mtime


def test_a_clone_does_not_build_the_kernels_tools_again(kernel: Tree, cache: Path) -> None:
    """objtool alone takes longer than all the objects of a variant."""
    patched = variant(kernel, cache, COMMENT_ONLY)
    tool = patched / BUILD / "tools" / "objtool" / "objtool"
    before = tool.stat().st_mtime_ns
    (patched.parent / "built.json").unlink(missing_ok=True)
    build_objects(patched, [OBJECT], step=print)
    assert tool.stat().st_mtime_ns == before


def test_what_the_beginning_of_a_series_has_built_is_not_built_again(
    kernel: Tree, cache: Path, tmp_path: Path
) -> None:
    """Beside files of ours: the object that a patch changes is, and no other."""
    (tmp_path / "own.c").write_text(
        "#include <linux/mm.h>\n#ifdef HAVE_PAGES\nint pages_known;\n#endif\n"
    )
    (tmp_path / "Makefile").write_text(
        "obj-y := own.o\nccflags-y := -include $(srctree)/ream/have.h\n"
    )
    (tmp_path / "own.probes").write_text('#line 1 "pages"\n#include <linux/mm.h>\n')
    wanted = [OBJECT, "mm/util.o", "ream/own.o"]

    def built(*patches: Patch) -> dict[str, tuple[int, str]]:
        place = assemble(
            kernel,
            patches,
            cache=cache,
            fragments=[FRAGMENT],
            homes=[tmp_path / "own.c", tmp_path / "Makefile"],
            probes=[tmp_path / "own.probes"],
            step=print,
        )
        objects = build_objects(place, wanted, step=print)
        return {name: (path.stat().st_mtime_ns, code_of(path)) for name, path in objects.items()}

    base, patched = built(), built(COMMENT_ONLY)
    assert [name for name in wanted if patched[name] != base[name]] == [OBJECT]
    assert patched[OBJECT][1] == base[OBJECT][1]
    assert built() == base


def test_a_patch_that_does_not_apply_is_named_and_harms_nothing(
    kernel: Tree, cache: Path, base: Path
) -> None:
    before = entries(cache)
    with pytest.raises(BadUsage) as caught:
        variant(kernel, cache, COMMENT_ONLY, ELSEWHERE)
    assert str(caught.value).startswith(
        "0002-elsewhere.patch: does not apply: mm/mm_init.c: "
        "hunk 1 does not match (@@ -1,6 +1,6 @@); tried on linux-source-6.12 "
    )
    assert entries(cache) == before
    assert variant(kernel, cache) == base


def test_a_patch_that_does_not_compile_shows_the_compilers_first_error(
    kernel: Tree, cache: Path
) -> None:
    broken = variant(kernel, cache, DOES_NOT_COMPILE)
    with pytest.raises(ReamError, match=r"mm/mm_init.c:3:\d+: error: .nothing. undeclared") as no:
        build_objects(broken, [OBJECT], step=print)
    assert no.value.exit_code == 6


@pytest.mark.vm
def test_a_base_that_begins_with_another_is_the_same_as_one_that_does_not(
    kernel: Tree, tmp_path: Path
) -> None:
    """Only kbuild's own programs are taken over: all that depends on options is made again."""
    other = [FRAGMENT, KERNEL_CONFIG / "debug-vm.config"]
    made = []
    for name, wanted in (("alone", [other]), ("after", [[FRAGMENT], other])):
        cache = tmp_path / name
        for fragments in wanted:
            place = assemble(
                kernel, [], cache=cache, fragments=fragments, homes=(), step=lambda _: None
            )
        objects = build_objects(place, [OBJECT], step=lambda _: None)
        made.append((objects[OBJECT].read_bytes(), generated(place / BUILD)))
    assert made[0] == made[1]


def generated(build: Path) -> dict[str, bytes]:
    """What a configuration makes, by file."""
    folders = (build / "include" / "config", build / "include" / "generated")
    files = (path for folder in folders for path in folder.rglob("*") if path.is_file())
    texts = {str(path.relative_to(build)): path.read_bytes() for path in files}
    return texts | {".config": (build / ".config").read_bytes()}
