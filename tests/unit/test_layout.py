# SPDX-License-Identifier: GPL-2.0-only
"""A structure that is laid out otherwise is told, with its size and the members that moved."""

import subprocess
from pathlib import Path

import pytest

from ream.kernel.layout import Structure, layout_changes, layouts

SOURCE = """\
struct list { struct list *next; };
struct page {
    unsigned long flags;
    union {
        struct { struct list lru; void *mapping; };
        struct { unsigned long pgmap; char few[3]; };
    };
    unsigned int old : 3, young : 5;
    int counts[2][2];
};
struct zone { int unlisted; };
struct page *reach_page;
struct zone *reach_zone;
"""


def compiled(where: Path, text: str) -> dict[str, Structure]:
    where.mkdir()
    (where / "layout.c").write_text(text)
    subprocess.run(["gcc", "-g", "-c", "layout.c", "-o", "layout.o"], cwd=where, check=True)
    return layouts(where / "layout.o")


def changes(where: Path, old: str, new: str) -> tuple[str, ...]:
    assert old in SOURCE
    before = compiled(where / "before", SOURCE)
    return layout_changes(before, compiled(where / "after", SOURCE.replace(old, new)))


def test_members_of_unnamed_structures_have_their_places(tmp_path: Path) -> None:
    assert compiled(tmp_path / "own", SOURCE) == {
        "page": Structure(
            48,
            {
                "flags": (0, 64),
                "lru": (64, 64),
                "mapping": (128, 64),
                "pgmap": (64, 64),
                "few": (128, 24),
                "old": (192, 3),
                "young": (195, 5),
                "counts": (224, 128),
            },
        ),
        "zone": Structure(4, {"unlisted": (0, 32)}),
    }


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            "unsigned long flags;",
            "unsigned long flags; long more;",
            "has 56 bytes, not 48; new: more; moved: lru, mapping, pgmap and 4 more",
        ),
        ("char few[3]", "char few[4]", "has 48 bytes as before; resized: few"),
        (
            " : 3, young : 5",
            " : 4, young : 5",
            "has 48 bytes as before; moved: young; resized: old",
        ),
        ("void *mapping;", "", "has 48 bytes as before; gone: mapping"),
    ],
)
def test_what_differs_is_said(tmp_path: Path, old: str, new: str, said: str) -> None:
    assert changes(tmp_path, old, new) == (f"struct page {said}",)


def test_names_of_other_types_and_lines_do_not_matter(tmp_path: Path) -> None:
    assert changes(tmp_path, "struct page {", "\n/* moved */\nstruct page {") == ()


def test_a_structure_that_is_new_or_gone_is_said(tmp_path: Path) -> None:
    its = compiled(tmp_path / "own", SOURCE)
    only = {"page": its["page"]}
    assert layout_changes(only, its) == ("struct zone is new",)
    assert layout_changes(its, only) == ("struct zone is gone",)
