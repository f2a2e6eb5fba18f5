# SPDX-License-Identifier: GPL-2.0-only
"""The oracle of zone-contiguous on its own: what a hole is, and where one matters."""

from pathlib import Path

import numpy as np
import pytest

from experiments.zone_contiguous.hosted import HOSTED, nr_contiguous, zone_of
from experiments.zone_contiguous.zones import ALL, PRESENT, Section, Zone, edges, map_of, mixture
from ream.errors import BadUsage
from ream.experiment import load
from ream.experiment.section import PAGES_PER_SECTION

BLOCK = 512
FACTS = {
    "sizeof.page": 64,
    "page.flags": 0,
    "ZONE_MOVABLE": 3,
    "ZONE_NORMAL": 2,
    "ZONES_PGSHIFT": 61,
    "NODES_PGSHIFT": 51,
}
HERE = Path(__file__).parents[1]

WHOLE = {
    "whole",
    "empty",
    "early",
    "one-page",
    "one-block",
    "begins-in-a-block",
    "ends-in-a-block",
    "foreign-before",
    "foreign-behind",
    "absent-behind",
}


def test_an_edge_has_a_hole_unless_it_is_named_as_whole() -> None:
    found = dict(edges(BLOCK))
    assert {name for name, zone in found.items() if zone.is_contiguous()} == WHOLE
    assert len(found) > len(WHOLE) + 20


@pytest.mark.parametrize("page", [0, 511, 512, PAGES_PER_SECTION - 1])
def test_a_page_of_another_zone_is_a_hole_wherever_it_is(page: int) -> None:
    assert not Zone(0, PAGES_PER_SECTION, (Section(),), frozenset({page})).is_contiguous()
    assert Zone(0, page, (Section(),), frozenset({page})).is_contiguous()


def test_a_subsection_that_is_missing_is_one_only_within_the_span() -> None:
    section = Section(subsections=ALL & ~(1 << 3))
    assert Zone(0, 3 * 512, (section,)).is_contiguous()
    assert not Zone(0, 3 * 512 + 1, (section,)).is_contiguous()
    assert Zone(4 * 512, 512, (section,)).is_contiguous()
    assert not Section(PRESENT).has(0)


def test_mixtures_repeat_and_are_of_both_kinds() -> None:
    found = [mixture(seed, BLOCK) for seed in range(200)]
    assert found == [mixture(seed, BLOCK) for seed in range(200)]
    nr_whole = sum(zone.is_contiguous() for zone in found)
    assert 40 < nr_whole < 160
    assert all(zone.skip + zone.nr_pages <= len(zone.sections) << 15 for zone in found)


def test_descriptors_have_their_zone_and_nothing_else() -> None:
    zone = Zone(0, 8, (Section(),), frozenset({5}))
    words = map_of(zone, FACTS, 8).view(np.uint64).reshape(8, 8)
    assert [int(word) >> 61 for word in words[:, 0]] == [3, 3, 3, 3, 3, 2, 3, 3]
    assert not words[:, 1:].any()


def test_rows_say_how_often_the_zone_is_found_contiguous() -> None:
    rows = {row.name: row for row in load(HERE).rows}
    said = {name: nr_contiguous(row, zone_of(row)) for name, row in rows.items()}
    assert said["set-1GiB"] == 1
    assert said["set-16GiB-absent"] == said["set-16GiB-offline"] == said["set-16GiB-foreign"] == 0
    assert said["plug-32GiB"] == 0
    assert said["unplug-32GiB"] == 32 * 8 - 1


def test_a_row_is_halved_by_whole_blocks() -> None:
    rows = {row.name: row for row in load(HERE).rows}
    half = HOSTED.sized.halved(rows["plug-32GiB"])
    assert half is not None
    assert half.zone_bytes == 16 << 30


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ('operation = "plug"', "block_bytes is of plug and unplug"),
        ('block_bytes = "128MiB"', "block_bytes is of plug and unplug"),
        ('operation = "plug"\nblock_bytes = "384MiB"', "whole number of blocks"),
        ('operation = "plug"\nblock_bytes = "128MiB"\nhole = "absent"', "has no hole here"),
    ],
)
def test_rows_that_cannot_be_are_refused(tmp_path: Path, fields: str, said: str) -> None:
    text = (HERE / "experiment.toml").read_text()
    head = text[: text.index("[[rows]]")]
    folder = tmp_path / "zone_contiguous"
    folder.mkdir()
    for path in HERE.glob("*.py"):
        (folder / path.name).write_text(path.read_text())
    row = f'[[rows]]\nname = "one"\nrounds = 1\nzone_bytes = "1GiB"\n{fields}\n'
    (folder / "experiment.toml").write_text(head + row)
    with pytest.raises(BadUsage, match=said):
        load(folder)
