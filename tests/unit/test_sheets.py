# SPDX-License-Identifier: GPL-2.0-only
"""`--html` of `ream compare`, `ream history` and `ream replicate`: one page of what is printed."""

import html
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from history_world import machine, written
from ream.experiment import named, shown
from ream.folders import names
from ream.history.choose import Choice
from ream.history.compare import compare
from ream.history.comparison import in_short, interval, text
from ream.history.entry import Damaged, HistoryEntry, read
from ream.history.sheets import of_compared, of_history
from ream.published import load_tables, lookup
from ream.record.record import Record
from ream.replicate.outcome import JudgedRecord, Replication, replicate_all
from ream.replicate.render import render, verdict_words
from ream.replicate.sheet import of_tables
from ream.report.html.sheet import Sheet, colour_of
from ream.site.pages import sheet_page
from ream.width import WIDEST, as_wide_as
from shipped import RECORDS

Ream = Callable[..., Any]

HOSTILE = "<script>window.pwned = 1</script>"
FORK = "20261128T232136Z-fork-native-011d"
TABLE = "fork-pte-batch-v3"
PAIR = ("20261128T233046Z-migrate-native-6c37", "20261128T232546Z-migrate-native-a5d9")
COMPARE = ("compare", *(str(RECORDS / name) for name in PAIR))
REPLICATE = ("replicate", TABLE, "--record", str(RECORDS / FORK))
HISTORY = ("history",)


def page_of(sheet: Sheet) -> str:
    return sheet_page(sheet, command="ream compare <a> b --html")


def words_of(page: str) -> str:
    """What a reader sees of a page, with single blanks."""
    main = page.partition("<main>")[2].partition("<script>\n")[0]
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", main)).split())


def replicated(*tables: str) -> tuple[Replication, ...]:
    source = JudgedRecord.of(Record.load(FORK, RECORDS))
    known = load_tables()
    return replicate_all(
        [lookup(known, table) for table in tables],
        [source],
        [named(name) for name in names()],
        source.machine,
        absent={},
        failed={},
    )


def entry_of(name: str) -> HistoryEntry:
    found = read(RECORDS / name)
    assert found is not None
    assert found.entry is not None
    return found.entry


def test_a_comparison_has_each_interval_of_its_text_and_begins_with_what_was_found() -> None:
    found = compare([Record.load(name, RECORDS) for name in PAIR])
    seen = words_of(page_of(of_compared(found)))
    assert seen.startswith(in_short(found))
    with as_wide_as(WIDEST):
        printed = text(found)
    for line in found.lines:
        assert line.pooled is not None
        cells = [*(interval(one.estimate) for one in line.runs), interval(line.pooled)]
        assert " ".join((line.row, shown(line.variant), *cells)) in seen
        assert all(cell in printed for cell in cells)


def test_runs_that_differ_are_marked_and_unlike_machines_are_named(tmp_path: Path) -> None:
    slow = {"published": 0.9, "ream": 0.9}
    records = [
        written(tmp_path, 1),
        written(tmp_path, 2, truth=slow, receipt={"machine": machine(id="other")}),
    ]
    found = compare(records)
    page = page_of(of_compared(found))
    marked = sum(bool(line.differ) for line in found.lines)
    assert marked > 0
    assert page.count('class="words bad"') + page.count('class="bad"') == marked
    assert "<dt>differs</dt>" in page


def test_a_second_copy_of_the_same_code_has_the_colour_of_nothing(tmp_path: Path) -> None:
    truth = {"before-again": 1.2, "published": 0.6}
    records = [written(tmp_path, number, truth=truth, sd=0.001) for number in (1, 2)]
    lines = page_of(of_compared(compare(records))).split("<tr>")
    copies = [line for line in lines if "before-again" in line]
    assert len(copies) == 2
    assert all('class="undecided">1.2' in line and "slower" not in line for line in copies)
    assert any('class="faster">0.6' in line for line in lines)


@pytest.mark.parametrize(
    ("low", "high", "colour"),
    [
        (0.8, 0.9, "faster"),
        (1.1, 1.2, "slower"),
        (0.9, 1.1, "undecided"),
        (None, None, "undecided"),
    ],
)
def test_a_ratio_has_the_colour_of_its_interval(
    low: float | None, high: float | None, colour: str
) -> None:
    assert colour_of(low, high) == colour


