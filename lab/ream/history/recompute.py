# SPDX-License-Identifier: GPL-2.0-only
"""Computes run.json again from a record's samples, and finds fields that differ.

If the same sources computed it (receipt.json has their digest), every field must be equal. In a
record of another version, the numbers that samples alone decide must be equal: medians, numbers of
samples, ratios. Other fields may differ because that version computed otherwise. Those cannot be
told from a change by hand, so they are reported separately and are no fault.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ream.errors import ReamError
from ream.experiment.registry import revived
from ream.folders import TABLES
from ream.history.ratios import SampleLine, folder_of, lines, on_its_clock, ratios_of
from ream.measure import statistics
from ream.published import load_tables
from ream.record.parts import part, rows_of
from ream.record.receipt import Receipt, anonymous
from ream.record.record import PLAN, RUN, SUMMED, Record, read_object
from ream.report.contract import Summary
from ream.report.numbers import rounded
from ream.report.ran import RAN, Ran, summary_id
from ream.report.summary import summarise

_WORDED = re.compile(r"\.(?:verdict|reason|differs|notes|explanation)(?:\[\d+\])?$")
"""Fields of a row in which a version judges and explains by its own rules what the samples give."""

MOST_NAMED = 8
"""The most differing fields that are printed."""
LONGEST_VALUE = 60
"""The most characters of a value that are printed."""
ABSENT = "absent"


_WORDS = ("limited_by", "limit_kind", "found_live")
"""Fields of run.json that are texts, and that older records may lack or have no text in."""


_OF_CALLS = re.compile(r"\.whole\.(?:ratio|floor)\.")
"""Ratios of complete calls. Versions before 2026-11-30 added the rest of the call, in wall time, to
the CPU time of a row's part."""

_WITHDRAWN = frozenset({"cpu_ns", "cpu_s_per_gib", "cpu_over_before"})
"""Numbers that this version leaves out where the clock of CPU time was too coarse for them."""


@dataclass(frozen=True)
class FieldDifference:
    """A field of run.json that differs from the value computed from the samples."""

    path: str
    stored: str
    computed: str

    @property
    def is_of_a_version(self) -> bool:
        """Whether versions may differ in it: the record is older than the field, or than the
        experiment's words for it, or it is a verdict or its explanation, and no number, or a number
        that is no longer given, or of a complete call.
        """
        if _WORDED.search(self.path) or _OF_CALLS.search(self.path):
            return True
        if self.path.rpartition(".")[2] in _WITHDRAWN:
            return self.computed == "null"
        if self.path in _WORDS:
            return self.stored == "null"
        return self.stored == ABSENT and self.computed in ("null", "{}", "[]")

    def __str__(self) -> str:
        return f"{self.path} is {self.stored}, its samples give {self.computed}"


@dataclass(frozen=True)
class Recomputed:
    """The result of computing a record's numbers again."""

    faults: tuple[str, ...] = ()
    """Numbers that do not follow from the samples, in sentences."""
    other_version: str | None = None
    """Other differences in a record of another version, in one sentence."""


def recompute(record: Record) -> Recomputed:
    """Compute every number of a record again; raises ReamError if its samples cannot be read."""
    taken = tuple(lines(record))
    made_here = record.receipt.get(SUMMED) == summary_id(folder_of(record))
    try:
        found = tuple(_differences(record, taken))
    # What a record of another version, or a damaged one, may be short of is anything.
    except (ReamError, ValueError, TypeError, KeyError, AttributeError) as cause:
        said = f"{RUN} cannot be made again from the samples: {str(cause).splitlines()[0]}"
        return Recomputed((said,)) if made_here else Recomputed(other_version=said)
    if made_here:
        return Recomputed(_named(found))
    edited = tuple(_of_parts(record, taken))
    paths = {one.path for one in edited}
    found = tuple(one for one in found if not one.is_of_a_version and one.path not in paths)
    rest = f", and {len(found) - 1} fields more" if len(found) > 1 else ""
    return Recomputed(_named(edited), f"{RUN}: {found[0]}{rest}" if found else None)


