# SPDX-License-Identifier: GPL-2.0-only
"""Plans cells from a user's request: one for each row and each of its repetitions."""

import fnmatch
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from ream import __version__
from ream.errors import BadUsage
from ream.experiment import BEFORE, IMPLIED, Experiment, Row, Stage, given
from ream.experiment.shape import row_hint
from ream.fleet.cell import SCHEMA, Cell, SeriesWanted, TreeWanted, wanted
from ream.paths import EXPERIMENTS
from ream.session.benchmark import benchmark_id
from ream.session.request import GuestOptions
from ream.variants import choose_variants

MOST_CELLS = 10_000
"""The most cells in a plan; all experiments together have about 300 rows."""


@dataclass(frozen=True)
class Wish:
    """The request for a plan."""

    experiments: tuple[Experiment, ...]
    """The experiments as their files define them."""
    stage: Stage | None = None
    """None is each experiment's default stage."""
    rows: tuple[str, ...] = ()
    """Names of rows; empty means all rows of the stage."""
    settings: tuple[str, ...] = ()
    """FIELD=VALUE settings for these rows."""
    launches: int | None = None
    rounds: int | None = None
    seed: int = 0
    repeat: int = 1
    machines: int = 1
    """The number of machines that are to measure each cell."""
    tree: TreeWanted | None = None
    """None is Debian's source, whichever version a host has."""
    series: tuple[Path, ...] = ()
    series_version: int | None = None
    """The version to choose from these series."""
    threads: int | None = None
    guest: GuestOptions | None = None


def plan_cells(wish: Wish) -> tuple[Cell, ...]:
    """Every cell once, in the order of experiments, rows and repetitions.

    Repetitions have different seeds, so that each draws another layout. Raises BadUsage for a row
    that no experiment has, a value or number out of range, or a series that cannot be read.
    """
    unknown = set(wish.rows)
    cells: list[Cell] = []
    for whole in wish.experiments:
        stage = wish.stage or whole.stage
        asked = whole.at(stage)
        if wish.rows:
            there = [row.name for row in asked.rows]
            names = [name for name in wish.rows if fnmatch.filter(there, name)]
            unknown -= set(names)
            if not names:
                continue
            asked = asked.only(names)
        else:
            asked = asked.unasked()
        asked = given(asked, wish.settings)
        asked = asked.resized(launches=wish.launches, rounds=wish.rounds)
        cells += _cells(_checked(asked), stage, wish)
    if unknown:
        known = ", ".join(experiment.name for experiment in wish.experiments)
        rows = [row for one in wish.experiments for row in one.rows]
        there = [
            row.name
            for one in wish.experiments
            for row in one.rows
            if row.stage == (wish.stage or one.stage)
        ]
        others = [row for row in rows if row.name not in there]
        named = ", ".join(name + row_hint(name, there, others) for name in sorted(unknown))
        raise BadUsage(f"no row {named} in {known}; `ream list` names them")
    if len(cells) > MOST_CELLS:
        raise BadUsage(f"{len(cells)} cells; a plan has at most {MOST_CELLS}")
    # An experiment that is named twice is the same work.
    return tuple({cell.id: cell for cell in cells}.values())


def _checked(asked: Experiment) -> Experiment:
    """The experiment; raises BadUsage if it is outside the checkout, so that others lack it."""
    if asked.folder.parent != EXPERIMENTS:
        raise BadUsage(f"{asked.folder}: a plan is for any checkout, and this is in none of them")
    return asked


def _cells(asked: Experiment, stage: Stage, wish: Wish) -> Iterator[Cell]:
    tree = None if wish.tree is None or wish.tree.path is None else Path(wish.tree.path)
    variants = choose_variants(
        asked, user_series=wish.series, version=wish.series_version, repository=tree
    )
    series = {one.name: wanted(one, _folders(asked, one.name), asked.folder) for one in variants}
    benchmark = benchmark_id(asked, stage)
    for row in asked.rows:
        for repeat in range(wish.repeat):
            yield _cell(asked, row, stage, wish, benchmark=benchmark, series=series, repeat=repeat)


def _folders(asked: Experiment, name: str) -> tuple[str, ...] | None:
    """The folders of the series of an experiment's own variant; None for the user's."""
    if name in IMPLIED:
        return asked.variants.get(BEFORE, ())
    return asked.variants.get(name)


def _cell(
    asked: Experiment,
    row: Row,
    stage: Stage,
    wish: Wish,
    *,
    benchmark: str,
    series: Mapping[str, tuple[SeriesWanted, ...]],
    repeat: int,
) -> Cell:
    return Cell(
        schema=SCHEMA,
        ream=__version__,
        benchmark=benchmark,
        experiment=asked.name,
        question=asked.question,
        stage=stage,
        # What a row leaves to its stage must stay unsaid: some rows refuse to be told.
        row=row.model_dump(mode="json", exclude_unset=True),
        params=row.params(),
        variants=series,
        tree=None if stage == "live" else wish.tree or TreeWanted(),
        launches=asked.launches,
        seed=wish.seed + repeat,
        threads=wish.threads if stage == "native" else None,
        guest=wish.guest if stage == "vm" else None,
        repeat=repeat,
        machines=wish.machines,
    )
