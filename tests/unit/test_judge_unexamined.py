# SPDX-License-Identifier: GPL-2.0-only
"""A page ends with what was not looked at."""

from dataclasses import replace

from judge_world import FORK, counted, judgement, operation, reach, timed
from ream.judge.judgement import Examined, Wrong
from ream.judge.page import render, sentence
from ream.judge.unexamined import NEVER, UNREACHED, unexamined

SEEN = Examined(("zap_pte_range",), 4, 4, 200, 9000)


def test_changed_places_that_no_program_executes_are_named() -> None:
    missed = tuple(f"mm/memory.c:{line}" for line in range(10, 16))
    its = judgement(operation(counted=counted()), whole=replace(SEEN, missed=missed))
    said = [*unexamined(its)]
    assert said[0].startswith("6 changed places that no program executes: mm/memory.c:10, ")
    assert said[0].endswith("mm/memory.c:13, …")
    assert said[1:] == ["the time of 1 of 1 row", UNREACHED, NEVER]
    assert render(its).replace("\n" + " " * 11, " ").endswith(f"{'; '.join(said)}\n")


def test_the_configuration_is_told_in_which_alone_the_change_is_compiled() -> None:
    its = judgement(operation(counted=counted()), whole=replace(SEEN, config="debug"))
    shown = render(its).replace("\n" + " " * 11, " ")
    assert "all of mm/ in the configuration debug it changes zap_pte_range(); programs" in shown
    assert "in the configuration" not in render(replace(its, whole=SEEN))


def test_behind_a_fault_nothing_is_looked_at() -> None:
    wrong = Wrong("mm", ("after `p0 munmap a`: frame 0x10 is lost",))
    its = judgement(whole=SEEN, wrong=wrong, reach=None)
    assert [*unexamined(its)] == ["what comes behind the first fault", NEVER]


def test_code_that_is_not_hosted_and_a_kernel_that_is_not_are_told() -> None:
    its = judgement(operation(timed=timed(1.0, "equal", 1.01)))
    its = replace(its, reach=replace(reach(FORK), elsewhere=("drivers/gpu/a.c",)))
    assert [*unexamined(its)] == [
        "memory as a whole, since this kernel is not hosted so",
        "code that is not hosted, in drivers/gpu/a.c",
        NEVER,
    ]


def test_of_a_quick_judgement_the_cost_is_not_known() -> None:
    assert "what it costs" in unexamined(judgement(whole=SEEN, reach=None))


def test_nothing_is_left_out_of_a_change_that_changes_nothing() -> None:
    its = judgement(whole=Examined(same=True), reach=None)
    assert [*unexamined(its)] == []
    assert "not seen" not in render(its)


def test_code_of_all_of_mm_that_no_row_executes_is_a_change() -> None:
    """No experiment hosts it, and so none has other code: that alone says nothing."""
    its = judgement(whole=SEEN, reach=replace(reach(), elsewhere=()))
    assert not its.changes_nothing
    assert its.exit_code == 4
    assert "no row executes anything that it changes" in render(its).replace("\n" + " " * 11, " ")
    assert judgement(whole=Examined(), reach=replace(reach(), elsewhere=())).changes_nothing


def test_a_quick_judgement_says_first_whether_anything_executed_the_change() -> None:
    words = {
        (4, 2): "programs that execute it found nothing wrong",
        (4, 0): "no program executed a line that it changes",
        (0, 0): "programs found nothing wrong",
    }
    for (blocks, entered), said in words.items():
        its = replace(SEEN, nr_blocks=blocks, nr_entered=entered)
        assert f"Undecided: {said}, and" in sentence(judgement(whole=its, reach=None))
    none = judgement(whole=replace(SEEN, functions=()), reach=None)
    assert "Undecided: it changes no function that is hosted, and" in sentence(none)