def test_a_history_lists_runs_and_what_is_to_be_done_about_others() -> None:
    entry = entry_of(FORK)
    sheet = of_history(
        [entry], [Damaged(name="broken", fault="no run.json")], [("cut", "`ream run`")], Choice()
    )
    seen = words_of(page_of(sheet))
    assert seen.startswith("1 run of 1 experiment; 1 not finished; 1 damaged record.")
    assert f"{FORK} fork native {len(entry.rows)} " in seen
    for part in ("cut `ream run`", "broken no run.json"):
        assert part in seen


def test_replicated_tables_have_the_lines_and_verdicts_that_are_printed() -> None:
    its = replicated(TABLE, "deferred-init-skylake")
    page = page_of(of_tables(its))
    seen = words_of(page)
    assert seen.startswith("Of 2 published tables: ")
    with as_wide_as(WIDEST):
        printed = " ".join(render(its, rows=True).split())
    assert f"{its[0].word}: " in printed
    for one in its:
        assert verdict_words(one) in seen
        assert one.table.title in seen
    for line in its[0].lines:
        assert line.ratio is not None
        ratio = f"{line.ratio.ratio:.3f}"
        assert ratio in seen
        assert ratio in printed
    assert 'class="agrees">agrees<' in page


def test_a_hostile_name_is_text_on_each_page(tmp_path: Path) -> None:
    records = [written(tmp_path, number, rows=(HOSTILE,)) for number in (1, 2)]
    [its] = replicated(TABLE)
    entry = entry_of(FORK).model_copy(update={"fault": HOSTILE})
    sheets = [
        of_compared(compare(records)),
        of_history([entry], [], [], Choice()),
        of_tables([replace(its, table=its.table.model_copy(update={"title": HOSTILE}))]),
    ]
    for sheet in sheets:
        page = page_of(sheet)
        assert HOSTILE not in page
        assert html.escape(HOSTILE) in page
        assert "<code>ream compare &lt;a&gt; b --html</code>" in page
        assert not re.search(r'(?:src|href)="|url\(|@import', page)


@pytest.mark.parametrize("words", [COMPARE, HISTORY, REPLICATE], ids=lambda words: words[0])
def test_a_page_is_named_after_its_command_and_replaced_only_by_force(
    ream: Ream, tmp_path: Path, words: tuple[str, ...]
) -> None:
    code = ream(*words).code
    said = ream(*words, "--html")
    made = tmp_path / f"{words[0]}.html"
    assert (said.code, said.out) == (code, f"{made.name}\n")
    assert f"<code>ream {words[0]} " in made.read_text()
    made.write_text("mine")
    said = ream(*words, "--html")
    assert said.code == 2
    assert "--force replaces it" in said.err
    assert made.read_text() == "mine"
    assert ream(*words, "--html", "--force").code == code
    assert made.read_text() != "mine"
    assert ream(*words, "--html", "-").out.startswith("<!DOCTYPE html>")


@pytest.mark.parametrize(
    ("words", "fault"),
    [
        ((*COMPARE, "--html", "--json"), "ask for one of them"),
        ((*REPLICATE, "--html", "--json"), "ask for one of them"),
        ((*HISTORY, "--html", "--pooled"), "--html lists runs"),
        ((*REPLICATE, "--force"), "--force is about the file of --html"),
        ((*COMPARE, "--force"), "--force is about the file of --html"),
        ((*HISTORY, "--force"), "--force is about the file of --html"),
        ((*HISTORY, "last", "--html"), "'last': history takes no RUN"),
        ((*COMPARE, "--html", "out.txt"), "--html out.txt: FILE must end in .html"),
        ((*REPLICATE, "--html", "out.txt"), "--html out.txt: FILE must end in .html"),
        ((*HISTORY, "--html", "out"), "--html out: FILE must end in .html"),
        ((*COMPARE, "--html", "/nonexistent/a.html"), "/nonexistent is no directory"),
    ],
)
def test_what_makes_no_page_is_told(ream: Ream, words: tuple[str, ...], fault: str) -> None:
    said = ream(*words)
    assert said.code == 2
    assert fault in said.err


def test_a_file_that_is_there_is_told_before_anything_is_measured(
    ream: Ream, tmp_path: Path
) -> None:
    (tmp_path / "replicate.html").write_text("mine")
    said = ream("replicate", TABLE, "--stage", "native", "--html")
    assert said.code == 2
    assert "--force replaces it" in said.err
    assert not (tmp_path / "data").exists()
