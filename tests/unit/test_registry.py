# SPDX-License-Identifier: GPL-2.0-only
"""Experiments are folders: found by listing, read with their own code, wherever they are."""

import re
import shutil
from pathlib import Path

import pytest

from ream.errors import BadUsage
from ream.experiment import load, named
from ream.experiment.registry import folders_of, revived, sources_of
from ream.folders import TABLES, file_of, names
from ream.grid import expanded
from ream.paths import EXPERIMENTS
from ream.published import load_tables
from ream.report.ran import summary_id
from ream.session.benchmark import benchmark_id


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    return copied(tmp_path / "somewhere")


def copied(place: Path, *, of: str = "null", name: str = "my-own") -> Path:
    folder = place / name.replace("-", "_")
    shutil.copytree(EXPERIMENTS / of, folder, ignore=shutil.ignore_patterns("__pycache__"))
    for file in (folder / "experiment.toml", folder / "rows.py"):
        file.write_text(re.sub(rf'"{of}"', f'"{name}"', file.read_text()))
    return folder


def test_all_that_are_listed_can_be_read_and_are_called_as_their_folder() -> None:
    assert {"fork", "null", "zone-device"} <= set(names())
    for name in names():
        assert named(name).name == name
        assert named(name).folder == file_of(name).parent


def test_one_of_another_place_has_the_code_that_is_there(mine: Path) -> None:
    whole = load(mine)
    assert (whole.name, whole.folder) == ("my-own", mine)
    again = revived(whole.model_dump(mode="json"), str(mine))
    assert [row.name for row in again.rows] == [row.name for row in whole.rows]


def test_a_folder_that_is_gone_is_one_line(mine: Path, tmp_path: Path) -> None:
    fields = load(mine).model_dump(mode="json")
    with pytest.raises(BadUsage, match="gone: the code of an experiment is not there"):
        revived(fields, str(tmp_path / "gone"))


def test_a_class_of_another_folder_is_refused(mine: Path) -> None:
    (mine / "rows.py").write_text("from experiments.null.rows import Null as EXPERIMENT\n")
    with pytest.raises(BadUsage, match="EXPERIMENT is of experiments.null.rows: make a class"):
        load(mine)


def test_the_same_folder_is_the_same_benchmark_wherever_it_lies(tmp_path: Path) -> None:
    places = (copied(tmp_path / place) for place in ("aaa", "zzz"))
    assert len({benchmark_id(load(place), "native") for place in places}) == 1


def test_a_copy_of_one_of_ours_has_tables_of_its_own(tmp_path: Path) -> None:
    ours = file_of("fork").with_name(TABLES)
    (tmp_path / TABLES).write_text(ours.read_text().replace("2024", "2025"))
    ids = [table.id for table in load_tables(tmp_path / TABLES)]
    assert len(ids) == len(set(ids))
    assert ids != [table.id for table in load_tables()]


def test_rows_of_ones_own_and_their_tables_are_part_of_what_makes_a_summary(mine: Path) -> None:
    was = summary_id(mine)
    assert summary_id(file_of("fork").parent) == summary_id()
    assert was != summary_id()
    (mine / TABLES).write_text("# nothing yet\n")
    summary_id.cache_clear()
    assert summary_id(mine) != was


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"name": "a-{s}", "s": ["x"], "t": "{s:kib}"}, r"^f: rows.0: not a size"),
        ({"name": "a-{s:upper}"}, r"^f: rows.0.name: \{s\}: no field of this row"),
    ],
)
def test_a_grid_that_cannot_be_is_told_with_its_place(row: object, said: str) -> None:
    with pytest.raises(BadUsage, match=said):
        list(expanded([row], source="f"))


def test_values_of_an_axis_stand_in_each_of_their_forms() -> None:
    row = {
        "name": "{s:upper}-{n}",
        "s": ["4k", "2m"],
        "n": [1],
        "params": {"kib": "{s:kib}", "folio": "{s:upper}", "n": "{n}"},
        "said": "{s} of {nothing:upper}",
    }
    points = [filled for _, filled in expanded([row], source="f")]
    assert points[1] == {
        "name": "2M-1",
        "s": "2m",
        "n": 1,
        "params": {"kib": 2048, "folio": "2M", "n": 1},
        "said": "2m of {nothing:upper}",
    }
    assert points[0]["params"]["kib"] == 4  # type: ignore[index]


def test_the_tests_of_an_experiment_are_no_part_of_what_judges_it(mine: Path) -> None:
    sources, leans = sources_of(mine), folders_of(mine)
    (mine / "tests").mkdir(exist_ok=True)
    (mine / "tests" / "test_rows.py").write_text("from experiments.fork import rows\n")
    assert (sources_of(mine), folders_of(mine)) == (sources, leans)
