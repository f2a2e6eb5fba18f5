# SPDX-License-Identifier: GPL-2.0-only
"""A page ends with what was not looked at."""

from dataclasses import replace

from judge_world import FORK, counted, judgement, operation, reach, timed
from ream.judge import html, markdown
from ream.judge.judgement import Examined, SourceLine, Wrong
from ream.judge.page import render, sentence
from ream.judge.unexamined import FURTHER, NEVER, UNREACHED, UNWEIGHED, unexamined, unexecuted

SEEN = Examined(("zap_pte_range",), 4, 4, 200, 9000)


def test_changed_places_that_no_program_executes_are_named() -> None:
    missed = tuple(f"mm/memory.c:{line}" for line in range(10, 16))
    its = judgement(operation(counted=counted()), whole=replace(SEEN, missed=missed))
    said = [*unexamined(its)]
    assert said[0].startswith("6 changed places that no program executes: mm/memory.c:10, ")
    assert said[0].endswith("mm/memory.c:13, …")
    assert said[1:] == ["the time of 1 of 1 row", UNREACHED, NEVER]
    assert render(its).replace("\n" + " " * 11, " ").endswith(f"{'; '.join(said)}\n")


def lines(*numbers: int) -> tuple[SourceLine, ...]:
    return tuple(SourceLine("mm/memory.c", number, f"text <{number}>") for number in numbers)


def test_lines_that_no_program_executed_are_named_by_the_first_of_each_few() -> None:
    its = replace(SEEN, unexecuted=lines(10, 11, 12, 20))
    said = [*unexecuted(its)]
    assert said == [
        "mm/memory.c:10 was not executed by any program: text <10>",
        "mm/memory.c:20 was not executed by any program: text <20>",
        "nor were 2 further changed lines, which --json has",
    ]
    judged = judgement(whole=its, reach=None)
    shown = render(judged).replace("\n" + " " * 11, " ")
    assert all(text in shown for text in said)
    assert "- mm/memory.c:10 was not executed by any program: text &lt;10>" in markdown.render(
        judged
    )
    page = html.render(judged)
    assert "<dt>Not executed</dt><dd>mm/memory.c:10 was not executed by any program: text" in page
    assert page.count("was not executed by any program") == 2


def test_five_lines_that_no_program_executed_are_named_and_the_rest_is_counted() -> None:
    said = [*unexecuted(replace(SEEN, unexecuted=lines(*range(10, 80, 10))))]
    assert len(said) == 6
    assert said[-1] == "nor were 2 further changed lines, which --json has"


def test_one_further_line_is_one() -> None:
    said = [*unexecuted(replace(SEEN, unexecuted=lines(10, 11)))]
    assert said[-1] == "nor was 1 further changed line, which --json has"


def test_of_a_series_that_is_wrong_lines_that_nothing_executed_are_not_told() -> None:
    wrong = Wrong("mm", ("after `p0 munmap a`: frame 0x10 is lost",))
    assert [*unexecuted(replace(SEEN, unexecuted=lines(10), wrong=wrong))] == []
    assert [*unexecuted(None)] == []


def test_lines_that_further_programs_execute_are_executed() -> None:
    first, further = (replace(SEEN, unexecuted=lines(*its)) for its in ((10, 11, 20), (11, 20)))
    assert first.with_further(further).unexecuted == lines(11, 20)


def test_the_configuration_is_told_in_which_alone_the_change_is_compiled() -> None:
    its = judgement(operation(counted=counted()), whole=replace(SEEN, config="debug"))
    shown = render(its).replace("\n" + " " * 11, " ")
    assert "all of mm/ in the configuration debug it changes zap_pte_range(); programs" in shown
    assert "in the configuration" not in render(replace(its, whole=SEEN))


def test_behind_a_fault_nothing_is_looked_at() -> None:
    wrong = Wrong("mm", ("after `p0 munmap a`: frame 0x10 is lost",))
    its = judgement(whole=SEEN, wrong=wrong, reach=None)
    assert [*unexamined(its)] == [FURTHER, UNWEIGHED, NEVER]


def test_a_fault_that_is_found_behind_counts_leaves_the_time_of_these_open() -> None:
    wrong = Wrong("fork", ("fork-4k: patched: pte at 8",))
    rows = (operation(counted=counted()), operation("fork-64k"))
    assert [*unexamined(judgement(*rows, wrong=wrong))] == [
        FURTHER,
        "the time of 2 of 2 rows",
        NEVER,
    ]
    assert [*unexamined(judgement(rows[1], wrong=wrong))] == [FURTHER, UNWEIGHED, NEVER]


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
        (4, 2): "Memory was right in every program.",
        (4, 0): "No program executed a line that it changes.",
        (0, 0): "Memory was right in every program.",
    }
    for (blocks, entered), said in words.items():
        its = replace(SEEN, nr_blocks=blocks, nr_entered=entered)
        assert sentence(judgement(whole=its, reach=None)).startswith(f"{said} Undecided: no row")
    none = judgement(whole=replace(SEEN, functions=(), nr_programs=0), reach=None)
    assert "Undecided: it changes no function that is hosted, and" in sentence(none)


def test_a_judgement_says_that_more_rows_are_timed_in_more_minutes() -> None:
    known = operation("fork-4k", timed=timed(1.0, "equal", 1.01))
    said = sentence(judgement(known, operation("fork-64k", counted=counted())))
    assert "1 of 2 rows timed, and more of them with more --minutes: an effect of 2.0" in said
    assert "1 of 1 row timed: an effect of 2.0" in sentence(judgement(known))
