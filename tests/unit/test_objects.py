# SPDX-License-Identifier: GPL-2.0-only
"""What is the same code is told to be so wherever it lies, and what is not never is."""

import subprocess
from pathlib import Path

import pytest

from ream.kernel.objects import ObjectDifference, differences, is_same_code, kernel_objects

SOURCE = """\
static const char *const names[] = { "first", "second" };
static int counter = 7;
int outside(int);
static int table(int kind)
{
    switch (kind) {
    case 0: return outside(10);
    case 1: return outside(23);
    case 2: return counter;
    case 3: return outside(3) + 1;
    case 4: return outside(kind * 3);
    case 5: return outside(99) * 7;
    default: return -1;
    }
}
const char *name_of(int number) { return names[number & 1]; }
const char *said(void) { return "as it was"; }
int first(int kind) { return table(kind) + outside(kind); }
double half(double of) { return of * 0.5; }
int last(int kind) { counter += kind; return first(kind) - 1; }
"""
FLAGS = ("-O2", "-g", "-fno-pie", "-mcmodel=kernel", "-ffreestanding", "-fno-inline", "-c")


def compiled(where: Path, text: str) -> Path:
    """An object, as kbuild's flags make it; the source's name is the same in all."""
    where.mkdir()
    (where / "code.c").write_text(text)
    subprocess.run(["gcc", *FLAGS, "code.c", "-o", "code.o"], cwd=where, check=True)
    return where / "code.o"


def change(tmp_path: Path, old: str, new: str) -> ObjectDifference:
    assert old in SOURCE
    before = compiled(tmp_path / "before", SOURCE)
    return differences(before, compiled(tmp_path / "after", SOURCE.replace(old, new)))


def test_lines_that_move_and_names_of_locals_change_nothing(tmp_path: Path) -> None:
    text = "/* A comment\n * of three\n * lines. */\n" + SOURCE.replace("number", "nr")
    found = differences(compiled(tmp_path / "before", SOURCE), compiled(tmp_path / "after", text))
    assert not found
    assert found == ObjectDifference()


def test_a_function_that_grows_changes_itself_and_none_of_those_behind_it(tmp_path: Path) -> None:
    found = change(tmp_path, "return outside(3) + 1;", "return outside(3) + outside(77) + 1;")
    assert found == ObjectDifference(changed=("table", "table.cold"))


def test_a_new_function_and_one_that_is_gone(tmp_path: Path) -> None:
    found = change(tmp_path, "int first(", "int added(void) { return outside(1); }\nint first(")
    assert found == ObjectDifference(added=("added",))
    there = compiled(tmp_path / "there", SOURCE + "int more(void) { return counter; }\n")
    assert differences(there, compiled(tmp_path / "gone", SOURCE)).removed == ("more",)


@pytest.mark.parametrize(
    ("old", "new", "changed", "data"),
    [
        ('"as it was"', '"as it is."', ("said",), ()),
        ('"second"', '"Second"', (), ("names",)),
        ("counter = 7", "counter = 8", (), ("counter",)),
        ("case 4: return outside(kind * 3)", "case 4: return outside(kind * 5)", ("table",), ()),
        ("* 0.5", "* 0.25", ("half",), ()),
        ("counter += kind", "counter -= kind", ("last",), ()),
        ("outside(10)", "outside(11)", ("table",), ()),
        ("names[number & 1]", "names[number & 0]", ("name_of",), ("names",)),
    ],
)
def test_what_differs_is_named(
    tmp_path: Path, old: str, new: str, changed: tuple[str, ...], data: tuple[str, ...]
) -> None:
    found = change(tmp_path, old, new)
    assert (found.changed, found.data) == (changed, data)


def test_two_cases_that_change_places_are_seen_though_all_instructions_are_the_same(
    tmp_path: Path,
) -> None:
    found = change(
        tmp_path,
        "case 0: return outside(10);\n    case 1:",
        "case 1: return outside(10);\n    case 0:",
    )
    assert "table" in found.changed


def test_of_a_whole_build_what_is_linked_and_what_never_is_kernel_are_left_out(
    tmp_path: Path,
) -> None:
    theirs, ours = tmp_path / "theirs", tmp_path / "ours"
    for build, text in ((theirs, SOURCE), (ours, "/* moved */\n" + SOURCE)):
        build.mkdir()
        made = compiled(build / "mm", text)
        for other in ("vmlinux.o", ".tmp_vmlinux1.o", "drivers/a.mod.o", "scripts/b.o"):
            (build / other).parent.mkdir(exist_ok=True)
            (build / other).write_bytes(build.name.encode())
        made.rename(build / "mm/memory.o")
    before, after = kernel_objects(theirs), kernel_objects(ours)
    assert before.keys() == after.keys() == {"mm/memory.o"}
    assert before["mm/memory.o"].read_bytes() != after["mm/memory.o"].read_bytes()
    assert is_same_code(before["mm/memory.o"], after["mm/memory.o"])
    other = compiled(tmp_path / "other", SOURCE.replace("outside(23)", "outside(24)"))
    assert not is_same_code(before["mm/memory.o"], other)
