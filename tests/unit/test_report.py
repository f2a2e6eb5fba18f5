# SPDX-License-Identifier: GPL-2.0-only
"""The reports as a reader sees them, and that no input breaks their widths or their letters."""

import copy
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ream.errors import BadUsage
from ream.experiment import named
from ream.measure.sample import Sample
from ream.published import load_tables
from ream.record.receipt import Receipt
from ream.report import letter, table
from ream.report.contract import Summary
from summary_world import summarise

Simulated = Callable[..., list[Sample]]

FILLS = {("movnti-8", 1): 2.7, ("rep-stosq", 1): 6.0, ("movnti-8", 2): 1.4}
ROWS = ("fsdax-100GB", "private-64GB", "small-256MB-dirty", "fsdax-first")


def times(before: float, published: float, ream: float) -> Mapping[str, float]:
    """Nanoseconds per struct page."""
    return {"before": before, "before-again": before, "published": published, "ream": ream}


@pytest.fixture(scope="module")
def summary(simulated: Simulated, receipt: Receipt) -> Summary:
    """A gain, a row without a verdict, a loss beside no difference, and a row that did not run."""
    shipped = named("zone-device")
    rounds = {"small-256MB": 12, "small-256MB-dirty": 12, "fsdax-first": 1}
    rows = tuple(r.model_copy(update={"rounds": rounds.get(r.name, 2)}) for r in shipped.rows)
    experiment = shipped.model_copy(update={"rows": rows})
    fsdax, private, small, first = (experiment.only([name]).rows[0] for name in ROWS)
    cpus = {"ream": 2}
    samples = [
        *simulated(fsdax, times(6.7, 3.0, 1.5), FILLS, threads=cpus),
        *simulated(private, times(6.5, 2.9, 1.5), FILLS, threads=cpus, seed=2),
        *simulated(small, times(2.1, 5.2, 2.1), {("rep-stosq", 1): 2.05}, seed=3),
    ]
    return summarise(
        experiment,
        (fsdax, private, small, first),
        samples,
        load_tables(),
        receipt,
        run="20261121T021500Z-zone-device-native-ab12",
        stage="native",
        skipped={"fsdax-first": "the device needs 256 MiB of memory for its map, 100 MiB is free"},
    )


def fits(text: str, width: int) -> bool:
    """Plain ASCII in as many columns, with nothing hanging on the right."""
    return text.isascii() and all(
        len(line) <= width and line == line.rstrip() and (line.isprintable() or not line)
        for line in text.splitlines()
    )


def test_a_name_too_long_for_its_column_is_not_cut(summary: Summary) -> None:
    value = summary.to_object()
    name = "a-series-whose-author-likes-long-and-telling-names"
    row = value["rows"][0]
    row["variants"][name] = row["variants"].pop("ream")
    renamed = Summary.from_object(value, source="run.json")
    for text, width in ((table.render(renamed), 100), (letter.render(renamed), 74)):
        assert name in text
        assert fits(text, width)


def test_unknown_is_a_question_mark_never_0(summary: Summary) -> None:
    value = summary.to_object()
    value["rows"] = value["rows"][:1]
    row = value["rows"][0]
    row["limit"], row["limits"], row["floor"] = None, [], None
    for result in row["variants"].values():
        for name in (
            *("low", "high", "of_limit", "per_page", "ns_per_page", "gb_per_s"),
            *("threads", "effect"),
        ):
            result[name] = None
    text = table.render(Summary.from_object(value, source="run.json"))
    (line,) = (line for line in text.splitlines() if line.startswith("  technique"))
    assert line.split() == ["technique", "78.83", "0.439", "[?", "..", "?]", *"????"]
    assert "floor     none" in text


def paths(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to every value inside of a JSON object."""
    if at:
        yield at
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from paths(inner, (*at, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from paths(inner, (*at, index))


junk = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=200),
    st.lists(st.text()),
    st.dictionaries(st.text(), st.integers()),
)


@settings(max_examples=200)
@given(data=st.data())
def test_no_damage_to_a_record_breaks_a_report(summary: Summary, data: st.DataObject) -> None:
    value = copy.deepcopy(summary.to_object())
    *way, last = data.draw(st.sampled_from(list(paths(value))))
    inner = value
    for step in way:
        inner = inner[step]
    if data.draw(st.booleans()):
        inner[last] = data.draw(junk)
    else:
        del inner[last]
    try:
        damaged = Summary.from_object(value, source="run.json")
    except BadUsage:
        return
    assert fits(table.render(damaged), 100)
    assert letter.render(damaged).isascii()
