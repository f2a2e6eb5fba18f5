# SPDX-License-Identifier: GPL-2.0-only
"""Whole kernels and our modules: built once, apart from each other; kbuild is a stand-in."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from ream.command import Command, stream
from ream.errors import BadUsage, CannotRunHere, ReamError
from ream.kernel import image
from ream.kernel.build import BUILD, compiler, make, options
from ream.kernel.image import Image, build_image, plan_kernel, plan_module
from ream.kernel.series import Patch
from ream.kernel.source import Tree
from ream.kernel.uncompiled import DoesNotCompile
from ream.kernel.variant import BUILDING, WHOLE
from ream.paths import KERNEL_CONFIG
from ream.progress import Advance, Reporter

KBUILD = """\
O := build
tinyconfig olddefconfig prepare:
	@touch $(O)/.config
SAY = @echo "  CC      $(patsubst $(O)/%,%,$@)"
$(O)/%.o: %.c
	$(SAY)
	@mkdir -p $(@D) && ! grep broken $< && cp $< $@
bzImage: $(O)/mm/mm_init.o $(O)/mm/other.o
	@echo "make[1]: Entering directory"
	@echo "  LD [M]  drivers/dma/test-engine.ko"
	@mkdir -p $(O)/arch/x86/boot && cat $^ >$(O)/arch/x86/boot/$@ && touch $(O)/vmlinux
	@echo "drivers/dma/test-engine.o" >$(O)/modules.order
	@echo kernel >>$(O)/log
