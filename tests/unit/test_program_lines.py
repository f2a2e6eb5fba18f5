# SPDX-License-Identifier: GPL-2.0-only
"""The lines that a hosted kernel reads."""

from pathlib import Path

import pytest

from ream.errors import BadUsage
from ream.program.lines import lines, load_definitions
from ream.program.scene import Call, resolve
from ream.program.text import parse

DEFINITIONS = """\
/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * STEP(name, arguments...).
 */
STEP(memory, node0, node1, node2, node3)
STEP(cpus, nr)	/* STEP(not, this) */
STEP(mprotect, process, page, nr,
     protection)
STEP(mmap, process, page, nr, protection, flags, file, offset)
STEP(group, group, nr)
STEP(set, file, value)
STEP(call, process, function, page, nr, x, y)
STEP(measure)
"""


@pytest.fixture
def definitions(tmp_path: Path):
    file = tmp_path / "steps.def"
    file.write_text(DEFINITIONS)
    return load_definitions(file)


def test_comments_declare_no_step(definitions) -> None:
    assert list(definitions) == [
        "memory",
        "cpus",
        "mprotect",
        "mmap",
        "group",
        "set",
        "call",
        "measure",
    ]
    assert definitions["mprotect"] == ("process", "page", "nr", "protection")


def test_a_line_has_the_arguments_in_the_order_of_the_definitions(definitions) -> None:
    text = "cpus 2\np0 mmap a 16 anon private rw\n\nmeasure p0 mprotect a[4:8] r\n"
    assert lines(resolve(parse(text)), definitions).splitlines() == [
        "0 memory 163840 0 0 0",
        "1 cpus 2",
        "2 mmap 0 0 16 3 50 -1 0",
        "4 measure",
        "4 mprotect 0 4 4 1",
    ]


def test_a_step_that_the_definitions_lack_is_named(definitions) -> None:
    with pytest.raises(BadUsage, match="line 1: compact: this kernel's definitions have no"):
        lines(resolve(parse("compact\n")), definitions)


def test_other_arguments_than_those_of_the_definitions_are_named(definitions) -> None:
    with pytest.raises(BadUsage, match="line 3: cpus: has number; the definitions ask for nr"):
        lines([Call(3, "cpus", {"number": 1})], definitions)


def test_a_malformed_file_is_named(tmp_path: Path) -> None:
    file = tmp_path / "steps.def"
    with pytest.raises(BadUsage, match="steps.def: cannot be read"):
        load_definitions(file)
    file.write_text("STEP(a, 5)\n")
    with pytest.raises(BadUsage, match=r"STEP\(a, 5\): not a step"):
        load_definitions(file)
    file.write_text("STEP(a)\nSTEP(a)\n")
    with pytest.raises(BadUsage, match="there twice"):
        load_definitions(file)


def test_words_for_the_kernel_are_marked_and_groups_in_them_are_numbers(definitions) -> None:
    program = parse("group g\ngroup h\nset /sys/fs/cgroup/h/memory.max 1M\np0 call slab x=64\n")
    its = lines(resolve(program), definitions).splitlines()
    assert "3 set =/sys/fs/cgroup/2/memory.max =1M" in its
    assert "4 call 0 =slab 0 0 64 0" in its
