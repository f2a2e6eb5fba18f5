# SPDX-License-Identifier: GPL-2.0-only
"""The page of a record: the same bytes each time, nothing run that a record says, every plot read
out. What a browser makes of it is in tests/browser."""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ream.cli.page import html_joined
from ream.cli.report import write_report
from ream.errors import BadUsage, ReamError
from ream.measure.sample import Sample
from ream.record.record import Record
from ream.report.contract import Ratio, RowResult, Summary
from ream.report.html import noise, page, points
from ream.report.html.page import HERE, render
from shipped import EACH, RECORDS, unpacked

Ream = Callable[..., Any]

SMALL = "20261121T195445Z-compact-live-0d61"
HOSTILE = "</script><script>alert(1)</script><!-- <img src=x onerror='alert(2)'> {{ 7*7 }} \" '"
VOID = {"meta", "br", "img", "link", "hr", "input"}


def load(name: str | Path) -> Record:
    return Record.load(str(RECORDS / name), RECORDS)


def rows_of(name: str) -> Sequence[RowResult]:
    return Summary.from_object(load(name).run, source=name).rows


class Outline(HTMLParser):
    """What a page is made of, and whether its tags close in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.faults: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()
        self.faults += [f"<{tag}> is not closed" for tag in self._open]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if not self._open or self._open.pop() != tag:
            self.faults.append(f"</{tag}> closes another")


@pytest.fixture
def copied(tmp_path: Path) -> Callable[..., Path]:
    """A copy of a record whose run.json is changed."""

    def copy(record: str, change: Callable[[Any], None] = lambda _: None) -> Path:
        return unpacked(RECORDS / record, tmp_path / "copied" / record, change)

    return copy


# --- Every record --------------------------------------------------------------------------


@pytest.mark.parametrize("path", EACH)
def test_every_record_has_a_page_that_is_whole_and_needs_no_network(path: Path) -> None:
    text = render(load(path))
    outline = Outline(text)
    assert outline.faults == []
    tags = [tag for tag, _ in outline.tags]
    assert tags.count("h1") == 1
    assert not {"img", "link", "iframe", "object"} & set(tags)
    assert not any("src" in attrs for _, attrs in outline.tags)
    ids = [attrs["id"] for _, attrs in outline.tags if "id" in attrs]
    assert len(set(ids)) == len(ids)
    links = [attrs.get("href") or "" for tag, attrs in outline.tags if tag == "a"]
    assert {link.removeprefix("#") for link in links} <= set(ids)
    plots = json.loads(text.split('id="plots">')[1].split("</script>")[0])["plots"]
    assert plots.keys() == {
        attrs["id"] for _, attrs in outline.tags if attrs.get("class") == "plot"
    }


def test_the_same_record_gives_the_same_bytes_in_another_place(ream: Ream) -> None:
    words = ("report", "--html", "-", str(RECORDS / SMALL))
    assert ream(*words, TZ="Asia/Tokyo", LC_ALL="C").out == render(load(SMALL))


@pytest.mark.parametrize(
    ("floor", "band"),
    [
        (Ratio(ratio=1.045, low=1.008, high=1.083), (1 / 1.083, 1.083)),
        (Ratio(ratio=0.8, low=0.8, high=0.8), (0.8, 1.25)),
        (Ratio(ratio=0.95, low=0.8, high=1.1), (0.8, 1.25)),
    ],
)
def test_a_band_is_as_wide_to_both_sides_as_what_effects_are_judged_by(
    floor: Ratio, band: tuple[float, float]
) -> None:
    row = rows_of(SMALL)[0]
    assert points.band_of(row.model_copy(update={"floor": floor})) == pytest.approx(band)
    assert points.band_of(row) is None


@pytest.mark.parametrize("path", EACH)
def test_no_effect_of_a_record_lies_inside_of_its_band(path: Path) -> None:
    for row in rows_of(path.name):
        band = points.band_of(row)
        for point in points.ratio_points(row):
            if band is not None and point["effect"] in ("better", "worse"):
                ratio = point["ratio"]
                assert isinstance(ratio, float)
                assert not band[0] < ratio < band[1]


def test_the_verdict_table_says_why_where_one_short_sentence_does(
    copied: Callable[..., Path],
) -> None:
    long = "for a reason of many words " * 5

    def lengthen(run: Any) -> None:
        run["rows"][0]["published_table"]["reason"] = long

    verdict = re.compile(r'<td class="verdict"[^>]*>(.*?)</td>', re.DOTALL)
    text = render(load("20261122T181226Z-zone-device-native-007a"))
    first, *_ = verdict.findall(text)
    assert re.search(r'<td class="verdict" title="the ends of the interval are [^"]+"', text)
    assert re.search(r"<li>[^<]*: the ends of the interval are [^<]+\.</li>", text)
    assert first.split() == ["<span", 'class="inconclusive">INCONCLUSIVE</span>']
    text = render(load(copied("20261122T181226Z-zone-device-native-007a", lengthen)))
    assert '<summary class="inconclusive">INCONCLUSIVE</summary>' in verdict.findall(text)[0]
    assert f"<code>zone-device-v4</code> INCONCLUSIVE: {long}" in verdict.findall(text)[0]
    text = render(load("20261122T201633Z-deferred-init-native-cf3c"))
    said = [" ".join(re.sub("<[^>]*>", " ", cell).split()) for cell in verdict.findall(text)]
    # Those of 1 thread claim nothing, and are controls.
    assert said[0] == "AS PUBLISHED 6 OF 6"
    assert 'title="the published ratio is within' in text
    assert said[1].startswith("AGREES 3 OF 6 deferred-init-skylake")  # each has its own reason
    assert not [one for one in said if "12 threads" in one]  # with those of the same reason:
    assert re.search(r'<p class="note">Not run: \S+ to \S+ \(\d+ rows\): \d+ to \d+ threads', text)


# --- What a record says ----------------------------------------------------------------------


def test_no_text_of_a_record_is_a_tag(copied: Callable[..., Path]) -> None:
    def poison(run: Any) -> None:
        run.update(question=HOSTILE, run=HOSTILE)
        run["receipt"].update(machine=HOSTILE, command=HOSTILE, tree=HOSTILE, warnings=[HOSTILE])
        for row in run["rows"]:
            row.update(row=HOSTILE, title=HOSTILE, notes=[HOSTILE], remarks=[HOSTILE])
            row["variants"] = {HOSTILE: row["variants"]["running"]}

    place = copied(SMALL, poison)
    receipt = json.loads((place / "receipt.json").read_text())
    receipt[HOSTILE] = {HOSTILE: HOSTILE}
    receipt["kernel"] = {"variants": {HOSTILE: [{"name": HOSTILE, "patches": [HOSTILE, {}]}]}}
    (place / "receipt.json").write_text(json.dumps(receipt))
    text = render(load(place))
    clean = [tag for tag, _ in Outline(render(load(SMALL))).tags]
    outline = Outline(text)
    assert outline.faults == []
    assert [tag for tag, _ in outline.tags].count("script") == clean.count("script")
    assert not any(name.startswith("on") for _, attrs in outline.tags for name in attrs)
    assert "alert(1)</script>" not in text
    assert "49" not in text.split("<h1>")[1].split("</header>")[0]


UNSEEN = "\x1b[31m\u202egpj.exe\u2066\x9b\u200f\x00"


def test_no_text_of_a_record_moves_a_cursor_or_turns_what_follows(
    copied: Callable[..., Path],
) -> None:
    def change(run: Any) -> None:
        run["question"] += f" caf\u00e9 {UNSEEN}"
        run["receipt"]["patches"] += UNSEEN
        for row in run["rows"]:
            row["row"] += UNSEEN
            row["variants"][f"mine{UNSEEN}"] = row["variants"].pop("ream")

    place = copied("20261122T181226Z-zone-device-native-007a", change)
    receipt = json.loads((place / "receipt.json").read_text())
    for series in receipt["kernel"]["variants"].values():
        for patch in (patch for one in series for patch in one["patches"]):
            patch["subject"] += UNSEEN
    (place / "receipt.json").write_text(json.dumps(receipt))
    text = render(Record.load(str(place), place.parent))
    seen = r"?[31m\u202egpj.exe\u2066\x9b\u200f?"
    assert f"caf\u00e9 {seen}" in text
    assert f"{seen}</li>" in text
    shown = text.partition('<script type="module">')[0]  # then comes the library
    assert not [one for one in shown if not one.isprintable() and one not in "\n\t"]
    data = json.loads(shown.rpartition('id="plots">')[2].partition("</script>")[0])
    assert not [one for one in _texts(data["plots"]) if not one.isprintable()]


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    for inner in (
        value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    ):
        yield from _texts(inner)


@given(st.dictionaries(st.text(), st.text()))
def test_data_in_a_script_can_neither_end_it_nor_change(value: dict[str, str]) -> None:
    text = page._in_script(value)
    assert not set("<>&\u2028\u2029") & set(text)
    assert json.loads(text) == value


@pytest.mark.parametrize(
    "kernel", [None, [], {"variants": 3}, {"variants": {"ream": [None, 1]}}, {"tree_key": 7}]
)
def test_a_receipt_of_another_form_still_makes_a_page(
    copied: Callable[..., Path], kernel: object
) -> None:
    place = copied(SMALL)
    receipt = json.loads((place / "receipt.json").read_text())
    receipt.update(kernel=kernel, benchmark=1)
    (place / "receipt.json").write_text(json.dumps(receipt))
    assert "Reproduce" in render(load(place))


def test_a_cut_sample_is_an_error_that_names_its_line(copied: Callable[..., Path]) -> None:
    place = copied(SMALL)
    with (place / "samples.jsonl").open("a") as samples:
        samples.write('{"row": "busy')
    with pytest.raises(ReamError, match=r"samples.jsonl:11: not a sample"):
        render(load(place))


@pytest.mark.parametrize("name", ["20261121T070239Z-zone-device-soak-ab9c", "nothing"])
def test_what_is_no_run_is_refused(ream: Ream, name: str) -> None:
    said = ream("report", str(RECORDS / name), "--html")
    assert said.code == 2
    assert name in said.err
    assert "Traceback" not in said.err


# --- Points ----------------------------------------------------------------------------------


def _samples(nr_rounds: int) -> list[Sample]:
    return [
        Sample(
            row="row", launch=0, round=number, role="variant", subject=subject, threads=1,
            time_ns=1000 + number, nr_bytes=64, verified=True,
        )
        for number in range(nr_rounds)
        for subject in ("before", "ream")
    ]  # fmt: skip


@settings(max_examples=20)
@given(st.integers(0, 5000))
def test_too_many_samples_are_thinned_by_whole_rounds_and_keep_their_places(count: int) -> None:
    samples = _samples(count)
    kept, every = points.thinned(samples)
    assert len(kept) <= points.MOST_SAMPLES + 2
    assert (every == 1) == (len(samples) <= points.MOST_SAMPLES)
    assert all(samples[n - 1] is one for n, one in kept)
    assert {one.round for _, one in kept} == set(range(0, count, every))


DAMAGED = ("", "[]", "{", '{"t_s": null}', '{"t_s": NaN}', '{"t_s": true}', "[" * 100_000)


def test_damaged_moments_are_counted_and_what_is_missing_is_left_out() -> None:
    huge = '{"t_s": 1' + "0" * 400 + "}"
    good = ['{"t_s": 0}', '{"t_s": 2, "load": 1, "steal_pct": "x", "others_pct": 1e400}']
    found, faulty = noise.moments([*good, *DAMAGED, huge])
    assert faulty == len(DAMAGED) + 1
    plots = list(noise.plots(found))
    assert [chart.id for chart, _ in plots] == ["noise-load"]
    assert [dict(one) for one in plots[0][0].data["points"]] == [
        {"t_s": 2.0, "value": 1.0, "name": "load"}
    ]


# --- Style -----------------------------------------------------------------------------------


def _palettes() -> Iterator[tuple[str, dict[str, str]]]:
    """The colours of a light screen, a dark one, and paper."""
    style = (HERE / "style.css").read_text()
    blocks = re.findall(r":root \{([^}]*)\}", style)
    light = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", blocks[0]))
    for name, block in zip(("light", "dark", "paper"), blocks, strict=True):
        yield name, light | dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", block))


def _light(colour: str) -> float:
    """Relative luminance, as WCAG 2.2 defines it."""
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = (p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _contrast(one: str, other: str) -> float:
    low, high = sorted((_light(one), _light(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize(("name", "colours"), list(_palettes()))
def test_words_and_marks_stand_out_from_their_ground(name: str, colours: dict[str, str]) -> None:
    for ground in ("ground", "raised"):
        for ink in ("ink", "muted", "link", "wrong"):
            assert _contrast(colours[ink], colours[ground]) >= 4.5, (name, ink, ground)
    for other in ("ground", "ink"):  # an interval lies on its bar
        assert _contrast(colours["bar"], colours[other]) >= 3
    for number in range(6):
        mark = colours[f"series-{number}"]
        assert _contrast(mark, colours["ground"]) >= 4.5, (name, number)
        assert _contrast(mark, colours["band"]) >= 3, (name, number, "on the band")


# --- The command -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "joined"),
    [
        (["--html"], ["--html="]),
        (["last", "--html"], ["last", "--html="]),
        (["--html", "last"], ["--html=", "last"]),
        (["--html", "a.html", "last"], ["--html=a.html", "last"]),
        (["last", "--html", "-"], ["last", "--html=-"]),
        (["--html", "-o", "runs"], ["--html=", "-o", "runs"]),
        (["--html=any"], ["--html=any"]),
        (["--", "--html"], ["--", "--html"]),
    ],
)
def test_html_takes_a_file_only_if_the_next_word_is_one(
    words: list[str], joined: list[str]
) -> None:
    assert list(html_joined(words)) == joined


@pytest.mark.parametrize("words", [("--html", "out.txt", SMALL), (SMALL, "--html", "out.txt")])
def test_a_file_that_is_no_page_is_named_with_what_it_must_end_in(
    ream, words: tuple[str, ...]
) -> None:
    said = ream("report", *words)
    assert (said.code, said.out) == (2, "")
    assert "--html out.txt: FILE must end in .html; --html=out.txt writes any name" in said.err


def test_a_page_is_named_after_its_run_and_replaced_only_by_force(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    made = tmp_path / f"{SMALL}.html"
    write_report(load(SMALL), "", force=False)
    assert capsys.readouterr().out == f"{made.name}\n"
    made.write_text("mine")
    with pytest.raises(BadUsage, match="--force replaces it"):
        write_report(load(SMALL), "", force=False)
    assert made.read_text() == "mine"
    write_report(load(SMALL), "", force=True)
    assert made.read_text() == render(load(SMALL))
    assert list(tmp_path.iterdir()) == [made]


@pytest.mark.parametrize("more", [("--json",), ("--letter",)])
def test_one_report_at_a_time(ream: Ream, more: tuple[str, ...]) -> None:
    said = ream("report", str(RECORDS / SMALL), "--html", *more)
    assert said.code == 2
    assert "ask for one" in said.err


def test_a_dry_run_names_the_file_and_writes_none(ream: Ream, tmp_path: Path) -> None:
    said = ream("report", str(RECORDS / SMALL), "--html", "--dry-run")
    assert (said.code, said.out) == (0, f"would write {SMALL}.html\n")
    assert not list(tmp_path.glob("*.html"))


def test_a_place_that_cannot_be_written_is_named(ream: Ream) -> None:
    said = ream("report", str(RECORDS / SMALL), "--html", "/nonexistent/page.html")
    assert said.code == 2
    assert "/nonexistent/page.html: cannot be written: /nonexistent is no directory" in said.err
