# SPDX-License-Identifier: GPL-2.0-only
"""Programs are kept for what they execute, as short as that allows."""

import random
import re
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ream.errors import ReamError
from ream.program import explore
from ream.program.collection import write_texts
from ream.program.explore import DIGESTS, PROGRAMS, WRONG, Corpus, Explorer, mixed
from ream.program.ran import Ran
from ream.program.step import Program
from ream.program.text import parse
from ream.stage.computer import Checks

MAP = "p0 mmap a 4 anon private rw\n"
FORK = "p0 fork p1\n"
VERBS = ("mmap", "write", "read", "fork", "munmap", "madvise", "mprotect", "mremap", "exit")
"""Each is a block of its own that a program meets which has such a step."""


class Rig:
    """Meets a block for each verb; a program that breaks a page is wrong."""

    def __init__(self, folder: Path) -> None:
        self.computer = SimpleNamespace(program=folder / "computer")

    def run_covered(
        self, program: Program, blocks: Path, checks: Checks, *, only_measured: bool = False
    ) -> tuple[Ran, tuple[int, ...]]:
        del checks
        assert not only_measured
        assert blocks.is_file()
        verbs = {step.verb for step in program}
        if "vmalloc" in verbs:
            raise ReamError("vmalloc() is not hosted")
        met = tuple(number for number, verb in enumerate(VERBS) if verb in verbs)
        wrong = [step.line for step in program if step.verb == "uffd_poison"]
        alarms = tuple((line, "a page is lost") for line in wrong)
        return Ran(alarms, digest=f"{len(program):04x}"), met

    def run(self, program: Program, checks: Checks = Checks.EACH, **_: bool) -> Ran:
        return self.run_covered(program, Path(self.computer.program), checks)[0]


@pytest.fixture
def explorer(tmp_path: Path) -> Explorer:
    (tmp_path / "computer").touch()
    rig: Any = Rig(tmp_path)
    code: Any = SimpleNamespace(blocks=tuple(range(256, 256 + len(VERBS))))
    return Explorer(rig, code, Corpus(tmp_path / "corpus"))


def explored(explorer: Explorer, for_s: float, seed: int = 5) -> list[str]:
    return list(explorer.explore(random.Random(seed), time.monotonic() + for_s))


def test_a_program_is_kept_with_what_it_needs_for_what_is_new(explorer: Explorer) -> None:
    tried = explorer.explore(random.Random(5), time.monotonic() + 60)
    said = next(line for line in tried if "kept as" in line)
    (kept,) = explorer.corpus.programs.values()
    assert re.fullmatch(rf"seed \d+: kept as 001, {len(kept)} steps for \d+ new blocks", said)
    assert explorer.run(kept)[1] == explorer.corpus.met
    assert len(kept) < 60  # of as many steps at least
    assert Corpus.load(explorer.corpus.folder).programs == {"001": kept}
    text = (explorer.corpus.folder / DIGESTS).read_text().split()
    assert text == ["001", explorer.corpus.digests["001"]]


def test_what_is_there_is_run_and_its_state_noted(explorer: Explorer) -> None:
    explorer.corpus.put("fork", parse(MAP + FORK), "0")
    assert [name for name, _ in explorer.replay()] == ["fork"]
    assert explorer.corpus.digests == {"fork": "0002"}
    assert explorer.corpus.met == {VERBS.index("mmap"), VERBS.index("fork")}


def test_a_program_in_which_something_is_wrong_is_put_aside(
    explorer: Explorer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(explore, "SHORTEN_S", 0.5)
    poison = parse(MAP + "p0 write a\np0 uffd_register a missing\np0 uffd_poison a\n")
    monkeypatch.setattr(explorer, "_draw", lambda _: ("seed 1", poison))
    said, *_ = explored(explorer, 0.2)
    assert said.startswith("seed 1: WRONG: a page is lost; ")
    path = explorer.corpus.folder / WRONG / "001.program"
    assert path.read_text().splitlines()[-1].startswith("p0 uffd_poison")
    assert "write" not in path.read_text()
    assert not explorer.corpus.programs


def test_keeping_a_program_leaves_the_comments_of_others(explorer: Explorer) -> None:
    folder, by_hand = explorer.corpus.folder, f"# about fork\n{MAP}{FORK}"
    folder.mkdir()
    write_texts(folder / PROGRAMS, {"fork": by_hand})
    corpus = Corpus.load(folder)
    assert corpus.add(parse(MAP), "0") == "001"
    assert Corpus.load(folder).texts == {"001": MAP, "fork": by_hand}
    corpus.put("001", None, "")
    assert Corpus.load(folder).texts == {"fork": by_hand}


def test_what_the_computer_lacks_is_said(
    explorer: Explorer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(explorer, "_draw", lambda _: ("seed 1", parse("vmalloc 1\n")))
    said, *_ = explored(explorer, 0.05)
    assert said == "seed 1: vmalloc() is not hosted"


def test_programs_that_execute_nothing_of_their_own_make_room(explorer: Explorer) -> None:
    corpus = explorer.corpus
    corpus.add(parse(MAP + FORK), "0")
    corpus.add(parse(MAP + FORK + "p0 write a\np0 write a\np0 read a\n"), "0")
    corpus.put("by-hand", parse(MAP), "0")
    said = list(explorer.make_room(time.monotonic() + 30))
    assert said[0] == "002: 5 steps, 3 of them needed"
    assert [step.verb for step in corpus.programs["002"]] == ["mmap", "write", "read"]
    assert {"001", "by-hand"} < corpus.programs.keys()  # the latter is nobody's to leave out
    met = frozenset[int]().union(*(explorer.run(one)[1] for one in corpus.programs.values()))
    assert met == {VERBS.index(one) for one in ("mmap", "fork", "write", "read")}


def test_a_mixture_has_the_end_of_one_program_somewhere_in_another() -> None:
    head = parse(MAP + "p0 write a\np0 read a\n")
    tail = parse(MAP + "p0 munmap a\n")
    program = mixed(random.Random(2), head, tail)
    assert {step.verb for step in program} <= {"mmap", "write", "read", "munmap"}
    assert str(parse(str(program))) == str(program)
