# SPDX-License-Identifier: GPL-2.0-only
"""Alarms in the list are recognised whatever the numbers, and others are not."""

from pathlib import Path

import pytest

from ream.errors import BadUsage
from ream.program.ran import Ran
from ream.program.text import parse
from ream.program.withheld import LIST, Withheld

PROGRAM = parse("memory 512M\nfile f 64K disk\np0 mmap a 8 f private rw\np0 madvise a[3] cold\n")
SAME = parse("cpus 1\nfile g 2M disk\np0 mmap b1 90 g private rw\np0 madvise b1[8:9] cold\n")
OTHER = parse("file f 64K disk\np0 mmap a 8 f private rw\np0 madvise a[3] pageout\n")
ALARM = Ran(((4, "frame 12 is lost"),))


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    path = tmp_path / "list"
    path.write_text("# a list\n\nsalt abc\n")
    Withheld.load(path).add(ALARM, PROGRAM)
    return path


def test_an_alarm_is_known_by_its_rule_and_its_steps_without_names_and_numbers(path: Path) -> None:
    its = Withheld.load(path)
    text = its.put_away(Ran(((4, "frame 7 is lost"),)), SAME)
    assert text is not None
    assert text.startswith("alarm withheld: ")
    (written,) = path.parent.rglob(f"{LIST}/*.program")
    assert written.read_text() == str(SAME)
    assert "frame" not in text


def test_another_rule_or_other_steps_are_shown(path: Path) -> None:
    its = Withheld.load(path)
    assert its.put_away(Ran(((4, "frame 12 is free twice"),)), PROGRAM) is None
    assert its.put_away(ALARM, OTHER) is None


def test_the_list_tells_nothing_but_a_salted_hash(path: Path) -> None:
    Withheld.load(path).add(ALARM, SAME)
    *_, salt, its = path.read_text().splitlines()
    assert (salt, len(its)) == ("salt abc", 16)
    other = Withheld(path, "def", frozenset())
    assert other.hash_of(ALARM, ["mmap"]) != Withheld.load(path).hash_of(ALARM, ["mmap"])


def test_where_an_endless_loop_was_interrupted_does_not_matter(path: Path) -> None:
    first, second = (Ran(((4, f"it does not come back: in {name}()"),)) for name in ("a", "b"))
    Withheld.load(path).add(first, PROGRAM)
    assert Withheld.load(path).find(second, PROGRAM) is not None


def test_steps_that_a_shrunk_program_still_has_beside_it_do_not_matter(path: Path) -> None:
    its = Withheld.load(path)
    longer = parse(f"{PROGRAM}p0 fork p1\np1 exit\n")
    assert its.find(ALARM, longer) == its.find(ALARM, PROGRAM)
    assert its.find(ALARM, parse("p0 fork p1\np1 exit\n")) is None


def test_a_list_without_salt_is_refused(path: Path) -> None:
    path.write_text("0123456789abcdef\n")
    with pytest.raises(BadUsage, match="its first line has to be `salt WORD`"):
        Withheld.load(path)
