# SPDX-License-Identifier: GPL-2.0-only
"""A series given by the user is compared with the tree that it was applied to, and nothing else.

In fork that tree has batching, which `before` has not; in zone-device it is `before`, and what is
faster still is `published`. A patch that changes nothing must read as nothing in both.
"""

import math
from pathlib import Path

import pytest

from ream.errors import BadUsage
from ream.experiment import Experiment, named
from ream.measure.plan import plan_programs
from ream.measure.sample import Sample
from ream.record.receipt import Receipt, SeriesEntry
from ream.report import letter, table
from ream.report.contract import Summary
from ream.variants import Variant, choose_variants
from summary_world import summarise

NOTHING = Path(__file__).parents[1] / "native" / "patches" / "no-change.patch"
MINE = "no-change"
LAUNCHES = 6
TREE = {
    "compact": "before",
    "deferred-init": "published",
    "fork": "base",
    "migrate": "before",
    "zone-device": "before",
}
"""By experiment, the variant that is the base as it is."""


def chosen(experiment: Experiment, *, per_patch: bool = False) -> tuple[Variant, ...]:
    return choose_variants(experiment, user_series=[NOTHING], per_patch=per_patch)


@pytest.mark.parametrize("name", TREE)
def test_it_is_compared_with_the_tree_it_stands_on_twice(name: str) -> None:
    variants = {one.name: one for one in chosen(named(name))}
    mine, tree = variants[MINE], variants[TREE[name]]
    assert mine.compared_with == tree.name
    assert tree.patches == ()
    assert variants[f"{tree.name}-again"].patches == ()
    assert {one.compared_with for one in variants.values()} == {None, tree.name}


def test_without_a_series_there_is_no_second_copy_of_the_base() -> None:
    fork = named("fork")
    assert "base-again" not in {one.name for one in choose_variants(fork)}


def test_a_series_is_not_called_what_second_copies_are(tmp_path: Path) -> None:
    copy = tmp_path / "base-again.patch"
    copy.write_bytes(NOTHING.read_bytes())
    with pytest.raises(BadUsage, match="base-again; names that end in -again are of second"):
        choose_variants(named("fork"), user_series=[copy])


def test_every_program_has_the_tree_twice() -> None:
    names = ["before", "before-again", "published", "base", "base-again", *"abcdef"]
    for launch in plan_programs(names, launches=2, seed=1, most=8):
        assert {"before", "before-again", "base", "base-again"} <= set(launch.link_order)
        assert len(launch.link_order) <= 8


def summary_of(name: str, levels: dict[str, float], receipt: Receipt) -> Summary:
    """Levels in logarithms; launches differ by a thousandth."""
    experiment = named(name).at("native")
    row = experiment.rows[0].model_copy(update={"published": (), "part_of": None})
    names = [one.name for one in chosen(experiment)]
    kernel = receipt.kernel.model_copy(
        update={
            "variants": {one: (SeriesEntry(name=one, id="a" * 64, patches=()),) for one in names},
            "compared_with": {MINE: TREE[name]},
        }
    )
    samples = [
        Sample(
            row=row.name,
            launch=launch,
            round=0,
            role="variant",
            subject=one,
            threads=1,
            time_ns=round(1e9 * math.exp(levels[one.removesuffix("-again")] + swing)),
            nr_bytes=row.written_bytes,
            verified=True,
        )
        for at, one in enumerate(names)
        for launch in range(LAUNCHES)
        for swing in [0.001 * ((launch + at) % 3 - 1)]
    ]
    return summarise(
        experiment,
        [row],
        samples,
        (),
        receipt.model_copy(update={"kernel": kernel}),
        run="20261121T021500Z-x-native-ab12",
        stage="native",
        variants=names,
    )


FORK = {"before": 0.0, "published": -0.3, "base": -0.1, "ream": -0.7}


def test_a_patch_that_changes_nothing_is_equal_though_the_base_is_faster(
    receipt: Receipt,
) -> None:
    summary = summary_of("fork", {**FORK, MINE: -0.1}, receipt)
    (row,) = summary.rows
    mine = row.variants[MINE]
    assert mine.compared_with == "base"
    assert mine.effect == "equal"
    assert mine.within is not None
    assert 1 < mine.within < 1.01
    assert mine.ratio == pytest.approx(1, abs=0.002)
    assert mine.over_published is None
    assert row.variants["base"].effect == "faster"
    assert set(row.floors) == {"base"}
    assert "  against base, the tree that it stands on:\n" in table.render(summary)
    assert "equal within 0." in table.render(summary)
    assert "patched/base for what was put on base" in " ".join(letter.render(summary).split())
    assert f"against base: {MINE} equal within 0." in letter.render(summary)


def test_a_patch_that_slows_the_base_is_slower_though_before_is_slower_still(
    receipt: Receipt,
) -> None:
    (row,) = summary_of("fork", {**FORK, MINE: -0.1 + math.log(1.066)}, receipt).rows
    assert row.variants[MINE].effect == "slower"
    assert row.variants[MINE].ratio == pytest.approx(1.066, abs=0.003)


def test_a_patch_that_changes_nothing_is_not_slower_than_published(receipt: Receipt) -> None:
    levels = {"before": 0.0, "published": -0.9, "ream": -1.5, MINE: 0.0}
    summary = summary_of("zone-device", levels, receipt)
    (row,) = summary.rows
    assert row.variants[MINE].effect == "equal"
    assert row.variants[MINE].over_published is None
    assert not [note for note in row.notes if MINE in note]
