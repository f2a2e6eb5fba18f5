# SPDX-License-Identifier: GPL-2.0-only
"""Each program does the same hosted and on the running kernel, but for what a rule explains."""

import json
import os
from collections import Counter
from pathlib import Path

import pytest

from ream.errors import CannotRunHere
from ream.experiment import named
from ream.program.compare import differences, facts_of
from ream.program.elsewhere import run_live, running_kernel
from ream.program.live import beside_live, why_not_live
from ream.program.ran import Rig, numbered
from ream.program.text import parse
from ream.progress import Reporter
from ream.record.record import SAMPLES
from ream.report.table import render
from ream.session.request import Request
from ream.session.run import run_session
from ream.variants import choose_variants

pytestmark = [pytest.mark.native, pytest.mark.xdist_group("computer")]

SKIPPED = {"memory", "cpus", "swap"}
"""What user space does not perform of these programs."""


def test_a_program_does_the_same_on_the_running_kernel(rig: Rig, text: str, tmp_path: Path) -> None:
    program = numbered(parse(text))
    ran = rig.run(program, shows=True)
    assert not ran.is_wrong, ran.alarms
    live = run_live(program, tmp_path)
    found = differences(program, ran.said, live, running_kernel())
    assert not [str(one) for one in found if not one.why]
    performed = {line for line, what in facts_of(live) if what == "returned"}
    assert performed >= {step.line for step in program if step.verb not in SKIPPED}


LARGE = """\
memory 1G
mthp 64K
p0 mmap a 512 anon private rw thp={thp}
p0 write a
measure p0 madvise a dontneed
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root sees folios")
def test_folios_that_are_not_as_declared_are_noticed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program = parse(LARGE.format(thp="never"))
    with beside_live({"row": program}, tmp_path, print) as beside:
        with pytest.raises(CannotRunHere, match="folios of 64 KiB.* 512 in 4 KiB"):
            beside.programs["row"].check()
        assert beside.ready("row") is None
        assert "this launch is without the running kernel" in capsys.readouterr().out


def test_what_user_space_cannot_perform_is_not_timed_there(tmp_path: Path) -> None:
    program = parse("memory 256M\np0 mmap a 1 anon private rw\nmeasure reclaim 1\n")
    assert why_not_live(program) == "user space cannot perform reclaim"
    with (
        pytest.raises(CannotRunHere, match="row: user space cannot"),
        beside_live({"row": program}, tmp_path, print),
    ):
        pass


def test_hosted_and_running_kernels_are_timed_in_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cache: Path
) -> None:
    """Small sizes keep the test short; the ratios of the times are not checked."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    experiment = named("mm").at("native")
    its = [row for row in experiment.rows if row.name.startswith("beside-fork-4K-")]
    rows = [row.model_copy(update={"pages": 64 << at, "rounds": 2}) for at, row in enumerate(its)]
    experiment = experiment.model_copy(update={"rows": tuple(rows), "launches": 2})
    request = Request(
        experiment=experiment,
        stage="native",
        variants=choose_variants(experiment),
        tree=None,
        threads=1,
        seed=1,
        runs=tmp_path / "runs",
        cache=cache,
        command="ream run mm --beside-live",
        beside_live=True,
    )
    outcome = run_session(request, Reporter())
    small, large = outcome.summary.rows
    assert small.live is not None
    assert small.live.over["before"] is not None
    assert small.live.slope is None
    assert large.live is not None
    assert large.live.slope is not None
    assert large.live.slope.smaller == small.row
    assert large.live.slope.hosted.keys() == large.live.over.keys() == {"before"}
    lines = [json.loads(line) for line in (outcome.path / SAMPLES).read_text().splitlines()]
    roles = Counter(line["role"] for line in lines)
    assert roles == {"variant": 16, "live": 8}
    assert "beside the running kernel" in render(outcome.summary)
