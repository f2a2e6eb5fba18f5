# SPDX-License-Identifier: GPL-2.0-only
"""`ream check`, as a CI job types it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from history_world import RUN_ID, written

Ream = Callable[..., Any]
SLOWER = {"published": 0.6, "ream": 0.5}


def name(number: int) -> str:
    return RUN_ID.format(number=number)


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """A baseline, the same again, and a slower one."""
    place = tmp_path / "data/ream/runs"
    for number, truth in ((1, None), (2, None), (3, SLOWER)):
        written(place, number, **({} if truth is None else {"truth": truth}))
    return place


def test_the_exit_status_says_what_became_of_it(ream: Ream, runs: Path) -> None:
    written(runs, 4, sd=0.5)
    for number, code, word in ((2, 0, "ok"), (3, 1, "FAIL"), (4, 4, "INCONCLUSIVE")):
        found = ream("check", name(number), "--baseline", name(1), "--max-regression", "5%")
        assert found.code == code
        assert f"\n{word}: " in found.out
        assert bool(found.err) == (code != 0)
    assert ream("check", "--baseline", "native-0001", "--max-regression", "50%", name(3)).code == 0
    assert ream("check", "--baseline", "native-0001", "--variant", "published", name(3)).code == 0


@pytest.mark.usefixtures("runs")
def test_formats_for_ci_are_written_beside_the_answer(ream: Ream, tmp_path: Path) -> None:
    for _ in range(2):  # the second time in place of the first's
        found = ream("check", name(3), "--baseline", name(1), "--ktap=a.ktap", "--junit=b.xml")
        assert found.code == 1
    ktap = (tmp_path / "a.ktap").read_text().splitlines()
    assert ktap[:2] == ["KTAP version 1", "1..4"]
    assert "not ok 2 fsdax.ream" in ktap
    assert "ok 1 fsdax.published" in ktap
    root = ET.parse(tmp_path / "b.xml").getroot()  # noqa: S314, our own
    assert root.get("failures") == "2"


@pytest.mark.usefixtures("runs")
def test_one_format_may_have_standard_output(ream: Ream) -> None:
    found = ream("check", name(2), "--baseline", name(1), "--ktap", "-")
    assert found.code == 0
    assert found.out.startswith("KTAP version 1\n1..4\n")
    value = json.loads(ream("check", name(3), "--baseline", name(1), "--json").out)
    assert value["outcome"] == "fail"
    assert [one["outcome"] for one in value["cases"]] == ["pass", "fail"] * 2
    assert value["cases"][1]["change"]["ratio"] == pytest.approx(1.25, rel=0.02)
    found = ream("check", name(2), "--baseline", name(1), "--ktap", "-", "--json")
    assert (found.code, found.out) == (2, "")


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("--baseline", "nothing"),
        ("--baseline", "last"),
        ("--baseline", "native-0001", "--max-regression", "0.05"),
        ("--baseline", "native-0001", "--ktap", "/proc/none/a"),
    ],
)
@pytest.mark.usefixtures("runs")
def test_what_cannot_be_meant_is_exit_2(ream: Ream, words: tuple[str, ...]) -> None:
    found = ream("check", "last", *words)
    assert (found.code, found.out) == (2, "")
    assert "Traceback" not in found.err
