# SPDX-License-Identifier: GPL-2.0-only
"""Summarises counts of executed instructions and memory operations for the object of `--json`."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

from ream.experiment import AGAIN, BYTES_PER_PAGE, Row
from ream.measure import statistics
from ream.measure.sample import Counts, Sample
from ream.record.receipt import SeriesEntry
from ream.report.contract import Counted, PatchStep

Numbers = dict[str, int]


def counted_of(
    row: Row,
    samples: Iterable[Sample],
    names: Iterable[str],
    series: Mapping[str, Sequence[SeriesEntry]],
    own: Collection[str],
    *,
    exact: bool,
) -> Counted | None:
    """The counts of a row's variants; None if the row was timed.

    Numbers are those of each variant's first sample. `repeats` tells whether every other launch,
    and every second copy of the same kernel, has the same numbers in the same round. series: the
    patches of each variant, in order. own: variants that are more than a prefix of another
    variant's patches. exact: whether samples of one kernel must be equal to the last digit, as in a
    process; in a guest a timer comes a little earlier or later, and instructions may differ by the
    share `SAME`.
    """
    by_name: dict[str, list[Sample]] = {name: [] for name in names}
    for sample in samples:
        if sample.functions and sample.subject in by_name:
            by_name[sample.subject].append(sample)
    first = {name: its[0] for name, its in by_name.items() if its}
    if not first:
        return None
    units = {name: _unit(row, one) for name, one in first.items()}
    per, number = next(iter(units.values()))
    return Counted(
        per=per,
        number=number,
        repeats=all(map(_is_one, _by_kernel(by_name).values()))
        if exact
        else statistics.repeats(one for its in by_name.values() for one in its),
        variants={name: totals(one) for name, one in first.items()},
        stand_ins={name: summed(one.stand_ins) for name, one in first.items()},
        functions={name: one.functions for name, one in first.items()},
        inclusive={name: one.inclusive for name, one in first.items() if one.inclusive},
        own=tuple(name for name in first if name in own),
        steps=tuple(_steps({name: series.get(name, ()) for name in first}, own)),
        numbers={name: its for name, (_, its) in units.items() if its != number},
    )


def totals(sample: Sample) -> Numbers:
    """The counts of all the kernel's own functions together, and the memory they touched."""
    return {**summed(sample.functions), **_memory(sample)}


def summed(functions: Counts) -> Numbers:
    """The counts of all functions together, by quantity."""
    found: Numbers = {}
    for its in functions.values():
        for quantity, value in its.items():
            found[quantity] = found.get(quantity, 0) + value
    return found


def _memory(sample: Sample) -> Numbers:
    """Distinct cache lines and pages, which functions may share."""
    return {
        name: value for name, value in sample.beside.items() if name.startswith(("lines_", "pages"))
    }


def _unit(row: Row, sample: Sample) -> tuple[str, int]:
    """The unit that averages are shown for, and how many of it a sample covers."""
    if not sample.nr_bytes:
        return "call", 1
    if row.nr_entries and row.written_bytes:
        return "entry", max(1, round(row.nr_entries * sample.nr_bytes / row.written_bytes))
    return "page", max(1, sample.nr_bytes // BYTES_PER_PAGE[row.bytes_of])


def _by_kernel(by_name: Mapping[str, Sequence[Sample]]) -> dict[tuple[str, int], list[Sample]]:
    """Samples that must be equal: same kernel, linked once or twice, same round of any launch."""
    found: dict[tuple[str, int], list[Sample]] = {}
    for name, its in by_name.items():
        for one in its:
            found.setdefault((name.removesuffix(AGAIN), one.round), []).append(one)
    return found


def _is_one(samples: Sequence[Sample]) -> bool:
    return all(
        one.functions == samples[0].functions
        and one.inclusive == samples[0].inclusive
        and _memory(one) == _memory(samples[0])
        for one in samples
    )


def _steps(
    series: Mapping[str, Sequence[SeriesEntry]], own: Collection[str]
) -> Iterator[PatchStep]:
    """Pairs of variants that differ by one patch, on the way to each variant in `own`."""
    patches = {
        name: tuple(patch for one in its for patch in one.patches)
        for name, its in series.items()
        if not name.endswith(AGAIN)
    }
    keys = {name: tuple(patch.sha256 for patch in its) for name, its in patches.items()}
    told: set[str] = set()
    for last in sorted(keys, key=lambda name: len(keys[name]), reverse=True):
        chain = sorted(
            (name for name, own in keys.items() if own == keys[last][: len(own)]),
            key=lambda name: len(keys[name]),
        )
        if last not in own or {*chain} <= {*own} or last in told:
            continue
        told.update(chain)
        for before, after in pairwise(chain):
            if len(keys[after]) == len(keys[before]) + 1:
                yield PatchStep(
                    before=before, after=after, subject=patches[after][-1].subject, of=last
                )
