# SPDX-License-Identifier: GPL-2.0-only
"""A boot of the fork experiment without a guest: what it is told, and what is made of its words."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from experiments.fork import boot as vm_fork
from experiments.fork.boot import ForkPlan, ForkSample, run_fork_boot
from experiments.fork.guests import ForkBoot
from experiments.fork.programs import FORK_FOLIOS
from fake_boots import assert_says_again
from ream.errors import CannotRunHere, ReamError, VerificationFailed
from ream.paths import CHECKOUT
from ream.stage import vm
from ream.stage.qemu import GuestMachine
from ream.stage.vm import BootableKernel, Start

FAKE = CHECKOUT / "tests" / "console" / "fake_qemu.py"
KERNEL = BootableKernel(Path("bzImage"), Path("fork.cpio"))
MACHINE = GuestMachine("tcg", icount=True)
PLAN = ForkPlan(folio_kib=(16, 64), mapping_bytes=64 << 20, rounds=1, ops=("fork", "munmap"))

Run = Callable[..., list[ForkSample]]


def sample(kib: int, op: str, **other: Any) -> dict[str, Any]:
    fields = {"folio_kib": kib, "round": 0, "op": op, "time_ns": 7, "nr_ptes": 16384}
    return {"fork": {**fields, "verified": True, **other}}


def ends(kib: int, code: int) -> dict[str, Any]:
    return {"workload": {"folio_kib": kib, "exit": code}}


GOOD = (
    {"fork": {"hello": {"version": 1}}},
    sample(16, "fork", digest="00ff"),
    sample(16, "munmap"),
    {"fork": {"end": {"ok": True}}},
    ends(16, 0),
    sample(64, "fork", digest="0f0f"),
    sample(64, "munmap"),
    ends(64, 0),
)


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """A function that boots a guest which says these messages and powers off."""

    def boot(*messages: dict[str, Any]) -> list[ForkSample]:
        def plan(*_: object, work: Path, **__: object) -> tuple[str, ...]:
            said = (*messages, {"end": {"ok": True}})
            steps = [word for one in said for word in ("tell", json.dumps(one))]
            return (sys.executable, str(FAKE), str(work / "port"), str(work / "qmp"), *steps)

        monkeypatch.setattr(vm, "boot_command", plan)
        return list(run_fork_boot(Start(MACHINE, KERNEL, tmp_path / "console.log"), PLAN))

    return boot


def test_a_guest_is_told_all_of_the_plan() -> None:
    assert PLAN.init_words() == (
        "experiment=fork",
        "folios=16,64",
        "size=67108864",
        "rounds=1",
        "ops=fork,munmap",
        "seed=0",
    )


def test_every_sample_is_handed_on(run: Run) -> None:
    samples = run(*GOOD)
    assert [(one.folio_kib, one.op, one.digest) for one in samples] == [
        (16, "fork", "00ff"),
        (16, "munmap", None),
        (64, "fork", "0f0f"),
        (64, "munmap", None),
    ]


def test_a_sample_that_is_missing_is_noticed(run: Run) -> None:
    with pytest.raises(ReamError, match="gave other samples than asked for: .*munmap of 64 KiB 1"):
        run(*GOOD[:1], *GOOD[2:])


@pytest.mark.parametrize(
    ("code", "error", "words"),
    [
        (5, VerificationFailed, "folios of 64 KiB.*not as it must be"),
        (3, CannotRunHere, "folios of 64 KiB.*cannot"),
        (139, ReamError, "the workload ended with 139"),
    ],
)
def test_the_workloads_end_is_the_guests(
    code: int, error: type[ReamError], words: str, run: Run
) -> None:
    with pytest.raises(error, match=words):
        run(*GOOD[:-1], ends(64, code))


def test_what_is_not_verified_is_no_sample(run: Run) -> None:
    with pytest.raises(VerificationFailed, match="16 KiB.*fork was not verified"):
        run(sample(16, "fork", verified=False))


def test_what_is_no_sample_is_refused(run: Run) -> None:
    with pytest.raises(ReamError, match="no sample: .*time_ns"):
        run(sample(16, "fork", time_ns="soon"))


def test_the_plans_operations_are_the_workloads() -> None:
    source = (FORK_FOLIOS.sources[0]).read_text()
    assert all(f'] = "{op}",' in source for op in vm_fork.ALL_OPS)


def test_a_boot_that_is_done_says_again_what_it_said(tmp_path: Path) -> None:
    event = ForkSample(
        folio_kib=4, round=1, op="fork", time_ns=3, nr_ptes=9, verified=True, digest="ab"
    )
    assert_says_again(ForkBoot, event, tmp_path)
