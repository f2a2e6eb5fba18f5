# SPDX-License-Identifier: GPL-2.0-only
"""The first sample of a launch, and of a row, is as warm as those that come after it."""

import json
import statistics
from collections import defaultdict
from collections.abc import Iterator
from itertools import count, islice
from pathlib import Path

import pytest

TRIES = 3
LAUNCHES = 6
FACTOR = 1.4
"""How much slower a median of first samples may be; where nothing warmed up it was 2 to 3.

It may be as fast as it likes: what comes after it may have to share the CPUs.
"""

LONG = pytest.mark.vm
ROWS = (
    ("fork", "fork-64k"),
    ("zone-device", "small-256MB"),
    pytest.param("deferred-init", "1g-2-threads", marks=LONG),
    pytest.param("migrate", "64k-serial", marks=LONG),
    pytest.param("compact", "batch-32", marks=LONG),
)


@pytest.mark.vm
@pytest.mark.parametrize(("experiment", "row"), ROWS)
def test_first_samples_are_like_the_others(ream, tmp_path, experiment: str, row: str) -> None:
    # Another program may have the CPUs just then; what is not warm is so every time.
    found = [*islice(firsts(ream, tmp_path, experiment, row), TRIES)]
    assert any(statistics.median(first) < FACTOR for first in found), found


def firsts(ream, tmp_path: Path, experiment: str, row: str) -> Iterator[list[float]]:
    """Yield for one run after another each launch's first sample over its variant's median."""
    for number in count():
        runs = tmp_path / str(number)
        counts = ("--launches", str(LAUNCHES), "--rounds", "3", "--output", str(runs))
        ran = ream("run", experiment, "--stage", "native", "--row", row, *counts, "--json")
        assert ran.code in (0, 6), ran.err
        (samples,) = runs.glob("*/samples.jsonl")
        launches = defaultdict(list)
        for line in samples.read_text().splitlines():
            said = json.loads(line)
            if said["role"] == "variant":
                launches[said["launch"]].append((said["subject"], said["time_ns"]))
        times = defaultdict(list)
        for name, time_ns in (sample for launch in launches.values() for sample in launch):
            times[name].append(time_ns)
        usual = {name: statistics.median(its) for name, its in times.items()}
        first = [launch[0][1] / usual[launch[0][0]] for launch in launches.values()]
        assert len(first) == LAUNCHES
        yield first
        if statistics.median(first) < FACTOR:
            return
