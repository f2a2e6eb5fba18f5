# SPDX-License-Identifier: GPL-2.0-only
"""A boot of the migrate experiment without a guest: what it is told, what is made of its words."""

import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from experiments.migrate.boot import (
    MigratePlan,
    MigrateSample,
    Step,
    run_migrate_boot,
    run_soak_boot,
    two_nodes,
)
from experiments.migrate.guests import MigrateBoot, copied, machine_of, plan_of, step_of
from experiments.migrate.programs import MOVE_FOLIOS
from experiments.migrate.rows import MigrateRow
from fake_boots import assert_says_again
from ream.errors import BadUsage, CannotRunHere, ReamError, VerificationFailed
from ream.paths import CHECKOUT
from ream.session.guests import GuestSetting, shown_boot
from ream.session.request import GuestOptions
from ream.stage import vm
from ream.stage.qemu import GuestMachine, GuestNode
from ream.stage.vm import BootableKernel, Start

FAKE = CHECKOUT / "tests" / "console" / "fake_qemu.py"
KERNEL = BootableKernel(Path("bzImage"), Path("migrate.cpio"))
PLAN = MigratePlan((Step(64), Step(2048, "dcbm", 2)), buffer_bytes=32 << 20, rounds=1)
MACHINE = GuestMachine("tcg", icount=True, memory_bytes=PLAN.least_bytes, nodes=two_nodes(1, PLAN))
SETTING = GuestSetting("tcg", "a test", True, GuestOptions())

Run = Callable[..., list[tuple[int, MigrateSample]]]


def row(**fields: Any) -> MigrateRow:
    plain = {"name": "some", "stage": "vm", "folio_bytes": 64 << 10, "buffer_bytes": 32 << 20}
    return MigrateRow.model_validate({**plain, "rounds": 2, **fields})


def begins(step: str) -> dict[str, Any]:
    return {"step": step}


def sample(kib: int, number: int, **other: Any) -> dict[str, Any]:
    fields = {"op": "move_pages", "folio_kib": kib, "round": number, "source": 0, "target": 1}
    fields |= {"time_ns": 7, "nr_bytes": 32 << 20, "nr_folios": 512, "nr_arrived": 512}
    counters = {"pgmigrate_success": 8192}
    return {"migrate": {**fields, "counters": counters, "verified": True, **other}}


def ends(step: str, code: int) -> dict[str, Any]:
    return {"workload": {"step": step, "exit": code}}


GOOD = (
    begins("64/none/0"),
    {"migrate": {"hello": {"version": 1}}},
    sample(64, 0),
    sample(64, 1),
    {"migrate": {"end": {"ok": True}}},
    ends("64/none/0", 0),
    begins("2048/dcbm/2"),
    sample(2048, 0),
    sample(2048, 1),
    ends("2048/dcbm/2", 0),
)


