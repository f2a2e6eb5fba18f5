# SPDX-License-Identifier: GPL-2.0-only
"""The picture of a record's curves."""

import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from ream.errors import BadUsage
from ream.paths import CHECKOUT
from ream.record.record import Record
from ream.report.contract import Summary
from ream.report.html import picture
from ream.report.html.curves import curves, kernel_before


@pytest.fixture(scope="module")
def record() -> Record:
    """The record of fork that docs/upgrades.md has a picture of."""
    path = CHECKOUT / "docs" / "records" / "20261124T133525Z-fork-native-9549"
    return Record.load(str(path), path.parent)


def axes(svg: str) -> list[list[str]]:
    """The numbers that can be read on the vertical axis of each plot."""
    found = []
    for one in ET.fromstring(svg).iter():  # noqa: S314, our own
        if "role-axis-label" in (one.get("class") or ""):
            labels = [its for its in one if its.get("text-anchor") == "end"]  # left of the axis
            found.append([str(its.text) for its in labels if its.get("opacity") != "0"])
    return list(filter(None, found))


def texts(svg: str) -> set[str]:
    return {one.text or "" for one in ET.fromstring(svg).iter() if one.text}  # noqa: S314, our own


def test_each_plot_of_an_upgrade_is_of_ratios_to_the_first_kernel_with_numbers_to_read(
    record: Record,
) -> None:
    rows = Summary.from_object(record.run, source="record").rows
    its = list(curves(rows, kernel_before(record.receipt)))
    for one in its:
        assert one.kind == "sweep"
        assert {point["name"] for point in one.data["points"]} == {"6.12", "7.2", "7.3"}
        assert {point["y"] for point in one.data["points"] if point["name"] == "6.12"} == {1}
        assert "before" not in one.title
    svg = picture.render(record)
    assert "before" not in texts(svg)
    for axis in axes(svg):
        assert len(axis) >= 3
        assert "1" in axis
    assert len(axes(svg)) == len(its)


@pytest.mark.parametrize(
    ("name", "run"),
    [
        ("upgrades-fork.svg", "20261124T133525Z-fork-native-9549"),
        ("upgrades-migrate.svg", "20261124T133342Z-migrate-native-a28b"),
    ],
)
def test_the_pictures_of_the_documents_are_of_their_records(name: str, run: str) -> None:
    docs = CHECKOUT / "docs"
    its = Record.load(str(docs / "records" / run), docs / "records")
    assert texts((docs / name).read_text()) == texts(picture.render(its))


def test_a_record_of_one_kernel_has_times_and_calls_it_before() -> None:
    path = CHECKOUT / "docs" / "records" / "20261127T152939Z-migrate-native-3e05"
    record = Record.load(str(path), path.parent)
    assert kernel_before(record.receipt) is None
    svg = picture.render(record)
    assert "before" in texts(svg)
    assert all(len(axis) >= 3 for axis in axes(svg))
    assert "dashes: the hardware's limit" in texts(svg)


def test_a_picture_needs_no_style_sheet(record: Record) -> None:
    svg = picture.render(record)
    assert "var(--" not in svg
    assert picture.colours()["ink"] in svg


def test_the_colours_are_those_of_a_page_in_daylight() -> None:
    light = re.search(r"--ink: (#\w+);", picture.STYLE.read_text())
    assert light is not None
    assert picture.colours()["ink"] == light[1]


def test_a_record_without_curves_is_named(record: Record, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(picture, "curves", lambda *_: iter(()))
    with pytest.raises(BadUsage, match=f"{record.path.name}: no rows that differ in one number"):
        picture.render(record)


def test_a_picture_is_written_to_a_file_that_is_not_there_yet(
    ream, record: Record, tmp_path: Path
) -> None:
    words = ("report", str(record.path), "--svg", str(tmp_path / "fork.svg"))
    assert ream(*words).code == 0
    assert (tmp_path / "fork.svg").read_text().startswith("<svg")
    assert ream(*words).code == 2
    assert ream(*words, "--force").code == 0
    assert ream(*words, "--json").code == 2
