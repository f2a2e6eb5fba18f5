# SPDX-License-Identifier: GPL-2.0-only
"""What is asked of a tree, without one: the compiler's words are given."""

from pathlib import Path

import pytest

from ream.errors import CannotRunHere, ReamError
from ream.kernel import probes
from ream.kernel.probes import find, header_of, needs, source_of
from ream.stage.bench import probes_of

FILE = """#include <linux/mm.h>

/* need one or two: a thing
 * that counts, mm/thing.h */

#line 1 "one"
static int one;

#line 1 "two"	/* of v7.0 */
static int two;
"""


@pytest.fixture
def asked(tmp_path: Path) -> Path:
    file = tmp_path / "some_thing.probes"
    file.write_text(FILE)
    return file


@pytest.fixture
def answer(monkeypatch: pytest.MonkeyPatch, asked: Path):
    def ask(said: str, code: int = 1) -> frozenset[str]:
        monkeypatch.setattr(probes, "finished", lambda _: (code, "", said))
        return find(asked.parent, [asked], tree=asked.parent, label="linux 9.9")

    return ask


def test_what_the_compiler_has_nothing_against_is_there(answer) -> None:
    assert answer("", code=0) == {"one", "two"}
    assert answer("two:1:12: error: 'struct page' has no member named 'two'\n") == {"one"}
    assert answer("two:1:12: warning: not used\nin file: note: x\none:2: error: x\n") == {"two"}


def test_what_is_needed_and_not_there_ends_in_one_line(answer) -> None:
    with pytest.raises(CannotRunHere) as raised:
        answer("one:1:12: error: x\ntwo:1:3: error: y\n")
    assert str(raised.value) == (
        "linux 9.9: some-thing cannot be hosted: it needs a thing that counts, and has no"
        " one or two in mm/thing.h"
    )


def test_what_fails_outside_of_all_probes_is_no_answer(answer) -> None:
    with pytest.raises(ReamError, match="some_thing.probes: linux/mm.h: No such file"):
        answer("some_thing.probes:1:10: fatal error: linux/mm.h: No such file\n")
    with pytest.raises(ReamError, match="cannot be compiled: make: nothing"):
        answer("make: nothing\n")


def test_a_name_is_one_probe(asked: Path) -> None:
    with pytest.raises(ReamError, match="more than one probe is called one, two"):
        source_of([asked, asked])


def test_a_need_may_go_over_lines(asked: Path) -> None:
    (need,) = needs([asked])
    assert (need.owner, need.names, need.file) == ("some-thing", ("one", "two"), "mm/thing.h")


def test_the_header_has_a_line_for_each() -> None:
    assert header_of(frozenset({"b", "a"})).splitlines()[1:] == [
        "#define HAVE_A 1",
        "#define HAVE_B 1",
    ]


def test_ours_have_names_of_their_own(tmp_path: Path) -> None:
    (tmp_path / "objects").touch()
    names = [file.name for file in probes_of(tmp_path)]
    assert names == ["host.probes", "page.probes"]
    assert source_of(probes_of(tmp_path)).count("#line 1") > 8
