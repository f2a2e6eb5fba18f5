# SPDX-License-Identifier: GPL-2.0-only
"""One run, from its plan to its record: rows, variants and launches in, a record out."""

import shutil
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ream.experiment import Experiment, Row
from ream.kernel.build import compiler_version
from ream.kernel.cache import disk_faults, scratch
from ream.kernel.source import Tree, fetch_tree
from ream.measure.plan import LIMIT_KINDS, PASSES, Launch, bytes_gone_by, plan_launches
from ream.measure.sample import Sample
from ream.paths import CHECKOUT, NATIVE, PUBLISHED
from ream.progress import Reporter
from ream.published import check_references, load_tables
from ream.record.machine import conditions, read_machine, take_snapshot, warnings
from ream.record.receipt import Kernel, Receipt, SeriesEntry, Settings, read_ream
from ream.record.record import RecordWriter, new_run_id, open_record
from ream.report import letter, table
from ream.report.contract import Summary
from ream.report.summary import summarise
from ream.stage import native
from ream.stage.bench import Bench, build_bench
from ream.stage.memory import available_bytes, fit_rows
from ream.variants import Variant

STAGE = "native"
FOLDER = NATIVE / "zone_device"
"""This experiment's glue and runner."""

LEAST_HUGE_RATIO = 0.95


@dataclass(frozen=True)
class Request:
    """What a run is asked to do."""

    experiment: Experiment
    variants: tuple[Variant, ...]
    tree: Path | None
    threads: int | None
    seed: int
    runs: Path
    cache: Path
    command: str
    """The line that repeats the run."""


@dataclass(frozen=True)
class Outcome:
    """What a run leaves: its record's place, and what it says."""

    path: Path
    summary: Summary


@dataclass(frozen=True)
class _Plan:
    """What is launched: the rows as they fit this machine, and every launch."""

    rows: tuple[Row, ...]
    launches: tuple[Launch, ...]
    threads: int | None
    nr_variants: int

    def weight(self) -> float:
        """All of the work, in the bytes that samples are counted by as they come."""
        return float(
            bytes_gone_by(
                self.rows,
                nr_variants=self.nr_variants,
                launches=len(self.launches),
                nr_limits=LIMIT_KINDS * (1 if self.threads == 1 else 2),
            )
        )


def run_session(request: Request, reporter: Reporter) -> Outcome:
    """Do what is asked: build, launch, verify, record.

    Raises ReamError or one of its kind; nothing is recorded then.
    """
    run_id = new_run_id(request.experiment.name, STAGE)
    tables = load_tables(PUBLISHED)
    check_references(request.experiment.rows, tables)
    with (
        open_record(request.runs, run_id) as record,
        disk_faults(request.cache, "a run"),
        scratch(request.cache / "run" / run_id, reporter.step) as work,
    ):
        tree = fetch_tree(request.tree, cache=request.cache, step=reporter.step)
        bench = build_bench(
            tree,
            request.variants,
            folder=FOLDER,
            cache=request.cache,
            work=work,
            step=reporter.step,
        )
        launches = plan_launches(
            [variant.name for variant in request.variants],
            launches=request.experiment.launches,
            seed=request.seed,
        )
        build = native.read_build(bench.link(launches[0]))
        rows, shrunk = fit_rows(request.experiment.rows, available_bytes(), build.facts)
        for text in shrunk:
            reporter.step(text)
        plan = _Plan(rows, launches, request.threads, len(request.variants))
        start = take_snapshot()
        samples, stubs, huge_ratio = _measure(plan, bench, build, record=record, reporter=reporter)
        during = conditions(start, take_snapshot())
        machine = read_machine()
        receipt = Receipt(
            machine=machine,
            conditions=during,
            kernel=_kernel(request, tree, bench),
            ream=read_ream(CHECKOUT),
            settings=_settings(request, plan),
            symbols=native.symbol_map(bench.kernels.values(), bench.roots),
            stubs={"calls": stubs},
            warnings=(*shrunk, *_small_pages(huge_ratio), *warnings(machine, during)),
        )
        summary = summarise(
            request.experiment,
            rows,
            samples,
            tables,
            receipt,
            run=run_id,
            stage=STAGE,
            variants=tuple(variant.name for variant in request.variants),
        )
        path = record.finish(
            summary.to_object(),
            receipt.to_object(),
            table=table.render(summary),
            letter=letter.render(summary),
        )
    return Outcome(path, summary)


Stubs = dict[str, dict[str, int]]
"""By stub and honesty, then by variant: how often the run reached it."""


def _measure(
    plan: _Plan, bench: Bench, build: native.Build, *, record: RecordWriter, reporter: Reporter
) -> tuple[list[Sample], Stubs, float]:
    """Run every launch; each sample is in the record as soon as it is known."""
    samples: list[Sample] = []
    stubs: dict[str, Counter[str]] = defaultdict(Counter)
    huge_ratios: list[float] = []
    reporter.step("predicting what memory must hold")
    rows = [native.native_row(row, plan.threads) for row in plan.rows]
    with (
        native.predicted_plan(rows, build, bench.work) as (plan_file, descriptors),
        reporter.measuring(plan.weight()) as advance,
    ):
        for launch in plan.launches:
            program = bench.link(launch)
            for said in native.launch_once(program, launch, plan_file, descriptors):
                if isinstance(said, native.End):
                    huge_ratios.append(said.huge_ratio)
                    for stub in said.stubs:
                        stubs[f"{stub['name']} ({stub['honesty']})"][stub["variant"]] += stub[
                            "calls"
                        ]
                    continue
                record.append(said)
                samples.append(said)
                doing = f"launch {launch.number + 1} of {len(plan.launches)}, {said.row}"
                advance(float(said.nr_bytes * PASSES[said.role]), doing)
            shutil.rmtree(program.path.parent, ignore_errors=True)
    counted = {name: dict(counts) for name, counts in stubs.items()}
    return samples, counted, min(huge_ratios)


def _small_pages(huge_ratio: float) -> Iterator[str]:
    if huge_ratio < LEAST_HUGE_RATIO:
        yield (
            f"in one launch only {100 * huge_ratio:.0f} % of the map lay in huge pages (less than "
            f"{100 * LEAST_HUGE_RATIO:.0f} %), where a kernel maps all of it so: free or compact "
            "memory and run again"
        )


def _kernel(request: Request, tree: Tree, bench: Bench) -> Kernel:
    return Kernel(
        tree=tree.label,
        tree_key=tree.key,
        version=tree.version,
        compiler=compiler_version(),
        config_sha256=bench.config_sha256,
        variants={
            variant.name: tuple(SeriesEntry.of(series) for series in variant.series)
            for variant in request.variants
        },
    )


def _settings(request: Request, plan: _Plan) -> Settings:
    return Settings(
        command=request.command,
        seed=request.seed,
        launches=len(plan.launches),
        rounds={row.name: row.rounds for row in plan.rows},
        options={"threads": request.threads},
    )
