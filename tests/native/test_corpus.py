# SPDX-License-Identifier: GPL-2.0-only
"""Programs that execute most of mm/ find nothing wrong, and end in the same state everywhere."""

from itertools import islice
from pathlib import Path

import pytest

from ream.kernel.series import load_series
from ream.kernel.source import Tree
from ream.paths import EXPERIMENTS
from ream.program.aim import CORPUS_AT_ONCE, NEAR_EACH, Aim
from ream.program.changed import Target
from ream.program.coverage import Code
from ream.program.explore import DIGESTS, MOST_BYTES, Corpus, Explorer
from ream.program.ran import Rig, Watched, computer_folder
from ream.program.search import search

pytestmark = pytest.mark.xdist_group("computer")

FOLDER = EXPERIMENTS / "mm" / "corpus"
FEW = 5
LEAST_BLOCKS = 1000
"""That any program executes, since the kernel boots."""

LEAST_TEXT_PCT, LEAST_BLOCKS_PCT = 80, 60
"""The shares of hosted function text and blocks; the README of the corpus has the table."""


UNPREPARED = EXPERIMENTS / "compact" / "wrong" / "01-given-back-unprepared.patch"
SEARCH_S = 60.0


@pytest.fixture(scope="module")
def rig(kernel: Tree, cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Rig:
    return Rig.of(kernel, [], cache=cache, work=tmp_path_factory.mktemp("corpus"), step=print)


@pytest.fixture(scope="module")
def explorer(rig: Rig) -> Explorer:
    return Explorer(rig, Code(rig.computer, computer_folder()), Corpus.load(FOLDER))


def _expected() -> dict[str, str]:
    return dict(line.split() for line in (FOLDER / DIGESTS).read_text().splitlines())


def test_a_few_programs_find_nothing_wrong_and_execute_much(explorer: Explorer) -> None:
    programs = explorer.corpus.programs
    for name in sorted(programs)[:: max(1, len(programs) // FEW)]:
        ran, met = explorer.run(programs[name])
        assert not ran.alarms, name
        assert len(met) > LEAST_BLOCKS


def test_exploring_keeps_programs_and_ends_with_a_table(ream, tmp_path: Path) -> None:
    asked = ("--corpus", str(tmp_path), "--minutes", "0.03", "--seed", "3")
    ran = ream("explore", *asked)
    assert ran.code == 0, ran.err
    kept = [line for line in ran.out.splitlines() if ": kept as " in line]
    programs = Corpus.load(tmp_path).programs
    assert len(kept) == len(programs) > 0
    table = [line for line in ran.out.splitlines() if line.startswith(("mm/memory.o ", "all "))]
    assert len(table) == 2
    assert f"{len(programs)} programs, " in ran.out
    assert len((tmp_path / DIGESTS).read_text().splitlines()) == len(programs)


@pytest.mark.vm
def test_the_corpus_executes_most_of_mm_and_ends_in_the_states_that_are_known(
    explorer: Explorer,
) -> None:
    ran = dict(explorer.replay())
    assert not {name: its.alarms for name, its in ran.items() if its.alarms}
    assert {name: its.digest for name, its in ran.items()} == _expected()
    *_, whole = explorer.code.rows(explorer.corpus.met)
    assert 100 * whole.bytes[0] >= LEAST_TEXT_PCT * whole.bytes[1]
    assert 100 * whole.blocks[0] >= LEAST_BLOCKS_PCT * whole.blocks[1]
    assert explorer.corpus.bytes <= MOST_BYTES
    table = (FOLDER.parent / "coverage.md").read_text()
    for row in explorer.code.rows(explorer.corpus.met):
        shares = (round(100 * did / max(nr, 1)) for did, nr in (row.bytes, row.blocks))
        its = f"| {row.object} | {row.functions[0]} of {row.functions[1]} | "
        assert its + " | ".join(f"{one} %" for one in shares) + " |" in table


@pytest.mark.vm
def test_programs_that_execute_a_change_run_first_and_find_no_fault_in_the_base(
    rig: Rig, kernel: Tree, cache: Path, tmp_path: Path
) -> None:
    patches = load_series(UNPREPARED).patches
    series = Rig.of(kernel, patches, cache=cache, work=tmp_path / "series", step=print)
    code = Code(rig.computer, computer_folder())
    target = Target.of(rig.computer, series.computer, code, ["mm/compaction.c"])
    assert target.functions == {("mm/compaction.o", "compaction_free")}
    assert target.differing == {"mm/compaction.o"}
    aim = Aim.of(rig, code, Corpus.load(FOLDER), tmp_path)
    assert aim.executed(target.functions) == target.functions
    assert 0 < len(aim.attempts(target, seed=1).met) <= len(target.blocks) < 20
    assert target.executed(target.blocks) == sorted(target.hunks, key=str)
    reaching = aim.reaching(target)
    first = islice(aim.attempts(target, seed=1), CORPUS_AT_ONCE * (1 + NEAR_EACH))
    origins = [one.origin for one in first]
    assert [one for one in origins if one in reaching] == reaching[:CORPUS_AT_ONCE]
    assert sum(one.startswith("near ") for one in origins) > CORPUS_AT_ONCE
    watched = Watched(rig, {number: code.blocks[number] for number in target.blocks})
    searched = search(watched, Watched(rig, {}), aim.attempts(target, seed=1), within_s=SEARCH_S)
    assert searched.found is None
    assert searched.nr_programs > CORPUS_AT_ONCE
    again = Aim.of(rig, code, Corpus.load(FOLDER), tmp_path)  # from the cache
    assert again.met == aim.met
