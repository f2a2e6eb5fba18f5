# SPDX-License-Identifier: GPL-2.0-only
"""A summary of rows and samples, and of what else a test says that the run brought back."""

from collections.abc import Iterable, Sequence
from typing import Any

from ream.experiment import Row
from ream.experiment.registry import Experiment
from ream.measure.sample import Sample
from ream.published import Table
from ream.record.receipt import Receipt
from ream.report.contract import Summary
from ream.report.ran import Results
from ream.report.summary import summarise as summarise_results


def summarise(
    experiment: Experiment,
    rows: Iterable[Row],
    samples: Iterable[Sample],
    tables: Iterable[Table],
    receipt: Receipt,
    *,
    run: str,
    stage: str,
    variants: Sequence[str] | None = None,
    **more: Any,
) -> Summary:
    results = Results(rows=tuple(rows), samples=tuple(samples), **more)
    return summarise_results(
        experiment, results, tables, receipt, run=run, stage=stage, variants=variants
    )