@pytest.fixture
def guest_says(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """A function that has the next guest say these messages and power off."""

    def say(*messages: dict[str, Any]) -> None:
        def plan(*_: object, work: Path, **__: object) -> tuple[str, ...]:
            said = (*messages, {"end": {"ok": True}})
            steps = [word for one in said for word in ("tell", json.dumps(one))]
            return (sys.executable, str(FAKE), str(work / "port"), str(work / "qmp"), *steps)

        monkeypatch.setattr(vm, "boot_command", plan)

    return say


@pytest.fixture
def run(guest_says: Callable[..., None], tmp_path: Path) -> Run:
    def boot(*messages: dict[str, Any]) -> list[tuple[int, MigrateSample]]:
        guest_says(*messages)
        return list(run_migrate_boot(Start(MACHINE, KERNEL, tmp_path / "console.log"), PLAN))

    return boot


# --- Plans -----------------------------------------------------------------------------


def test_a_guest_is_told_all_of_the_plan() -> None:
    assert PLAN.init_words() == (
        "experiment=migrate",
        "steps=64/none/0,2048/dcbm/2",
        "size=33554432",
        "rounds=1",
        "path=move_pages",
        "from=0",
        "to=1",
        "seed=1",
    )


@pytest.mark.parametrize(
    ("fields", "modules", "expected"),
    [
        ({}, ("swdma", "dcbm", "mtcopy"), "64/none/0"),
        ({"channels": 2}, ("swdma",), "64/none/0"),
        ({"channels": 2}, ("swdma", "dcbm"), "64/dcbm/2"),
        ({"channels": 2}, ("swdma", "dcbm", "mtcopy"), "64/mtcopy/2"),
        ({"channels": 2, "engine": "dma"}, ("swdma", "dcbm", "mtcopy"), "64/dcbm/2"),
        ({"channels": 2, "engine": "dma"}, ("swdma", "mtcopy"), "64/none/0"),
        (
            {"channels": 2, "engine_model": "ptdma-v4-grid"},
            ("swdma", "dcbm", "mtcopy"),
            "64/dcbm/2/570/6180",
        ),
    ],
)
def test_what_copies_is_what_the_kernel_has(
    fields: dict[str, Any], modules: tuple[str, ...], expected: str
) -> None:
    assert str(step_of(row(**fields), modules)) == expected


def test_an_engine_has_no_model_where_instructions_are_counted() -> None:
    modelled = row(channels=2, engine_model="ptdma-v4-grid")
    assert str(step_of(modelled, ("dcbm",), icount=True)) == "64/dcbm/2"


def test_a_model_that_could_not_be_kept_is_told() -> None:
    step = step_of(row(channels=2, engine_model="ptdma-v4-grid"), ("dcbm",))
    for late, said in ((0, "was kept"), (7, "could not be kept 7 times: its threads were slower")):
        fields = sample(64, 1)["migrate"] | {"counters": {"swdma_late": late}}
        words = copied(step, MigrateSample.model_validate(fields))
        assert words.endswith(f"the model (570 ns a descriptor, 6.18 GB/s a channel) {said}")


def test_every_row_has_a_step_of_its_own() -> None:
    plan = plan_of([row(), row(channels=1), row()], 9, ["swdma"])
    assert plan.steps == (Step(64),) * 3
    assert (plan.seed, plan.rounds, plan.buffer_bytes) == (9, 2, 32 << 20)


@pytest.mark.parametrize("fields", [{"rounds": 3}, {"buffer_bytes": 64 << 20}])
def test_rows_that_differ_in_size_or_rounds_are_not_one_boot(fields: dict[str, Any]) -> None:
    with pytest.raises(BadUsage, match="differ in buffer_bytes or rounds"):
        plan_of([row(), row(**fields)], 1)


@pytest.mark.parametrize(
    ("cpus", "expected"), [(1, ("0-0", "")), (2, ("0-0", "1-1")), (5, ("0-2", "3-4"))]
)
def test_both_nodes_have_cpus_if_there_are_as_many(cpus: int, expected: tuple[str, str]) -> None:
    nodes = two_nodes(cpus, PLAN)
    assert tuple(node.cpus for node in nodes) == expected
    GuestMachine("tcg", cpus=cpus, memory_bytes=PLAN.least_bytes, nodes=nodes)


def test_the_machine_has_two_nodes_that_hold_the_buffer() -> None:
    machine = machine_of(PLAN, SETTING)
    assert machine.memory_bytes == sum(node.memory_bytes for node in machine.nodes)
    assert [node.memory_bytes > PLAN.buffer_bytes for node in machine.nodes] == [True, True]
    words = shown_boot(SETTING, machine, PLAN.init_words(), archive="migrate.cpio")
    assert "node,nodeid=1,memdev=ram1" in words
    assert "steps=64/none/0,2048/dcbm/2" in words


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (GuestOptions(memory_bytes=4 << 30), "it does not say how much is in which node"),
        (GuestOptions(nodes=(GuestNode(4 << 30, "0"),)), "one node only"),
        (GuestOptions(nodes=(GuestNode(4 << 30, "0"), GuestNode(64 << 20))), "node 1 needs 320M"),
    ],
)
def test_nodes_that_are_too_small_are_told(options: GuestOptions, complaint: str) -> None:
    with pytest.raises(BadUsage, match=complaint):
        machine_of(PLAN, replace(SETTING, options=options))


