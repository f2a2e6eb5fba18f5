# SPDX-License-Identifier: GPL-2.0-only
"""The pages of docs/questions are made of their counts, and what they claim follows from these."""

import subprocess
from fnmatch import fnmatch
from pathlib import Path

import pytest

import questions
from ream.experiment import BEFORE
from ream.report.contract import Counted

ALL = questions.questions()
MOST_LINES = 40
each_question = pytest.mark.parametrize("its", ALL, ids=lambda its: its.name)


@each_question
def test_a_page_is_made_of_its_counts(its: questions.Question) -> None:
    text = its.page.read_text(encoding="utf-8")
    assert questions.filled(its) == text, "PYTHONPATH=lab:tests:. python tests/questions.py"


@each_question
def test_a_page_is_short_and_its_index_names_it(its: questions.Question) -> None:
    lines = its.page.read_text(encoding="utf-8").splitlines()
    assert its.name == questions.UPGRADE or len(lines) <= MOST_LINES
    index = (questions.FOLDER / "README.md").read_text(encoding="utf-8")
    assert f"({its.page.name})" in index


@each_question
def test_counts_are_of_the_programs_and_patches_that_there_are(its: questions.Question) -> None:
    for row in its.rows:
        for spec in its.cells(row).values():
            found = questions.counts()[row][spec]["of"]
            assert found == questions.identity(row, spec), f"count {row} of {spec} again"


@each_question
def test_undoing_the_cause_restores_the_time_within_the_floor(its: questions.Question) -> None:
    for one in its.restored:
        if one.quantity == questions.TIME:
            before, after, undone = (
                questions.time_of(one.row, its.variants[name])
                for name in (one.before, one.after, one.variant)
            )
            assert not questions.overlap(before, after)
            assert questions.overlap(before, undone)


@each_question
def test_undoing_the_cause_restores_the_count(its: questions.Question) -> None:
    for one in its.restored:
        if one.quantity == questions.TIME:
            continue
        before, after, undone = (
            questions.within(one.row, its.variants[name], one.function)
            if one.function
            else questions.each(one.row, its.variants[name], one.quantity)
            for name in (one.before, one.after, one.variant)
        )
        assert abs(after - before) >= questions.MUCH * before
        gone = (after - undone) / (after - before) * 100
        assert one.pct <= gone <= 200 - one.pct, f"{one.row}: {gone:.1f} %"


def test_two_thirds_of_each_change_have_causes_or_the_page_names_the_row() -> None:
    (its,) = (one for one in ALL if one.name == questions.UPGRADE)
    much = [row for row in its.rows if questions.changes_much(row)]
    assert much
    left = {row: abs(questions.unexplained(its, row) / questions.change(row)) for row in much}
    said = next(line for line in questions.upgraded(its) if line.startswith("Less than"))
    for row in its.rows:
        assert (f"`{row}`" in said) == (left.get(row, 0) > questions.MOST_LEFT)


def test_no_function_is_of_two_causes_of_a_row() -> None:
    (its,) = (one for one in ALL if one.name == questions.UPGRADE)
    for row in filter(questions.changes_much, its.rows):
        kept = questions.counts()[row]
        for name in {*kept["6.12"]["functions"], *kept[its.variants["undone"]]["functions"]}:
            causes = [
                one.key
                for one in its.causes
                if one.concerns(row) and any(fnmatch(name, pattern) for pattern in one.functions)
            ]
            assert len(causes) <= 1, f"{row}: {name}() is of {causes}"


def test_a_cause_that_is_undone_takes_instructions_away() -> None:
    (its,) = (one for one in ALL if one.name == questions.UPGRADE)
    for cause in its.causes:
        much = filter(questions.changes_much, its.rows)
        added = [questions.added(its, row, cause) for row in much]
        assert max(map(abs, added)) > 0, cause.key
        assert not cause.variant or max(added) >= -min(added), cause.key


def test_the_picture_of_an_upgrade_is_made_of_its_counts() -> None:
    (its,) = (one for one in ALL if one.name == questions.UPGRADE)
    assert questions.pictured(its) == questions.PICTURE.read_text(encoding="utf-8")


def test_every_patch_that_undoes_a_cause_is_that_of_a_variant() -> None:
    used = {
        path for its in ALL for spec in its.variants.values() for path in questions.files_of(spec)
    }
    assert {*questions.UNDO.iterdir()} <= used


def test_nothing_is_kept_that_no_page_needs() -> None:
    needed = {(row, spec) for its in ALL for row in its.rows for spec in its.cells(row).values()}
    assert {(row, spec) for row, its in questions.counts().items() for spec in its} == needed


def counted(alone: int, inclusive: int) -> Counted:
    """A row of 4 pages with one function of interest."""
    return Counted(
        per="page",
        number=4,
        repeats=True,
        variants={BEFORE: {"instructions": 40, "lines_read": 8}},
        stand_ins={BEFORE: {}},
        functions={BEFORE: {"walk": {"instructions": alone}, "other": {"instructions": 1}}},
        inclusive={BEFORE: {"walk": {"instructions": inclusive}}},
    )


def test_a_function_is_kept_alone_and_with_what_it_calls() -> None:
    its = questions.Question("one", ("row",), {"base": "6.12"}, functions=("walk", "absent"))
    assert questions.needed(its, counted(12, 30), BEFORE) == {
        "number": 4,
        "all": {"instructions": 40, "lines_read": 8, "locked": 0},
        "functions": {"walk": [12, 30]},
    }


def test_a_changed_patch_is_another_identity(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(questions, "UNDO", tmp_path)
    (tmp_path / "a.patch").write_text("one\n")
    before = questions.identity("mprotect-512", "7.3+a")
    (tmp_path / "a.patch").write_text("two\n")
    assert questions.identity("mprotect-512", "7.3+a") != before
    assert questions.identity("mprotect-512", "7.3") != before


def test_the_program_of_the_snapshot_page_measures_both_kinds_of_pages(tmp_path: Path) -> None:
    program = tmp_path / "snapshot"
    source = questions.FOLDER / "snapshot.c"
    subprocess.run(["cc", "-O2", "-Wall", "-Wextra", "-Werror", "-o", program, source], check=True)
    said = subprocess.run([program, "2", "1"], check=False, capture_output=True, text=True)
    lines = [line.split() for line in said.stdout.splitlines()]
    no_huge_page = said.returncode == 3 and "not all of it is in huge pages" in said.stderr
    assert no_huge_page or not said.returncode
    assert [line[0] for line in lines] == (["4k"] if no_huge_page else ["4k", "2m"])
    for _, *words in lines:
        its = dict(zip(words[::2], map(float, words[1::2]), strict=True))
        assert its["pages"] == 512
        assert 0 < its["median_us"] <= its["p99_us"] <= its["longest_us"]
