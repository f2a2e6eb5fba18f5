# SPDX-License-Identifier: GPL-2.0-only
"""A fault of a series names a line of the patch with which it begins."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from ream.judge import whole
from ream.kernel.series import Patch
from ream.program.changed import Hunk

FILE = "mm/a.c"
BEFORE, AFTER = "one\ntwo\nthree\nfour\n", "one\nTWO\nthree\nFOUR\nfive\n"


def patch(*lines: str) -> Patch:
    text = "\n".join((f"--- a/{FILE}", f"+++ b/{FILE}", "@@ -1,4 +1,4 @@", *lines, ""))
    return Patch("a.patch", "a", f"\n{text}".encode())


def test_a_place_is_of_the_patch_that_has_a_line_of_it(tmp_path: Path) -> None:
    for tree, text in (("base", BEFORE), ("its", AFTER)):
        (tmp_path / tree / "mm").mkdir(parents=True)
        (tmp_path / tree / FILE).write_text(text)
    pair: Any = SimpleNamespace(
        base=SimpleNamespace(computer=SimpleNamespace(tree=tmp_path / "base")),
        its=SimpleNamespace(computer=SimpleNamespace(tree=tmp_path / "its")),
    )
    places = [Hunk(FILE, (2, 2), (2, 2)), Hunk(FILE, (4, 4), (4, 5))]
    first, second = patch("-two", "+TWO"), patch("-four", "+FOUR", "+five")
    assert [whole._is_of(first, one, pair) for one in places] == [True, False]
    assert [whole._is_of(second, one, pair) for one in places] == [False, True]
