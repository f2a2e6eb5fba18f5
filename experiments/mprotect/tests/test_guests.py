# SPDX-License-Identifier: GPL-2.0-only
"""A boot without a guest: what it is told, and what is made of its words."""

import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from experiments.mprotect.boot import JobPlan, run_job_boot
from experiments.mprotect.guests import MprotectGuests
from experiments.mprotect.job_guests import JobBoot
from experiments.mprotect.jobs import JobSample
from experiments.mprotect.rows import MprotectRow
from experiments.mprotect.toggles import job_of
from ream.errors import BadUsage, CannotRunHere, ReamError, VerificationFailed
from ream.experiment import named
from ream.measure.plan import Launch
from ream.paths import CHECKOUT
from ream.session.guests import GuestSetting
from ream.session.request import GuestOptions
from ream.session.vm import Places, guests_of
from ream.stage import vm
from ream.stage.qemu import GuestMachine
from ream.stage.vm import BootableKernel, Start

FAKE = CHECKOUT / "tests" / "console" / "fake_qemu.py"
KERNEL = BootableKernel(Path("bzImage"), Path("mprotect.cpio"))
MACHINE = GuestMachine("tcg", icount=True)
MOST_WORDS = 2048
"""COMMAND_LINE_SIZE of x86."""


def row(**fields: object) -> MprotectRow:
    whole = {"name": "one", "rounds": 1, "folio_bytes": "4k", "operation": "rw-to-r", **fields}
    return MprotectRow.model_validate({"stage": "vm", **whole})


THERE, BACK = row(), row(name="back", operation="r-to-rw")
JOB = job_of(THERE)
PLAN = JobPlan("mprotect", (JOB,), rounds=1, seed=7)

Run = Callable[..., list[JobSample]]


def sample(op: str, **other: Any) -> dict[str, Any]:
    fields = {"run": JOB.name, "folio_kib": 4, "round": 0, "op": op, "time_ns": 7, "nr_ptes": 1024}
    return {"mprotect": {**fields, "window": 3, "verified": True, **other}}


def ends(code: int) -> dict[str, Any]:
    return {"workload": {"run": JOB.name, "exit": code}}


GOOD = (
    {"mprotect": {"hello": {"version": 1}}},
    sample("rw-to-r"),
    sample("r-to-rw", write_faults=0, soft_dirtied=5),
    {"mprotect": {"end": {"ok": True}}},
    ends(0),
)


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """A function that boots a guest which says these messages and powers off."""

    def boot(*messages: dict[str, Any]) -> list[JobSample]:
        def plan(*_: object, work: Path, **__: object) -> tuple[str, ...]:
            said = (*messages, {"end": {"ok": True}})
            steps = [word for one in said for word in ("tell", json.dumps(one))]
            return (sys.executable, str(FAKE), str(work / "port"), str(work / "qmp"), *steps)

        monkeypatch.setattr(vm, "boot_command", plan)
        return list(run_job_boot(Start(MACHINE, KERNEL, tmp_path / "console.log"), PLAN))

    return boot


def guests(*rows: MprotectRow) -> MprotectGuests:
    setting = GuestSetting("tcg", "asked for", True, GuestOptions())
    return MprotectGuests(rows, GuestOptions(), 7, lambda _options: setting)


def test_a_guest_is_told_all_of_the_plan() -> None:
    assert PLAN.init_words() == (
        "experiment=mprotect",
        f"runs={JOB.name}",
        "rounds=1",
        "seed=7",
    )


@pytest.mark.parametrize("name", ["mprotect", "mremap"])
def test_what_a_guest_is_told_finds_place_on_the_command_line(name: str) -> None:
    experiment = named(name).at("vm")
    setting = GuestSetting("tcg", "asked for", True, GuestOptions())
    its = guests_of(experiment)(experiment.rows, GuestOptions(), 7, lambda _options: setting)
    (kind,) = its.kinds().values()
    assert len(kind.command) < MOST_WORDS


def test_every_sample_is_handed_on(run: Run) -> None:
    assert [(one.op, one.write_faults, one.soft_dirtied) for one in run(*GOOD)] == [
        ("rw-to-r", None, None),
        ("r-to-rw", 0, 5),
    ]


def test_a_sample_that_is_missing_is_noticed(run: Run) -> None:
    with pytest.raises(ReamError, match="gave other samples than asked for: r-to-rw of .* 1 time"):
        run(*GOOD[:1], *GOOD[2:])


@pytest.mark.parametrize(
    ("code", "error", "words"),
    [
        (5, VerificationFailed, "4:private.*not as it must be"),
        (3, CannotRunHere, "4:private.*cannot"),
        (139, ReamError, "the workload ended with 139"),
    ],
)
def test_the_programs_end_is_the_guests(
    code: int, error: type[ReamError], words: str, run: Run
) -> None:
    with pytest.raises(error, match=words):
        run(*GOOD[:-1], ends(code))


def test_what_is_not_verified_is_no_sample(run: Run) -> None:
    with pytest.raises(VerificationFailed, match="rw-to-r was not verified"):
        run(sample("rw-to-r", verified=False))


def boots_of(its: MprotectGuests, tmp_path: Path) -> list[JobBoot]:
    kernels = {(): dict.fromkeys(("before", "published"), (None, KERNEL))}
    launch = Launch(number=0, link_order=("published", "before"), seed=7, data_offset=0)
    return list(its.boots(launch, kernels, Places(tmp_path, tmp_path)))  # type: ignore[arg-type]


def test_every_variant_is_booted_once_for_all_rows(tmp_path: Path) -> None:
    boots = boots_of(guests(THERE, BACK), tmp_path)
    assert [boot.variant for boot in boots] == ["published", "before"]
    assert all(boot.plan == PLAN and boot.nr_events == 2 for boot in boots)
    assert boots[0].machine.memory_bytes == (1 << 30) + (6 << 20)


def test_pages_that_nobody_wrote_and_yet_are_dirty_are_remarked(tmp_path: Path, run: Run) -> None:
    its = guests(THERE, BACK)
    first, second = boots_of(its, tmp_path)
    there, back = run(*GOOD)
    clean = back.model_copy(update={"soft_dirtied": 0})
    (taken,) = its.taken(first, back)
    assert [one.sample.row for said in (there, clean) for one in its.taken(second, said)] == [
        "one",
        "back",
    ]
    assert (taken.sample.subject, taken.sample.time_ns) == ("published", 7)
    names = ("before", "published")
    assert list(its.remarks(THERE, names)) == []
    assert list(its.remarks(BACK, names)) == [
        "soft-dirty pages afterwards, to which nobody wrote: published 5 of 1024"
    ]


def test_pages_that_one_variant_leaves_unwritable_are_noticed(tmp_path: Path, run: Run) -> None:
    its = guests(THERE, BACK)
    first, second = boots_of(its, tmp_path)
    _, back = run(*GOOD)
    list(its.taken(first, back))
    worse = back.model_copy(update={"write_faults": 4})
    with pytest.raises(VerificationFailed, match="took 4 faults with before, and 0 with published"):
        list(its.taken(second, worse))


def test_rows_of_other_rounds_cannot_be_one_boots() -> None:
    with pytest.raises(BadUsage, match="differ in rounds"):
        guests(THERE, BACK.model_copy(update={"rounds": 2}))


def test_a_job_with_more_memory_takes_a_larger_guest() -> None:
    large = replace(JOB, nr_bytes=1 << 30)
    plan = JobPlan("mprotect", (JOB, large), rounds=1)
    assert plan.least_bytes == (1 << 30) * 5 // 2
