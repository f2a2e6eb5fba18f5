# SPDX-License-Identifier: GPL-2.0-only
"""What the native stage asks of null: plans, images of the oracle's, and cases."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from ream.stage.hosted import Batch, Hosted, Planned, drawn
from ream.stage.memory import Sized
from ream.stage.native import Build
from ream.stage.runner_plan import Memory, Value, plan_file

from .rows import BITS_PER_LONG, NullRow

MOST_CASE_BITS = 1 << 16


FOLDER = Path(__file__).parent / "native"


def plan_of(rows: Sequence[NullRow], threads: int | None, build: Build, work: Path) -> Planned:
    """A line for each row, with the image of what memory holds afterwards."""
    del threads

    def words(memory: Memory) -> Iterator[Mapping[str, Value]]:
        for row in rows:
            image = memory.write(row.name, [expected(row.size, build.addresses["poison"])])
            yield {"name": row.name, "rounds": row.rounds, "bits": row.size, "image": image}

    return plan_file(FOLDER / "row.def", work, words)


def expected(nr_bits: int, poison: int) -> bytes:
    """Word n of the source is n: whole words, turned over, and what was behind them before."""
    words = ~np.arange(-(-nr_bits // BITS_PER_LONG), dtype=np.uint64)
    return words.tobytes() + poison.to_bytes(8, "little")


def cases(build: Build, work: Path, seeds: Iterable[int], *, edges: bool) -> Iterator[Batch]:
    sizes = [0, 8, 56, 64, 72, 4096] if edges else []
    sizes += (drawn(seed).randrange(MOST_CASE_BITS // 8) * 8 for seed in seeds)
    rows = [NullRow(name=f"case-{size}", size=size, rounds=1) for size in dict.fromkeys(sizes)]
    yield plan_of(rows, None, build, work), 0


def halved(row: NullRow) -> NullRow | None:
    half = row.size // 2 // 8 * 8
    return row.model_copy(update={"size": half}) if half else None


HOSTED: Hosted[NullRow] = Hosted(
    folder=FOLDER,
    plan_of=plan_of,
    sized=Sized(
        needed_bytes=lambda rows, _build: 3 * sum(row.size // 8 for row in rows),
        extent_bytes=lambda row: row.size // 8,
        halved=halved,
    ),
    cases=cases,
)
