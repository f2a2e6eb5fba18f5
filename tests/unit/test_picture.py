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
from ream.report.html.curves import curves


@pytest.fixture(scope="module")
def record() -> Record:
    """The record of fork that docs/upgrades.md has a picture of."""
    path = CHECKOUT / "docs" / "records" / "20261124T133525Z-fork-native-9549"
    return Record.load(str(path), path.parent)


def texts(svg: str) -> set[str]:
    return {one.text or "" for one in ET.fromstring(svg).iter() if one.text}  # noqa: S314, our own


def test_every_curve_of_a_page_is_in_the_picture_with_its_title_and_variants(
    record: Record,
) -> None:
    drawn = texts(picture.render(record))
    rows = Summary.from_object(record.run, source="record").rows
    its = list(curves(rows))
    assert len(its) >= 3
    assert {one.title for one in its} <= drawn
    assert {str(point["name"]) for one in its for point in one.data["points"]} <= drawn


def test_a_picture_needs_no_style_sheet(record: Record) -> None:
    svg = picture.render(record)
    assert "var(--" not in svg
    assert picture.colours()["ink"] in svg


def test_the_colours_are_those_of_a_page_in_daylight() -> None:
    light = re.search(r"--ink: (#\w+);", picture.STYLE.read_text())
    assert light is not None
    assert picture.colours()["ink"] == light[1]


def test_a_record_without_curves_is_named(record: Record, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(picture, "curves", lambda _: iter(()))
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
