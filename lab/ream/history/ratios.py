# SPDX-License-Identifier: GPL-2.0-only
"""Computes the ratios of a record from its samples, for pooling and comparing runs."""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ream.counted import counted
from ream.errors import ReamError
from ream.experiment import AGAIN, BEFORE, is_copy
from ream.experiment.registry import columns_of
from ream.measure import statistics
from ream.measure.clock import by_cpu_time
from ream.measure.sample import OWN, Sample
from ream.measure.statistics import Estimate
from ream.record.packed import lines_of
from ream.record.parts import part, rows_of
from ream.record.record import PLAN, RUN, SAMPLES, Record, read_object

COUNTED = "instructions"
"""The unit of rows that are counted; others are timed."""

Place = tuple[str, str]
"""The names of a row and of a variant in it."""


@dataclass(frozen=True)
class SampleLine:
    """One line of samples.jsonl: the sample, and the other keys of its stage."""

    sample: Sample
    extra: Mapping[str, Any]


def lines(record: Record) -> Iterator[SampleLine]:
    """A record's samples, in the order in which they were taken.

    Raises ReamError at the first line that is no sample. Raises it at the end if run.json has
    another number of samples for a row and variant, since a file cut between two lines looks
    complete.
    """
    path = record.path / SAMPLES
    seen: Counter[Place] = Counter()
    try:
        for number, line in enumerate(lines_of(path), start=1):
            text = line.decode(errors="replace")
            sample = Sample.from_json(text, where=f"{path}:{number}")
            if sample.role == "variant":
                seen[sample.row, sample.subject] += 1
            fields = json.loads(text).items()
            yield SampleLine(sample, {key: value for key, value in fields if key not in OWN})
    except OSError as cause:
        raise ReamError(f"{path}: {cause.strerror}") from cause
    for place, number in _numbers(record).items():
        if seen[place] != number:
            raise ReamError(
                f"{path}: {counted(seen[place], 'sample')} of {' '.join(place)},"
                f" {RUN} has {number}: the record is damaged"
            )


def _numbers(record: Record) -> dict[Place, int]:
    """The number of samples of each row and variant in run.json."""
    return {
        (name, variant): number
        for name, row in rows_of(record).items()
        for variant, its in part(row, "variants").items()
        if isinstance(its, Mapping) and isinstance(number := its.get("rounds"), int)
    }


def units(record: Record) -> dict[str, str]:
    """The unit of each row: `ns` or `instructions`."""
    return {name: str(row.get("unit")) for name, row in rows_of(record).items()}


def folder_of(record: Record) -> Path | None:
    """The folder of an experiment outside the checkout; None if the plan names none."""
    try:
        folder = read_object(record.path / PLAN).get("experiment_folder")
    except (ReamError, OSError):
        return None
    return Path(folder).expanduser() if isinstance(folder, str) else None


def ratios_of(record: Record) -> Mapping[Place, Estimate]:
    """The ratio of each row and variant to its reference variant, from paired rounds.

    The reference is `before`, for a given series the tree that it is based on, and for a second
    copy the first. Samples that did less work than asked for, such as with fewer huge pages, are
    scaled. `before` has no ratio. The live stage has no `before`, so its mapping is empty. Raises
    what lines() raises, and ReamError if a sample failed verification.
    """
    by_row: dict[str, list[Sample]] = {}
    for line in lines(record):
        if not line.sample.verified:
            raise ReamError(
                f"{record.path / SAMPLES}: a sample of {line.sample.row} {line.sample.subject} is"
                " not verified; no number of this record counts"
            )
        by_row.setdefault(line.sample.row, []).append(line.sample)
    unit, columns = units(record), columns_of(record.run.get("experiment"), folder_of(record))
    found: dict[Place, Estimate] = {}
    for row in sorted(by_row, key=list(unit).index if by_row.keys() <= unit.keys() else None):
        samples = columns.alike(on_its_clock(record, row, by_row[row]))
        names = {sample.subject for sample in samples if sample.role == "variant"}
        for name in sorted(names - {BEFORE}, key=_by_place(record, row)):
            counted = unit.get(row) == COUNTED
            to = reference_of(record, row, name)
            estimate = statistics.paired_ratio(samples, name, to=to, counted=counted)
            if estimate is not None:
                found[row, name] = estimate
    return found


def on_its_clock(record: Record, row: str, samples: Sequence[Sample]) -> Sequence[Sample]:
    """The samples by the clock that run.json names for the row; without one it is wall time."""
    clock = part(rows_of(record).get(row, {}), "clock")
    return by_cpu_time(samples) if clock.get("used") == "CPU" else samples


def reference_of(record: Record, row: str, name: str) -> str:
    """The variant that this variant's ratio refers to in the record."""
    if is_copy(name):
        return name.removesuffix(AGAIN)
    its = part(rows_of(record).get(row, {}), "variants").get(name)
    to = its.get("compared_with") if isinstance(its, Mapping) else None
    return to if isinstance(to, str) else BEFORE


def _by_place(record: Record, row: str) -> Callable[[str], tuple[int, str]]:
    """A sort key for the order of variants in run.json; the samples' order is random."""
    order = list(part(rows_of(record).get(row, {}), "variants"))
    return lambda name: (order.index(name) if name in order else len(order), name)
