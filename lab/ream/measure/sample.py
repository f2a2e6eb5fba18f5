# SPDX-License-Identifier: GPL-2.0-only
"""One measured value, and its form as a line of JSON between runner, record and statistics."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal, Self

from ream.errors import ReamError

NO_EXTRA: Mapping[str, Any] = MappingProxyType({})

NO_NUMBERS: Mapping[str, int] = MappingProxyType({})

TIMES = "beside"
"""The key of a line that contains `Sample.times`."""

FUNCTIONS = "functions"
STAND_INS = "stand_ins"
INCLUSIVE = "inclusive"
"""The keys of a counted sample's counts by function."""

Counts = Mapping[str, Mapping[str, int]]
NO_COUNTS: Counts = MappingProxyType({})

_LEAST = {"launch": 0, "round": 0, "threads": 1, "time_ns": 1, "nr_bytes": 0}
_TOO_MUCH = 1 << 63
_ROLES = ("variant", "limit", "live")
_LONGEST_LINE = 80
"""The number of characters of a faulty line that an error message repeats."""


@dataclass(frozen=True)
class Sample:
    """The time of one subject in one round of one launch, or its instructions if it was counted."""

    row: str
    launch: int
    round: int
    role: Literal["variant", "limit", "live"]
    subject: str
    """The variant's name or, for a limit, the kind of fill, such as "movnti-8". Of the running
    kernel that performs the same beside hosted ones it is `running`."""
    threads: int
    """The number of CPUs that took part."""
    time_ns: int
    nr_bytes: int
    """Bytes that the operation is about, such as those of the memory map that it writes."""
    verified: bool
    cpu_ns: int | None = None
    """CPU time of the whole machine during the operation; None if the stage does not measure it. It
    includes every thread and kernel thread that took part."""
    beside: Mapping[str, int] = field(default_factory=lambda: NO_NUMBERS)
    """Other whole numbers of the same operation, each under its own key of the line. The columns
    that the experiment declares are computed from them."""
    times: Mapping[str, int] = field(default_factory=lambda: NO_NUMBERS)
    """Other times of the same operation by name, in the unit of `time_ns`."""
    functions: Counts = field(default_factory=lambda: NO_COUNTS)
    """For a counted sample, counts by kernel function and quantity. `time_ns` is then the number of
    instructions in all of them; in a guest it is the number of all that its CPU executed."""
    stand_ins: Counts = field(default_factory=lambda: NO_COUNTS)
    """Counts of our functions that replace the kernel's, in the same form."""
    inclusive: Counts = field(default_factory=lambda: NO_COUNTS)
    """For kernel functions that called others of the kernel, counts that include those calls."""

    @classmethod
    def from_json(cls, line: str, *, where: str) -> Self:
        """Read one line; where: its origin for error messages, such as "samples.jsonl:12".

        Raises ReamError if it is no sample: a truncated line, a wrong type, a time of 0.
        """
        try:
            fields = json.loads(line)
        except (ValueError, RecursionError) as cause:
            raise ReamError(f"{where}: not a sample: {_short(line)}") from cause
        if not isinstance(fields, dict):
            raise ReamError(f"{where}: not a sample: {_short(line)}")
        return cls.from_fields(fields, where=where)

    @classmethod
    def from_fields(cls, fields: Mapping[str, Any], *, where: str) -> Self:
        """A sample from a line's fields; unknown fields that are no whole numbers are ignored.

        Raises ReamError naming the first field that is missing or of a wrong type.
        """
        for name, kind in (("row", str), ("subject", str), ("verified", bool)):
            if type(fields.get(name)) is not kind:
                raise _fault(where, name, f"no {kind.__name__}", fields)
        for name, least in _LEAST.items():
            # By type(), since True is an int to isinstance().
            if type(fields.get(name)) is not int or not least <= fields[name] < _TOO_MUCH:
                raise _fault(where, name, f"no whole number from {least} on", fields)
        if fields.get("role") not in _ROLES:
            raise _fault(where, "role", f"neither {' nor '.join(_ROLES)}", fields)
        if (cpu_ns := fields.get("cpu_ns")) is not None and (
            type(cpu_ns) is not int or not 0 <= cpu_ns < _TOO_MUCH
        ):
            raise _fault(where, "cpu_ns", "no whole number from 0 on", fields)
        own: dict[str, Any] = {name: fields.get(name) for name in OWN}
        more = {name: value for name, value in fields.items() if name not in OWN}
        times = more.get(TIMES)
        return cls(
            **own,
            beside=_whole_numbers(more),
            times=_whole_numbers(times) if isinstance(times, Mapping) else NO_NUMBERS,
            functions=_counts(more.get(FUNCTIONS)),
            stand_ins=_counts(more.get(STAND_INS)),
            inclusive=_counts(more.get(INCLUSIVE)),
        )

    def to_json(self, extra: Mapping[str, Any] = NO_EXTRA) -> str:
        """One line without its newline; `extra` has keys that only the stage uses."""
        own = {name: value for name in OWN if (value := getattr(self, name)) is not None}
        apart = {
            TIMES: self.times,
            FUNCTIONS: self.functions,
            STAND_INS: self.stand_ins,
            INCLUSIVE: self.inclusive,
        }
        its = {key: _plain(value) for key, value in apart.items() if value}
        return json.dumps({**its, **extra, **self.beside, **own}, allow_nan=False)


_APART = ("beside", "times", FUNCTIONS, STAND_INS, INCLUSIVE)
OWN = tuple(name for name in Sample.__dataclass_fields__ if name not in _APART)
"""Keys that a line may have in every experiment."""


def _whole_numbers(fields: Mapping[str, Any]) -> Mapping[str, int]:
    return {name: value for name, value in fields.items() if type(value) is int}


def _counts(fields: object) -> Counts:
    if not isinstance(fields, Mapping):
        return NO_COUNTS
    return {name: _whole_numbers(its) for name, its in fields.items() if isinstance(its, Mapping)}


def _plain(numbers: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: dict(inner) if isinstance(inner, Mapping) else inner
        for name, inner in numbers.items()
    }


def _fault(where: str, name: str, fault: str, fields: Mapping[str, Any]) -> ReamError:
    value = _short(repr(fields[name])) if name in fields else "missing"
    return ReamError(f"{where}: not a sample: {name} is {fault} (it is {value})")


def _short(line: str) -> str:
    text = line.strip().encode("unicode_escape").decode("ascii")
    return text if len(text) <= _LONGEST_LINE else text[: _LONGEST_LINE - 3] + "..."
