# SPDX-License-Identifier: GPL-2.0-only
"""The ratios of a record, from its samples: what may be pooled and compared between runs."""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ream.counted import counted
from ream.errors import ReamError
from ream.experiment import AGAIN, BEFORE, is_copy
from ream.experiment.registry import columns_of
from ream.measure import statistics
from ream.measure.sample import OWN, Sample
from ream.measure.statistics import Estimate
from ream.record.packed import lines_of
from ream.record.parts import part, rows_of
from ream.record.record import PLAN, RUN, SAMPLES, Record, read_object

COUNTED = "instructions"
"""The unit of counts; others are times."""

Place = tuple[str, str]
"""A row, and a variant in it."""


@dataclass(frozen=True)
class SampleLine:
    """One line of samples.jsonl: the sample, and the keys of its stage beside it."""

    sample: Sample
    extra: Mapping[str, Any]


def lines(record: Record) -> Iterator[SampleLine]:
    """A record's samples in the order taken.

    Raises ReamError naming the first that is none, and at the end if there are not as many of a
    row and variant as run.json has: a file that was cut between two lines looks whole else.
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
    """How many samples run.json has of each row and variant."""
    return {
        (name, variant): number
        for name, row in rows_of(record).items()
        for variant, its in part(row, "variants").items()
        if isinstance(its, Mapping) and isinstance(number := its.get("rounds"), int)
    }


def units(record: Record) -> dict[str, str]:
    """The unit of each row: `ns`, or `instructions` that are counted."""
    return {name: str(row.get("unit")) for name, row in rows_of(record).items()}


def folder_of(record: Record) -> Path | None:
    """Of its experiment, if that was none of a checkout's; None where the plan does not say."""
    try:
        folder = read_object(record.path / PLAN).get("experiment_folder")
    except (ReamError, OSError):
        return None
    return Path(folder).expanduser() if isinstance(folder, str) else None


def ratios_of(record: Record) -> Mapping[Place, Estimate]:
    """Of each row and variant the ratio to what it is compared with, from paired rounds.

    That is `before`, of a series that somebody gave the tree it stands on, and of a second copy
    the first. Where less was done than asked for, as fewer huge pages given, the ratio is of the
    time as if all had been. `before` itself is not among them. Empty of the live stage, where
    there is no `before`.
    Raises what lines() does, and ReamError if memory was wrong after any sample.
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
        samples = columns.alike(by_row[row])
        names = {sample.subject for sample in samples if sample.role == "variant"}
        for name in sorted(names - {BEFORE}, key=_by_place(record, row)):
            counted = unit.get(row) == COUNTED
            to = _compared_with(record, row, name)
            estimate = statistics.paired_ratio(samples, name, to=to, counted=counted)
            if estimate is not None:
                found[row, name] = estimate
    return found


def _compared_with(record: Record, row: str, name: str) -> str:
    """What the record has this variant's ratio to."""
    if is_copy(name):
        return name.removesuffix(AGAIN)
    its = part(rows_of(record).get(row, {}), "variants").get(name)
    to = its.get("compared_with") if isinstance(its, Mapping) else None
    return to if isinstance(to, str) else BEFORE


def _by_place(record: Record, row: str) -> Callable[[str], tuple[int, str]]:
    """The order in which run.json has a row's variants; samples are in a drawn one."""
    order = list(part(rows_of(record).get(row, {}), "variants"))
    return lambda name: (order.index(name) if name in order else len(order), name)