def _named(found: Sequence[FieldDifference]) -> tuple[str, ...]:
    more = [f"{RUN}: and {len(found) - MOST_NAMED} fields more"]
    named = [f"{RUN}: {one}" for one in found[:MOST_NAMED]]
    return (*named, *(more if len(found) > MOST_NAMED else ()))


def _differences(record: Record, taken: Sequence[SampleLine]) -> Iterator[FieldDifference]:
    if SUMMED not in record.receipt:  # of a ream that did not keep what it was made of
        return iter(())
    made = json.loads(json.dumps(_summary(record, taken).to_object()))
    words = {name: made[name] for name in _WORDS if name not in record.run}
    return compared({**anonymous(record.run), **words}, anonymous(made))


def _summary(record: Record, taken: Sequence[SampleLine]) -> Summary:
    """The summary that this version computes from the record's samples.

    Raises what reading plan.json and receipt.json raises, including ValueError.
    """
    plan = read_object(record.path / PLAN)
    if not plan.keys() >= (needed := {RAN, "experiment", "run", "stage"}):
        raise ValueError(f"{PLAN} has no {', '.join(sorted(needed - plan.keys()))}")
    ran = Ran.model_validate_json(json.dumps(plan[RAN]))
    asked = revived(plan["experiment"], plan.get("experiment_folder"))
    fields = {name: value for name, value in record.receipt.items() if name != "schema"}
    receipt = Receipt.model_validate_json(json.dumps(fields))
    return summarise(
        asked,
        ran.results(asked, [line.sample for line in taken]),
        load_tables(asked.folder / TABLES),
        receipt,
        run=plan["run"],
        stage=plan["stage"],
        variants=tuple(receipt.kernel.variants),
    )


def compared(stored: object, computed: object, path: str = "") -> Iterator[FieldDifference]:
    """Every field in which two JSON objects differ, down to single numbers."""
    if isinstance(stored, Mapping) and isinstance(computed, Mapping):
        for name in {**stored, **computed}:
            inner = f"{path}.{name}" if path else str(name)
            yield from compared(stored.get(name, ABSENT), computed.get(name, ABSENT), inner)
    elif isinstance(stored, list) and isinstance(computed, list) and len(stored) == len(computed):
        for number, (old, new) in enumerate(zip(stored, computed, strict=True)):
            yield from compared(old, new, f"{path}[{_name(new, number)}]")
    elif stored != computed or type(stored) is not type(computed):
        yield FieldDifference(path, _short(stored), _short(computed))


def _name(value: object, number: int) -> str:
    name = value.get("row") if isinstance(value, Mapping) else None
    return name if isinstance(name, str) else str(number)


def _short(value: object) -> str:
    text = value if value is ABSENT else json.dumps(value)
    return text if len(text) <= LONGEST_VALUE else text[: LONGEST_VALUE - 3] + "..."


def _of_parts(record: Record, taken: Sequence[SampleLine]) -> Iterator[FieldDifference]:
    """Differences in values that depend on samples alone: medians, numbers and ratios."""
    ratios = ratios_of(record)
    for row, its in rows_of(record).items():
        samples = on_its_clock(
            record, row, [line.sample for line in taken if line.sample.row == row]
        )
        for name, stored in part(its, "variants").items():
            level = statistics.level(samples, name)
            if level is None or not isinstance(stored, Mapping):
                continue
            made: dict[str, Any] = {
                "median": round(level.time_ns),
                "rounds": level.nr_samples,
                "launches": level.nr_launches,
                "threads": level.threads,
                "nr_bytes": round(level.nr_bytes),
            }
            if (ratio := ratios.get((row, name))) is not None:
                made["ratio"] = rounded(ratio.ratio)
            old = {field: stored[field] for field in made if field in stored}
            new = {field: made[field] for field in old}
            yield from compared(old, new, f"rows[{row}].variants.{name}")
