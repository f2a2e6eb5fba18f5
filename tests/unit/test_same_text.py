# SPDX-License-Identifier: GPL-2.0-only
"""Files that compile to what they did, as far as that is known."""

from pathlib import Path

import pytest

from ream.kernel.same_text import objects_of, undecided_files, with_line_numbers

CODE = '#define TWO 2\nint f(int a)\n{\n\treturn a+TWO; /* "one */\n}\n#ifdef X\nint g;\n#endif\n'


@pytest.mark.parametrize(
    ("name", "changes", "is_decided"),
    [
        ("mm/other.c", (("one", "two"),), True),
        ("mm/other.c", (("return a+TWO", "return a\n\t\t+ TWO"),), True),
        ("mm/other.c", (("\treturn", "\t// more\n\treturn"),), True),
        ("include/linux/mm.h", (("/*", "/* not"),), True),
        ("mm/other.c", (("a+TWO", "TWO+a"),), False),
        ("mm/same.c", (("a+TWO", "TWO+a"),), True),
        ("mm/same.c", (("int g", "long g"),), False),
        ("include/linux/same.h", (("a+TWO", "TWO+a"),), False),
        ("mm/other.c", (("TWO 2", "TWO 2 + 1"),), False),
        ("mm/other.c", (("a+TWO", "a+ +TWO"),), False),
        ("Documentation/mm/a.rst", (("TWO", "THREE"),), True),
        ("MAINTAINERS", (("TWO", "THREE"),), True),
        ("mm/Kconfig", (("int g", "int h"),), False),
        ("mm/Makefile", (("#ifdef X", "# X"),), True),
    ],
)
def test_a_file_is_decided_if_its_code_is_the_same(
    name: str, changes: tuple[tuple[str, str], ...], is_decided: bool, tmp_path: Path
) -> None:
    text = CODE
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    for tree, said in (("before", CODE), ("after", text)):
        (tmp_path / tree / name).parent.mkdir(parents=True)
        (tmp_path / tree / name).write_text(said)
    found = undecided_files([name], tmp_path / "before", tmp_path / "after", {"mm/same.o"})
    assert found == (() if is_decided else (name,))


def test_a_string_is_no_comment_and_a_new_file_is_code(tmp_path: Path) -> None:
    for tree, said in (("before", 'char *s = "/* a */";\n'), ("after", 'char *s = "/* b */";\n')):
        (tmp_path / tree).mkdir()
        (tmp_path / tree / "s.c").write_text(said)
    (tmp_path / "after/new.c").write_text("int n;\n")
    names = ["new.c", "s.c", "s.c"]
    assert undecided_files(names, tmp_path / "before", tmp_path / "after", ()) == ("new.c", "s.c")


def test_a_source_changes_its_own_object_unless_another_includes_it(tmp_path: Path) -> None:
    (tmp_path / "mm").mkdir()
    for name, text in {
        "madvise.c": "int a;\n",
        "km.c": "int b;\n",
        "percpu.c": '#include "km.c"\n',
    }.items():
        (tmp_path / "mm" / name).write_text(text)
    assert objects_of(["mm/madvise.c", "Documentation/mm/a.rst"], tmp_path) == {"mm/madvise.o"}
    assert objects_of(["mm/madvise.c", "mm/km.c"], tmp_path) is None
    assert objects_of(["mm/internal.h"], tmp_path) is None
    assert objects_of(["mm/Makefile"], tmp_path) is None
    assert objects_of(["mm/new.c"], tmp_path) == {"mm/new.o"}


def test_what_is_behind_a_place_gets_the_numbers_of_lines_that_it_is_to_have() -> None:
    text = "int a;\n/* one\n * two\n */\n#define X \\\n\t1\nint b;\n"
    assert with_line_numbers(text, [(1, 1)]).splitlines()[1] == "#line 1"
    inside = with_line_numbers(text, [(2, 9)]).splitlines()
    assert inside[4] == "#line 11"  # behind the comment, two lines later
    goes_on = with_line_numbers(text, [(5, 9)]).splitlines()
    assert goes_on[6:] == ["#line 10", "int b;"]
