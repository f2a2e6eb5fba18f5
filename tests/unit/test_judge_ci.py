# SPDX-License-Identifier: GPL-2.0-only
"""A judgement for the services of CI: findings as data, Markdown, JUnit XML."""

import json
import re
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from judge_world import counted, judgement, operation, reach, timed
from ream.judge import html, junit, markdown
from ream.judge.judgement import Examined, Finding, Judgement, Wrong
from ream.judge.markdown import _code, _fence

HOW = "a program of 3 steps shows it:"
STEPS = ("p0 mmap a 4 anon private rw", "p0 write a 0 4", "p0 mremap a 8")
SAID = "after `p0 mremap a 8`: the entry at 0x40 is 0x25 (present, user, frame 0x0), not as its VMA"
FOUND = Finding(
    rule="the entry at is not as its VMA",
    message=SAID,
    step="p0 mremap a 8",
    program="\n".join(STEPS),
    file="mm/mremap.c",
    line=310,
)
PROGRAM = Wrong("all", (SAID, HOW, *(f"  {step}" for step in STEPS)), (2, "change 2"), FOUND)
ORACLE = Wrong("fork", ("fork-64k: patched: pte at 8: 1 instead of 0", "rip copy_pte()"), None)
BEGAN_WRONG = ((1, "change 1", "pte at 8"),)
OTHER = "after `p0 fork p1`, rss is other than without it (corpus)"

SLOWER = operation("fork-64k", timed=timed(1.1, "slower"), counted=counted(instructions=0.2))
SAME = operation("fork-2m", counted=counted())
OPEN = operation("fork-1m", timed=timed(1.0, "undecided"))
LITTLE = operation("fork-64k", counted=counted(instructions=0.004))
LESS = operation(counted=counted(instructions=-0.08))


def of_program(wrong: Wrong = PROGRAM) -> Judgement:
    whole = Examined(("move_ptes",), 3, 2, 7, 210, wrong=wrong)
    return judgement(wrong=wrong, whole=whole, reach=None)


# --- Findings --------------------------------------------------------------------------


def test_a_program_that_is_wrong_is_a_finding_with_its_rule_and_step() -> None:
    assert [*of_program().findings] == [FOUND]


def test_what_an_oracle_finds_has_the_experiment_as_its_rule() -> None:
    its = judgement(wrong=ORACLE, wrong_steps=BEGAN_WRONG)
    assert [(one.rule, one.message) for one in its.findings] == [
        ("fork", ORACLE.lines[0]),
        ("beginning", "up to patch 1, 'change 1', it is wrong: pte at 8"),
    ]


def test_another_state_is_a_finding_that_is_not_wrong() -> None:
    its = judgement(SAME, whole=Examined(("f",), 1, 1, 1, 30, differs=OTHER))
    assert its.exit_code == 0
    assert [*its.findings] == [Finding("differs", OTHER)]
    (case,) = ET.fromstring(junit.render(its)).iterfind(".//*[@classname='ream.judge.finding']")  # noqa: S314
    assert case[0].get("message") == OTHER


def test_another_program_that_shows_the_same_leaves_a_finding_s_id() -> None:
    one = Finding("a rule", "after `p0 fork p1`: 3 pages", file="mm/memory.c", line=7)
    assert one.id == replace(one, message="at the end: 4 pages", program="x", line=9).id
    assert one.id != replace(one, file="mm/mremap.c").id


def test_findings_are_data() -> None:
    (told,) = json.loads(json.dumps(of_program().to_object()))["findings"]
    keys = {"id", "config", "file", "line", "rule", "message", "program", "step"}
    assert told.keys() == keys
    assert re.fullmatch("[0-9a-f]{12}", told["id"])
    assert (told["file"], told["line"]) == ("mm/mremap.c", 310)
    assert judgement(SAME).to_object()["findings"] == []


# --- Markdown --------------------------------------------------------------------------


def headings(its: Judgement) -> list[str]:
    return [one for one in markdown.render(its).splitlines() if one.startswith("#")]


def test_the_verdict_comes_first_and_then_what_is_wrong() -> None:
    text = markdown.render(of_program())
    assert text.startswith("## mine: wrong\n\nWRONG: after")
    assert "- Rule: the entry at is not as its VMA\n" in text
    assert "- Step: ` p0 mremap a 8 `\n" in text
    assert "```text\n" + "\n".join(STEPS) + "\n```\n" in text
    assert "- further faults, if there are any: the first one ended the judgement" in text
    assert "- its cost: nothing was counted or timed, since a fault ended the judgement" in text