modules:
	@for c in $(wildcard $(KBUILD_EXTMOD)/*.c); do \\
		grep -n error: $$c /dev/null >&2 && exit 2; cp $$c $${c%.c}.ko; done; true
"""


def changed(text: str, *, path: str = "mm/mm_init.c", name: str = "0001-x.patch") -> Patch:
    return Patch(name, "x", f"--- a/{path}\n+++ b/{path}\n@@ -1 +1 @@\n-old\n+{text}\n".encode())


class Listening(Reporter):
    """Keeps what it is told."""

    def __init__(self) -> None:
        super().__init__()
        self.said: list[str] = []
        self.made: list[str] = []
        self.totals: list[float] = []

    def say(self, text: str) -> None:
        self.said.append(text)

    @contextmanager
    def measuring(self, total: float) -> Iterator[Advance]:
        self.totals.append(total)
        yield lambda _, text: self.made.append(text)


class Workshop:
    def __init__(self, tmp_path: Path) -> None:
        self.cache = tmp_path / "cache"
        pristine = self.cache / "tree" / "key" / "linux"
        (pristine / "mm").mkdir(parents=True)
        for name in ("mm_init.c", "other.c"):
            (pristine / "mm" / name).write_text("old\n")
        (pristine / "scripts" / "kconfig").mkdir(parents=True)
        (pristine / "scripts" / "kconfig" / "merge_config.sh").write_text('cat "$5" >"$4"\n')
        (pristine / "Makefile").write_text(KBUILD)
        self.tree = Tree(pristine, "key", "linux-source 6.12", "6.12.117")
        self.fragments = [tmp_path / "vm.config", tmp_path / "vm-debug.config"]
        self.fragments[0].write_text("CONFIG_SMP=y\n")
        self.fragments[1].write_text("CONFIG_KASAN=y\n")
        self.module = tmp_path / "modules" / "our-map"
        self.module.mkdir(parents=True)
        (self.module / "Kbuild").write_text("obj-m := our-map.o\n")
        (self.module / "our-map.c").write_text("int x;\n")
        self.reporter = Listening()

    def build(self, *patches: Patch, debug: bool = False) -> Image:
        return build_image(
            self.tree,
            patches,
            cache=self.cache,
            fragments=self.fragments if debug else self.fragments[:1],
            modules=[self.module],
            reporter=self.reporter,
        )

    def kernels(self, built: Image) -> int:
        """How many times the kernel in that place was built, its clone's origin included."""
        return (built.tree / BUILD / "log").read_text().count("kernel")


@pytest.fixture
def workshop(tmp_path: Path) -> Workshop:
    return Workshop(tmp_path)


# --- The plan --------------------------------------------------------------------------


def test_a_kernel_and_its_modules_are_one_command_that_says_what_it_does() -> None:
    command = plan_kernel(Path("/tree"))
    assert command.argv[-2:] == ("bzImage", "modules")
    assert "-s" not in command.argv
    assert command.cwd == Path("/tree")


def test_a_module_outside_of_the_tree_has_the_last_word_over_what_is_not_the_users() -> None:
    argv = plan_module(Path("/tree"), Path("/modules/memmap")).argv
    assert argv.index("KBUILD_EXTMOD=/modules/memmap") > argv.index("KBUILD_EXTMOD=")


def test_ccache_is_used_where_it_is_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert compiler() == "gcc"
    (tmp_path / "ccache").write_text("#!/bin/sh\n")
    (tmp_path / "ccache").chmod(0o755)
    assert "CC=ccache gcc" in make(Path("/tree"), ["prepare"], deadline_s=1).argv


@pytest.mark.parametrize("path", sorted(KERNEL_CONFIG.glob("*.config")), ids=lambda path: path.name)
def test_no_fragment_asks_for_anything_twice(path: Path) -> None:
    lines = [line for line in path.read_text().splitlines() if options(line)]
    assert len(lines) == len(options(path.read_text()))


def test_a_guest_runs_the_code_that_the_native_stage_measures() -> None:
    """But for what only a whole kernel has, and how many CPUs it is for."""
    native, guest = (
        options((KERNEL_CONFIG / name).read_text()) for name in ("native.config", "vm.config")
    )
    differ = {name for name in native.keys() & guest.keys() if native[name] != guest[name]}
    of_a_whole_kernel = {"NR_CPUS", "PARAVIRT", "HYPERVISOR_GUEST", "KUNIT", "MODULES"}
    # A guest's memory does not fail; entries of pages that did are looked at natively. It may have
    # tags, which a program's has not.
    assert differ == of_a_whole_kernel | {"MEMORY_FAILURE", "X86_MCE", "ARM64_MTE"}


# --- Kernels ---------------------------------------------------------------------------


def test_an_image_names_all_that_a_guest_needs(workshop: Workshop) -> None:
    built = workshop.build()
    assert built.bootable.read_text() == "old\nold\n"
    assert options(built.config.read_text()) == {"SMP": "y"}
    assert built.modules["test_engine"] == built.tree / BUILD / "drivers/dma/test-engine.ko"
    assert built.modules["our_map"].read_text() == "int x;\n"
    assert built.gen_init_cpio == built.tree / BUILD / "usr" / "gen_init_cpio"


def test_progress_counts_the_files_that_kbuild_makes(workshop: Workshop) -> None:
    workshop.build()
    assert sorted(workshop.reporter.made) == [  # made at the same time, told in any order
        "building the base: drivers/dma/test-engine.ko",
        "building the base: mm/mm_init.o",
        "building the base: mm/other.o",
    ]
    assert workshop.reporter.totals == [image.COLD_FILES]


def test_the_next_build_expects_as_many_files_as_the_last(workshop: Workshop) -> None:
    (workshop.tree.path / "mm" / "page.h").write_text("old\n")
    workshop.build()
    workshop.build(changed("new"))
    workshop.build(changed("newer"))
    assert workshop.reporter.totals == [image.COLD_FILES, image.GROWN_FILES, 2]
    header = Patch("0001-x.patch", "x", changed("new").body.replace(b"mm_init.c", b"page.h"))
    workshop.build(debug=True)
    workshop.build(header, debug=True)
    assert workshop.reporter.totals[3:] == [image.COLD_FILES, image.COLD_FILES]


def test_the_second_time_make_does_not_run(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    built = workshop.build()
    workshop.reporter.said.clear()
    monkeypatch.setattr(image, "stream", pytest.fail)
    monkeypatch.setattr(image, "run", pytest.fail)
    assert workshop.build() == built
    assert workshop.reporter.said == []


def test_a_variant_begins_with_what_the_one_without_patches_has(workshop: Workshop) -> None:
    base = workshop.build()
    workshop.reporter.made.clear()
    built = workshop.build(changed("new"))
    assert [text.split(": ")[1] for text in workshop.reporter.made] == [
        "mm/mm_init.o",
        "drivers/dma/test-engine.ko",
    ]
    assert built.bootable.read_text() == "new\nold\n"
    assert base.bootable.read_text() == "old\nold\n"
    assert (workshop.kernels(base), workshop.kernels(built)) == (1, 2)


def test_a_variant_can_be_the_first(workshop: Workshop) -> None:
    built = workshop.build(changed("new"))
    assert (built.bootable.read_text(), workshop.kernels(built)) == ("new\nold\n", 1)


def test_fragments_add_up_and_make_another_kernel(workshop: Workshop) -> None:
    plain, debug = workshop.build(), workshop.build(debug=True)
    assert plain.tree != debug.tree
    assert options(debug.config.read_text()) == {"SMP": "y", "KASAN": "y"}
    assert debug.modules["our_map"] != plain.modules["our_map"]


def test_the_later_fragment_has_the_last_word(workshop: Workshop) -> None:
    workshop.fragments[1].write_text("# CONFIG_SMP is not set\n")
    assert options(workshop.build(debug=True).config.read_text()) == {"SMP": "n"}


def test_a_patch_that_does_not_compile_is_told_by_its_error(workshop: Workshop) -> None:
    (workshop.tree.path / "Makefile").write_text(
        KBUILD.replace("! grep broken $<", "! { grep broken $< && echo $<:7: error: no >&2; }")
    )
    with pytest.raises(DoesNotCompile) as caught:
        workshop.build(changed("broken"))
    assert str(caught.value) == "0001-x.patch does not compile: mm/mm_init.c:7: error: no"
    assert caught.value.exit_code == 2
    assert workshop.build().bootable.exists()


def test_what_a_killed_build_left_is_not_taken_up(workshop: Workshop) -> None:
    built = workshop.build()
    entry = built.tree.parent
    (entry / WHOLE).unlink()
    (entry / BUILDING).touch()
    (built.tree / BUILD / "mm" / "other.o").write_text("hal")
    assert workshop.build().bootable.read_text() == "old\nold\n"
    assert not (entry / BUILDING).exists()


def test_a_killed_build_is_no_variants_beginning(workshop: Workshop) -> None:
    base = workshop.build()
    (base.tree.parent / BUILDING).touch()
    assert workshop.kernels(workshop.build(changed("new"))) == 1


def test_a_patch_that_does_not_apply_builds_nothing(workshop: Workshop) -> None:
    with pytest.raises(BadUsage, match="0001-x.patch: does not apply"):
        workshop.build(changed("new", path="mm/absent.c"))
    assert workshop.reporter.made == []


def test_room_is_asked_for_before_anything_is_compiled(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(image, "IMAGE_BYTES", 1 << 60)
    with pytest.raises(CannotRunHere, match=r"needs .* GB of disk"):
        workshop.build()
    assert workshop.reporter.made == []


# --- Our modules -----------------------------------------------------------------------


def test_changing_a_module_leaves_the_kernel_as_it_is(workshop: Workshop) -> None:
    before = workshop.build()
    (workshop.module / "our-map.c").write_text("int y;\n")
    after = workshop.build()
    assert (after.bootable, workshop.kernels(after)) == (before.bootable, 1)
    assert before.modules["our_map"].read_text() == "int x;\n"
    assert after.modules["our_map"].read_text() == "int y;\n"


def test_a_module_is_built_for_each_kernel_once(workshop: Workshop) -> None:
    base, patched = workshop.build(), workshop.build(changed("new"))
    assert base.modules["our_map"] != patched.modules["our_map"]
    workshop.build()
    assert workshop.reporter.said.count("building the module our-map") == 2


def test_an_error_in_a_module_names_the_file_we_wrote(workshop: Workshop) -> None:
    (workshop.module / "our-map.c").write_text("error: no\n")
    with pytest.raises(ReamError, match=f"{workshop.module}/our-map.c:1:error: no"):
        workshop.build()


def test_a_folder_that_makes_no_module_is_named(workshop: Workshop) -> None:
    (workshop.module / "our-map.c").unlink()
    with pytest.raises(ReamError, match=r"our-map: its Kbuild file names no module"):
        workshop.build()
    (workshop.module / "Kbuild").unlink()
    with pytest.raises(ReamError, match=r"our-map: no module"):
        workshop.build()


# --- stream() --------------------------------------------------------------------------


def script(tmp_path: Path, text: str, deadline_s: float = 20.0) -> Command:
    return Command(("sh", "-c", text), tmp_path, deadline_s)


def test_lines_come_as_they_are_said(tmp_path: Path) -> None:
    with closing(stream(script(tmp_path, "echo one; read x <fifo; echo two"))) as lines:
        os.mkfifo(tmp_path / "fifo")
        assert next(lines) == "one"
        (tmp_path / "fifo").write_text("\n")
        assert list(lines) == ["two"]


def test_a_failure_tells_what_was_said_on_either_channel(tmp_path: Path) -> None:
    with pytest.raises(ReamError, match=r"exit 3: on stderr$"):
        list(stream(script(tmp_path, "echo out; echo on stderr >&2; exit 3")))
    with pytest.raises(ReamError, match=r"(?s)exit 3: one\nlast"):
        list(stream(script(tmp_path, "echo one; printf last; exit 3")))


def test_a_missing_program_is_named(tmp_path: Path) -> None:
    with pytest.raises(CannotRunHere, match="no-such-make: not installed"):
        list(stream(Command(("no-such-make",), tmp_path, 1.0)))


@pytest.mark.parametrize("text", ["while echo x; do :; done", "sleep 60", "exec >&-; sleep 60"])
def test_a_deadline_ends_a_chatty_program_as_a_silent_one(tmp_path: Path, text: str) -> None:
    with pytest.raises(ReamError, match=r"still running after 0.3 s"):
        for _ in stream(script(tmp_path, text, deadline_s=0.3)):
            pass


def test_ctrl_c_takes_the_compilers_along(tmp_path: Path) -> None:
    """The program starts another one and waits for it, as make does."""
    pids: list[int] = []

    def interrupted() -> None:
        with closing(stream(script(tmp_path, "sleep 60 & echo $!; wait"))) as lines:
            pids.append(int(next(lines)))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    (pid,) = pids
    ends_at = time.monotonic() + 50
    while _lives(pid) and time.monotonic() < ends_at:
        time.sleep(0.01)
    assert not _lives(pid)


def _lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_build_killed_in_the_middle_is_made_again(workshop: Workshop, tmp_path: Path) -> None:
    """SIGKILL leaves no chance to clear up; the file `held` keeps make from coming to its end."""
    held = tmp_path / "held"
    held.touch()
    (workshop.tree.path / "Makefile").write_text(
        KBUILD.replace(
            "bzImage: ", f"held:\n\t@while [ -e {held} ]; do sleep 0.05; done\nbzImage: held "
        ).replace("cat $^", "cat $(filter %.o,$^)")
    )
    program = (
        "from pathlib import Path\n"
        "from ream.kernel.image import build_image\n"
        "from ream.kernel.source import Tree\n"
        "from ream.progress import Reporter\n"
        f"tree = Tree(Path({str(workshop.tree.path)!r}), 'key', 'linux', '6.12')\n"
        f"build_image(tree, (), cache=Path({str(workshop.cache)!r}), modules=(),"
        f" fragments=[Path({str(workshop.fragments[0])!r})], reporter=Reporter())\n"
    )
    with subprocess.Popen([sys.executable, "-c", program], stderr=subprocess.DEVNULL) as victim:
        ends_at = time.monotonic() + 60
        while not list(workshop.cache.glob(f"variant/*/{BUILDING}")):
            assert time.monotonic() < ends_at
            time.sleep(0.01)
        victim.kill()
    (marker,) = workshop.cache.glob(f"variant/*/{BUILDING}")
    held.unlink()
    assert workshop.build().bootable.read_text() == "old\nold\n"
    assert not marker.exists()
