# SPDX-License-Identifier: GPL-2.0-only
"""More variants than one program holds: several programs, of which each has its own `before`."""

import functools
import json
from collections import defaultdict
from pathlib import Path

import pytest

from ream.experiment import named
from ream.measure.plan import COMPARED_WITH, plan_programs
from ream.progress import Reporter
from ream.record.record import SAMPLES
from ream.session import native
from ream.session.request import Request
from ream.session.run import run_session
from ream.variants import choose_variants

PATCH = Path(__file__).parent / "patches" / "no-change.patch"


def test_variants_of_several_programs_are_measured_beside_their_own_before(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, cache: Path
) -> None:
    few = functools.partial(plan_programs, most=len(COMPARED_WITH) + 1)
    monkeypatch.setattr(native, "plan_programs", few)
    whole = named("zone-device").at("native")
    row = whole.rows[0].model_copy(update={"device_bytes": 256 << 20, "published": ()})
    experiment = whole.single(row).resized(launches=2, rounds=2)
    variants = choose_variants(experiment, user_series=[PATCH])
    assert len(variants) == len(COMPARED_WITH) + 2
    outcome = run_session(
        Request(
            experiment=experiment,
            stage="native",
            variants=variants,
            tree=None,
            threads=1,
            seed=1,
            runs=tmp_path / "runs",
            cache=cache,
            command="ream run zone-device --series no-change.patch",
            measure_anyway=True,
        ),
        Reporter(),
    )
    (found,) = outcome.summary.rows
    launches = {name: result.launches for name, result in found.variants.items()}
    assert launches == dict.fromkeys(COMPARED_WITH, 4) | {"ream": 2, "no-change": 2}
    for name, result in found.variants.items():
        assert result.verified
        assert name == "before" or None not in (result.ratio, result.low)
        assert (result.over_published is None) == (name != "ream")
    assert outcome.summary.receipt.launches == 2
    by_launch: dict[int, set[str]] = defaultdict(set)
    for text in (outcome.path / SAMPLES).read_text().splitlines():
        line = json.loads(text)
        if line["role"] == "variant":
            by_launch[line["launch"]].add(line["subject"])
    own = [its - set(COMPARED_WITH) for _, its in sorted(by_launch.items())]
    assert own == [{"ream"}, {"no-change"}] * 2