def test_tables_have_every_row_and_say_what_was_not_timed() -> None:
    its = judgement(SLOWER, SAME, unhosted={"migrate": "it reaches x()"}, notes=("a note",))
    assert headings(its) == [
        "## mine: regression", "### Reach", "### Counts", "### Times", "### Not examined",
        "### Conditions",
    ]  # fmt: skip
    text = markdown.render(its)
    assert "| fork fork-64k | slower | time | +20.0 % | 0 for each page |  |\n" in text
    assert "| fork fork-64k | slower |  | 1.100 | 1.089 to 1.111 | 1.020 |\n" in text
    assert SLOWER.timed is not None
    known = replace(SLOWER, timed=replace(SLOWER.timed, before_ns=1240.0, per="page"))
    assert "| slower | 1.24 us for each page | 1.100 |" in markdown.render(judgement(known))
    assert "- the time of 1 of 2 rows\n" in text
    assert "- migrate: it reaches x()\n- " in text
    for table in text.split("### ")[2:4]:
        assert len({line.count("|") for line in table.splitlines() if "|" in line}) == 1


def test_the_place_of_a_finding_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    placed = Finding("differs", OTHER, file="mm/mremap.c", line=7)
    monkeypatch.setattr(Judgement, "findings", property(lambda _: iter([placed, placed])))
    assert "- ` mm/mremap.c:7 `: differs: after" in markdown.render(judgement(SAME))
    assert "- Nearest changed line: ` mm/mremap.c:7 `\n" in markdown.render(of_program())


def test_text_of_strangers_is_text() -> None:
    evil = "a\x1b[2J|<img src=x> [l](http://x) `c` **b** @you #1 $x$ &lt; _e_ page_range"
    text = markdown.render(replace(judgement(SAME), series=evil))
    (line,) = (one for one in text.splitlines() if "page_range" in one)
    said = (
        r"a?\[2J\|&lt;img src=x> \[l\](http://x) \`c\` \*\*b\*\* &#64;you \#1 \$x\$ &amp;lt; \_e\_"
    )
    assert line == f"## {said} page_range: nothing wrong, no regression"
    assert _code("a``b") == "``` a``b ```"
    assert _fence("```\nx") == "````text\n```\nx\n````"


def test_no_text_for_ci_has_a_path_of_this_machine() -> None:
    its = judgement(SAME, notes=(f"kept in {Path.home()}/mine/a.log",))
    assert "kept in a.log" in markdown.render(its)
    lost = replace(its, unhosted={"migrate": f"{Path.home()}/mine/b.log"})
    for text in (markdown.render(lost), junit.render(lost)):
        assert str(Path.home()) + "/" not in text


# --- JUnit -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("its", "code"),
    [
        (judgement(SAME), 0),
        (judgement(LITTLE, LESS), 0),
        (judgement(LITTLE, LESS, strict=True), 1),
        (judgement(SLOWER, SAME), 1),
        (judgement(unhosted={"fork": "it reaches x()"}), 3),
        (judgement(LESS, OPEN), 4),
        (judgement(reach=reach(nearest="fork")), 4),
        (of_program(), 5),
        (judgement(SAME, wrong=ORACLE), 5),
    ],
)
def test_a_case_fails_where_the_exit_status_does(its: Judgement, code: int) -> None:
    suite = ET.fromstring(junit.render(its)).find("testsuite")  # noqa: S314, our own
    assert suite is not None
    assert its.exit_code == code
    assert (suite.attrib["failures"] != "0") == (code in (1, 5))
    assert (suite.attrib["skipped"] != "0") or code in (0, 1, 5)
    types = {one.attrib["type"] for one in suite.iter("failure")}
    assert types == {1: {"regression"}, 5: {"wrong"}}.get(code, set())


def test_a_row_is_a_case_of_its_experiment() -> None:
    suite = ET.fromstring(junit.render(judgement(SLOWER)))  # noqa: S314, our own
    names = [(one.attrib["classname"], one.attrib["name"]) for one in suite.iter("testcase")]
    assert names == [("ream.judge.series", "judgement"), ("ream.judge.fork", "fork-64k")]


@pytest.mark.parametrize(("nr_entered", "nr_programs"), [(0, 7), (0, 0), (2, 7)])
def test_programs_that_executed_nothing_of_a_change_are_skipped(
    nr_entered: int, nr_programs: int
) -> None:
    whole = Examined(("f",), 3, nr_entered, nr_programs, 90)
    suite = ET.fromstring(junit.render(judgement(SAME, whole=whole)))  # noqa: S314, our own
    (its,) = (one for one in suite.iter("testcase") if one.attrib["name"] == "programs")
    assert (its.find("skipped") is None) == bool(nr_entered)


# --- The page --------------------------------------------------------------------------


def test_a_page_needs_no_rows() -> None:
    text = html.render(of_program())
    assert "2 of the 3 blocks of code in changed lines" in text
    assert "<dt>Reach</dt>" not in text