# --- What a guest says -----------------------------------------------------------------


def test_every_sample_comes_with_its_step(run: Run) -> None:
    samples = run(*GOOD)
    assert [(number, said.folio_kib, said.round) for number, said in samples] == [
        (0, 64, 0),
        (0, 64, 1),
        (1, 2048, 0),
        (1, 2048, 1),
    ]
    assert samples[0][1].counters["pgmigrate_success"] == 8192


def test_a_sample_that_is_missing_is_noticed(run: Run) -> None:
    with pytest.raises(ReamError, match="other samples than asked for: .*2048/dcbm/2 1 time$"):
        run(*GOOD[:7], *GOOD[8:])


@pytest.mark.parametrize(
    ("code", "error", "words"),
    [
        (5, VerificationFailed, "2048/dcbm/2.*not as it must be"),
        (3, CannotRunHere, "2048/dcbm/2.*cannot"),
        (139, ReamError, "the workload ended with 139"),
    ],
)
def test_the_workloads_end_is_the_guests(
    code: int, error: type[ReamError], words: str, run: Run
) -> None:
    with pytest.raises(error, match=words):
        run(*GOOD[:-1], ends("2048/dcbm/2", code))


def test_what_is_not_verified_is_no_sample(run: Run) -> None:
    with pytest.raises(VerificationFailed, match="64.*move_pages was not verified"):
        run(begins("64/none/0"), sample(64, 0, verified=False))


def test_what_is_no_sample_is_refused(run: Run) -> None:
    with pytest.raises(ReamError, match="no sample: .*time_ns"):
        run(begins("64/none/0"), sample(64, 0, time_ns="soon"))


def test_a_soak_gives_its_totals(guest_says: Callable[..., None], tmp_path: Path) -> None:
    start = Start(MACHINE, KERNEL, tmp_path / "console.log")
    guest_says({"migrate": {"end": {"ok": True, "bytes": 9}}}, ends("soak", 0))
    assert run_soak_boot(start, ("size=9",)) == {"ok": True, "bytes": 9}
    guest_says(ends("soak", 5))
    with pytest.raises(VerificationFailed, match="soak"):
        run_soak_boot(start, ("size=9",))
    guest_says(ends("soak", 0))
    with pytest.raises(ReamError, match="gave no totals"):
        run_soak_boot(start, ("size=9",))


def test_who_copied_is_told_by_the_counters() -> None:
    counters = {"dcbm_folios_migrated": 510, "dcbm_folios_failures": 2}
    counters |= {"swdma_descriptors": 512, "swdma_bytes": 4096}
    fields = sample(64, 1)["migrate"] | {"counters": counters}
    assert copied(Step(64, "dcbm", 2), MigrateSample.model_validate(fields)) == (
        "510 of 512 folios copied by dcbm; 2 failed, and were copied by the CPU;"
        " 512 descriptors, 4,096 bytes of the software engine"
    )


def test_the_paths_and_counters_are_the_workloads() -> None:
    workloads = CHECKOUT / "workloads"
    source = MOVE_FOLIOS.sources[0].read_text()
    paths = ("move_pages", "mbind", "migrate_pages", "numa_balancing", "demotion")
    assert all(f'{{ "{path}", ' in source for path in paths)
    counters = (workloads / "counters.c").read_text()
    assert all(f"PARAMETER({name}, folios_migrated)" in counters for name in ("dcbm", "mtcopy"))


def test_a_boot_that_is_done_says_again_what_it_said(tmp_path: Path) -> None:
    sample = MigrateSample(
        op="move",
        folio_kib=4,
        round=1,
        source=0,
        target=1,
        time_ns=5,
        nr_bytes=4096,
        nr_folios=1,
        nr_arrived=1,
        counters={"pgmigrate_success": 1},
        verified=True,
    )
    event = (3, sample)
    assert_says_again(MigrateBoot, event, tmp_path)
