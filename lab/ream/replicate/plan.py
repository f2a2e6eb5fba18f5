# SPDX-License-Identifier: GPL-2.0-only
"""Plans the runs of a replication: one per experiment and stage, shared by all tables."""

import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from ream.experiment import Experiment, Stage
from ream.published import Table
from ream.replicate.claims import Claim, Fit, claims, fits, takes

StageChoice = Literal["auto", "native", "vm", "live"]

BEST_FIRST: tuple[Stage, ...] = ("vm", "native", "live")
"""Stages in order of preference. The vm stage runs whole kernels as the sources did. The native
stage times one function of them. The live stage has no `before`."""


@dataclass(frozen=True)
class Planned:
    """One run, and the tables that use it."""

    experiment: Experiment
    """The experiment at this stage, restricted to the rows that are needed."""
    stage: Stage
    tables: tuple[str, ...]

    def command(self, seed: int) -> str:
        """The command line of this run."""
        whole = [word for row in self.experiment.rows for word in ("--row", row.name)]
        words = ["ream", "run", self.experiment.name, "--stage", self.stage, *whole]
        rounds = {row.rounds for row in self.experiment.rows if not row.fixed_rounds}
        words += ["--launches", str(self.experiment.launches)]
        if len(rounds) == 1:
            words += ["--rounds", str(*rounds)]
        return shlex.join([*words, "--seed", str(seed)])


@dataclass(frozen=True)
class Plan:
    """The runs of a replication, and the stages that it cannot use."""

    runs: tuple[Planned, ...]
    absent: Mapping[Stage, str]
    """For each stage that is not used, the reason."""


def needs_kvm(fault: str) -> str:
    """The reason against the vm stage, since the times of emulated guests cannot be compared."""
    return f"guests under KVM are needed, and do not run here: {fault}"


def make_plan(
    tables: Sequence[Table],
    experiments: Iterable[Experiment],
    *,
    stage: StageChoice = "auto",
    kvm_fault: Callable[[], str | None],
    launches: int | None = None,
    rounds: int | None = None,
) -> Plan:
    """Choose, for each line of each table, the best stage that has a row for it.

    kvm_fault: returns the reason why no guest runs under KVM here, or None; called only if a row
    needs the vm stage. Emulated guests have no times that could be compared, so they are used only
    if the stage is requested. Raises BadUsage if a number is out of range.
    """
    experiments = tuple(experiments)
    absent: dict[Stage, str] = {}
    wanted: dict[tuple[str, Stage], dict[str, set[str]]] = {}
    for table in tables:
        its = fits(table, experiments)
        if stage == "auto" and any(fit.row.stage == "vm" for fit in its) and "vm" not in absent:
            fault = kvm_fault()
            if fault is not None:
                absent["vm"] = needs_kvm(fault)
        for claim in claims(table):
            chosen = _stage_of(table, claim, its, stage, absent)
            for fit in its:
                if fit.row.stage == chosen and takes(table, fit.ref, claim, fit.row.threads):
                    rows = wanted.setdefault((table.experiment, fit.row.stage), {})
                    rows.setdefault(fit.row.name, set()).add(table.id)
    by_name: Mapping[str, Experiment] = {experiment.name: experiment for experiment in experiments}
    runs = []
    for (name, where), rows in sorted(wanted.items()):
        # only() keeps the order of the file.
        at_stage = by_name[name].at(where).only(tuple(rows))
        runs.append(
            Planned(
                at_stage.resized(launches=launches, rounds=rounds),
                where,
                tuple(t.id for t in tables if any(t.id in of for of in rows.values())),
            )
        )
    if stage != "auto":
        absent |= dict.fromkeys(BEST_FIRST, f"only the {stage} stage was asked for")
        del absent[stage]
    return Plan(tuple(runs), absent)


def _stage_of(
    table: Table,
    claim: Claim,
    its: Sequence[Fit],
    asked: StageChoice,
    absent: Mapping[Stage, str],
) -> Stage | None:
    """The stage for a claim. Stages with a row of the same number of threads are preferred."""
    there = claim.printed.threads
    rows = [fit.row for fit in its if takes(table, fit.ref, claim, fit.row.threads)]
    same = {row.stage for row in rows if None in (there, row.threads) or row.threads == there}
    order = [
        stage
        for stage in (BEST_FIRST if asked == "auto" else (asked,))
        if stage not in absent and any(row.stage == stage for row in rows)
    ]
    return next((stage for stage in order if stage in same), order[0] if order else None)
