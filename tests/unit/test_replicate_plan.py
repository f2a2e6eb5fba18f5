# SPDX-License-Identifier: GPL-2.0-only
"""Which runs published tables take, and what is left of them where one fails."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ream.errors import BadUsage, CannotRunHere, VerificationFailed
from ream.experiment import Experiment, PublishedRef, named
from ream.folders import names
from ream.progress import Reporter
from ream.published import load_tables, lookup
from ream.replicate import perform as performing
from ream.replicate.claims import base_of, claims
from ream.replicate.plan import make_plan
from shipped import RECORDS, SHIPPED

TABLES = load_tables()
NO_KVM = "there is no /dev/kvm"
NO_GUESTS = f"guests under KVM are needed, and do not run here: {NO_KVM}"


@pytest.fixture(scope="module")
def experiments() -> list[Experiment]:
    return [named(name) for name in names()]


def planned(tables, experiments, **options):
    return make_plan(tables, experiments, **{"kvm_fault": lambda: NO_KVM, **options})


# --- the plan -------------------------------------------------------------------------------


def test_one_run_for_each_experiment_does_all_tables(experiments) -> None:
    plan = planned(TABLES, experiments)
    assert [(run.experiment.name, run.stage) for run in plan.runs] == [
        ("compact", "native"),
        ("deferred-init", "native"),
        ("fork", "native"),
        ("migrate", "native"),
        ("mprotect", "native"),
        ("mremap", "native"),
        ("zone-device", "native"),
    ]
    assert plan.absent["vm"] == NO_GUESTS
    (zone,) = (run for run in plan.runs if run.experiment.name == "zone-device")
    assert zone.tables == ("zone-device-v4", "zone-device-v3", "zone-device-private-popple")
    assert [row.name for row in zone.experiment.rows] == [
        *("fsdax-100GB", "devdax-100GB", "private-64GB", "fsdax-first", "remap-private-64GB")
    ]


def test_where_kvm_runs_guests_the_vm_stage_goes_first_and_native_does_the_rest(
    experiments,
) -> None:
    plan = planned(TABLES, experiments, kvm_fault=lambda: None)
    stages = {(run.experiment.name, run.stage) for run in plan.runs}
    assert {("zone-device", "vm"), ("compact", "vm"), ("migrate", "vm")} <= stages
    assert ("zone-device", "native") not in stages  # the vm stage has all of its lines
    assert ("migrate", "native") in stages
    assert "vm" not in plan.absent


def test_a_row_with_as_many_threads_goes_before_a_whole_kernel_with_nearly_as_many(
    experiments,
) -> None:
    deferred = next(one for one in experiments if one.name == "deferred-init")
    skylake = lookup(TABLES, "deferred-init-skylake")
    six = deferred.row("4-threads").model_copy(update={"name": "six", "threads": 6})
    vm = next(row for row in deferred.rows if row.stage == "vm" and row.threads == 4)
    four = vm.model_copy(update={"published": six.published[:1]})
    near = deferred.model_copy(update={"rows": (six, four)})  # four there are nearest to six, too
    plan = planned([skylake], [near], kvm_fault=lambda: None)
    assert [row.name for run in plan.runs for row in run.experiment.rows] == ["six"]


def test_kvm_is_not_asked_for_where_no_guest_could_be_wanted(experiments) -> None:
    def asked() -> str:
        raise AssertionError

    planned([lookup(TABLES, "deferred-init-triplett")], experiments, kvm_fault=asked)
    planned(TABLES, experiments, stage="native", kvm_fault=asked)


def test_a_stage_that_is_asked_for_is_the_only_one(experiments) -> None:
    plan = planned(TABLES, experiments, stage="live")
    assert {run.stage for run in plan.runs} == {"live"}
    assert plan.absent == dict.fromkeys(("vm", "native"), "only the live stage was asked for")


def test_launches_and_rounds_are_those_asked_for_and_in_the_command(experiments) -> None:
    table = lookup(TABLES, "zone-device-v4")
    (run,) = planned([table], experiments, launches=2, rounds=3).runs
    assert run.experiment.launches == 2
    assert {row.rounds for row in run.experiment.rows} == {3}
    assert run.command(9) == (
        "ream run zone-device --stage native --row fsdax-100GB --row devdax-100GB "
        "--row fsdax-first --launches 2 --rounds 3 --seed 9"
    )


def test_the_line_before_the_change_is_the_one_that_rows_name(experiments) -> None:
    checked = 0
    for experiment in experiments:
        for row in experiment.rows:
            for ref in row.published:
                if ref.before is None or ref.nearest is not None:
                    continue
                table = lookup(TABLES, ref.id)
                line = table.row(ref.params)
                assert base_of(table, line) == table.row(ref.before)
                checked += 1
    assert checked > 40


def test_what_only_repeats_a_time_is_no_claim_of_its_own() -> None:
    names = {claim.value for claim in claims(lookup(TABLES, "deferred-init-haswell"))}
    assert names == {"boot_ms", "init_ms"}
    assert {claim.value for claim in claims(lookup(TABLES, "compact-dma"))} == {
        *("wall_ms", "user_pct", "sys_pct", "idle_pct", "hog_iterations")
    }


# --- the runs -------------------------------------------------------------------------------


def test_a_run_that_cannot_be_done_does_not_keep_the_next_from_being_done(
    experiments, monkeypatch, tmp_path
) -> None:
    plan = planned(TABLES, experiments)
    faults = iter(
        [CannotRunHere("no room"), VerificationFailed("a page"), CannotRunHere("b"), BadUsage("c")]
    )

    def run_session(*_request):
        raise next(faults)

    monkeypatch.setattr(performing, "run_session", run_session)
    with pytest.raises(BadUsage):
        performing.perform(plan.runs, seed=1, directory=tmp_path, reporter=Reporter())
    faults = iter([CannotRunHere("no room"), VerificationFailed("a page")])
    done = performing.perform(plan.runs[:2], seed=1, directory=tmp_path, reporter=Reporter())
    assert done.sources == []
    first, second = ((run.experiment.name, run.stage) for run in plan.runs[:2])
    assert done.absent == {first: "no room", second: "a page"}
    assert isinstance(done.failure, VerificationFailed)


def test_an_interruption_names_the_records_that_are_whole(experiments, monkeypatch) -> None:
    plan = planned(TABLES, experiments)
    path = SHIPPED[0]
    outcomes = iter([SimpleNamespace(path=path), KeyboardInterrupt()])

    def run_session(*_request):
        outcome = next(outcomes)
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    monkeypatch.setattr(performing, "run_session", run_session)
    with pytest.raises(KeyboardInterrupt) as caught:
        performing.perform(plan.runs, seed=1, directory=RECORDS, reporter=Reporter(quiet=True))
    (note,) = caught.value.__notes__
    assert note == f"whole by now, for `ream replicate`: --record {path.name}"


def test_a_row_without_its_line_is_told_before_anything_is_measured(
    experiments, monkeypatch, tmp_path
) -> None:
    monkeypatch.setattr(performing, "run_session", lambda *_: pytest.fail("it was measured"))
    first, *others, last = planned(TABLES, experiments).runs
    row = last.experiment.rows[0]
    lost = row.model_copy(update={"published": (PublishedRef(id="no-such-table", params={}),)})
    runs = [
        first,
        *others,
        replace(last, experiment=last.experiment.model_copy(update={"rows": (lost,)})),
    ]
    with pytest.raises(BadUsage, match=f"{row.name}: no published table no-such-table"):
        performing.perform(runs, seed=1, directory=tmp_path, reporter=Reporter())


def test_a_run_that_cannot_be_here_does_not_end_the_plan_of_the_others(
    experiments: list[Experiment], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def plan_text(request: Any) -> str:
        if request.stage == "vm":
            raise CannotRunHere("48 threads on 2 CPUs")
        return "time        about 1 s\n"

    monkeypatch.setattr(performing, "plan_text", plan_text)
    runs = planned(TABLES, experiments, kvm_fault=lambda: None).runs
    assert {one.stage for one in runs} >= {"vm", "native"}
    said = list(performing.plan_lines(runs, seed=1, directory=tmp_path))
    assert "not run     48 threads on 2 CPUs" in said
    assert "time        about 1 s" in said
