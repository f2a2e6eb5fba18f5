# SPDX-License-Identifier: GPL-2.0-only
"""Whether two runs measured the same thing: what differs between them, and how grave that is."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal

from ream.counted import counted
from ream.errors import BadUsage
from ream.record.record import Record

SHORT = 12
"""Digits of a digest that tell two apart."""

MOST_SAID = 8
"""Of what forbids a comparison: of ten runs, each two may have their own."""

Gravity = Literal["refuse", "flag"]


@dataclass(frozen=True)
class Difference:
    """One thing in which two runs differ; `refuse`: their numbers are not of the same thing."""

    what: str
    a: str
    b: str
    gravity: Gravity
    row: str | None = None
    """The row that it is about; None: about no row in particular."""

    def __str__(self) -> str:
        if self.a == self.b:
            return f"{self.what}: {self.a} in either"
        return f"{self.what}: {self.a} in one, {self.b} in the other"


def differences(a: Record, b: Record) -> tuple[Difference, ...]:
    """All that differs between two runs, what forbids comparing them first.

    Of rows, those that both have. What a record does not say is flagged, never taken for the same.
    """
    return (
        *_of_the_question(a, b),
        *_of_rows(a, b),
        *_of_benchmark(a, b),
        *_of_machine(a, b),
        *_of_kernel(a, b),
        *_of_guest(a, b, "flag"),
    )


def refuse_unlike(records: Sequence[Record], way_out: str) -> None:
    """Raises BadUsage with what makes runs' numbers ones of different things, and `way_out`."""
    said = dict.fromkeys(
        f"{run_id(a)} and {run_id(b)} are not alike: {one}"
        for a, b in combinations(records, 2)
        for one in differences(a, b)
        if one.gravity == "refuse"
    )
    if said:
        more = len(said) - MOST_SAID
        rest = [f"and {counted(more, 'more difference')} of this kind"] if more > 0 else []
        raise BadUsage("\n".join((*list(said)[:MOST_SAID], *rest, way_out)))


def run_id(record: Record) -> str:
    return str(record.run.get("run") or record.path.name)


def machine_key(record: Record) -> str:
    """What tells this record's machine from others: its id, of an old record its description."""
    return machine_id(record) or f"{machine_line(record)}, no id"


def machine_id(record: Record) -> str | None:
    """The id of this record's machine; None of an old record, or where there was none."""
    found = part(record.receipt, "machine").get("id")
    return str(found) if found else None


def machine_line(record: Record) -> str:
    """The machine in a few words."""
    return str(part(record.run, "receipt").get("machine") or _cpu(record))


def rows_of(record: Record) -> dict[str, Mapping[str, Any]]:
    """The rows of run.json by name."""
    rows = record.run.get("rows")
    return {
        str(row.get("row")): row
        for row in (rows if isinstance(rows, list) else ())
        if isinstance(row, Mapping)
    }


def part(value: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """An object inside of a record's; an empty one where there is none."""
    found = value.get(name)
    return found if isinstance(found, Mapping) else {}


def _of_the_question(a: Record, b: Record) -> Iterator[Difference]:
    for what in ("experiment", "stage"):
        yield from _differ(what, a.run.get(what), b.run.get(what), "refuse")
    yield from _of_guest(a, b, "refuse")


def _of_rows(a: Record, b: Record) -> Iterator[Difference]:
    ours, theirs = rows_of(a), rows_of(b)
    for name in (name for name in ours if name in theirs):
        one, other = ours[name], theirs[name]
        for what in ("unit", "better", "bytes_of"):
            known = what in one and what in other  # a field may be younger than a record
            if known:
                yield from _differ(f"{what} of {name}", one[what], other[what], "refuse", name)
        params, others = part(one, "params"), part(other, "params")
        for key in dict.fromkeys((*params, *others)):
            # A parameter may be younger than one of the records, too.
            gravity: Gravity = "refuse" if key in params and key in others else "flag"
            yield from _differ(f"{key} of {name}", params.get(key), others.get(key), gravity, name)


def _of_benchmark(a: Record, b: Record) -> Iterator[Difference]:
    ours, theirs = (one.receipt.get("benchmark") for one in (a, b))
    if ours is None or theirs is None:
        # Two that do not say are not known to be the same either.
        yield Difference("benchmark", _said(ours), _said(theirs), "flag")
    else:
        yield from _differ("benchmark", ours, theirs, "refuse")


def _of_machine(a: Record, b: Record) -> Iterator[Difference]:
    ours, theirs = (part(one.receipt, "machine") for one in (a, b))
    if machine_key(a) != machine_key(b):
        yield Difference("machine", *_machines_apart(a, b), "flag")
        return
    if ours.get("id") is None:
        yield Difference("machine's id", _said(None), _said(None), "flag")
    for what, words in (
        ("cpu", "CPU"),
        ("microcode", "microcode"),
        ("nr_usable_cpus", "usable CPUs"),
        ("memory_bytes", "bytes of memory"),
        ("governor", "governor"),
        ("boost", "boost"),
        ("kernel", "running kernel"),
    ):
        yield from _differ(words, ours.get(what), theirs.get(what), "flag")


def _of_kernel(a: Record, b: Record) -> Iterator[Difference]:
    ours, theirs = (part(one.receipt, "kernel") for one in (a, b))
    if ours.get("tree_key") != theirs.get("tree_key"):
        names = [
            f"{kernel.get('tree')} ({_short(kernel.get('tree_key'))})" for kernel in (ours, theirs)
        ]
        yield Difference("tree", names[0], names[1], "flag")
    yield from _differ("compiler", ours.get("compiler"), theirs.get("compiler"), "flag")
    configs = [_short(kernel.get("config_sha256")) for kernel in (ours, theirs)]
    yield from _differ("configuration", configs[0], configs[1], "flag")
    own, others = part(ours, "variants"), part(theirs, "variants")
    for name in (name for name in own if name in others):
        one, other = told_apart([own[name], others[name]])
        yield from _differ(f"series of {name}", one, other, "flag")


def _of_guest(a: Record, b: Record, gravity: Gravity) -> Iterator[Difference]:
    """An emulated CPU's numbers are of nothing that a real one's are."""
    ours, theirs = (part(one.receipt, "guest") for one in (a, b))
    if gravity == "refuse":
        yield from _differ("accelerator", ours.get("accel"), theirs.get("accel"), gravity)
        return
    for what, words in (("qemu", "QEMU"), ("cpus", "CPUs of a guest")):
        yield from _differ(words, ours.get(what), theirs.get(what), gravity)


def told_apart(variants: Sequence[object]) -> list[str]:
    """The ids of a variant's series in several runs: the same words where it is the same code.

    By their diffs; where a run is from before those were recorded, by the mails they came in.
    """
    old = any("diff_id" not in one for entries in variants for one in _series(entries))
    return [series_ids(entries, "id" if old else "diff_id") for entries in variants]


def series_ids(entries: object, field: str = "id") -> str:
    """The ids of a variant's series, in order, as far as they tell series apart."""
    return " + ".join(_short(entry.get(field)) for entry in _series(entries)) or "no series"


def _series(entries: object) -> list[Mapping[str, Any]]:
    found = entries if isinstance(entries, list | tuple) else ()
    return [entry for entry in found if isinstance(entry, Mapping)]


def _differ(
    what: str, ours: object, theirs: object, gravity: Gravity, row: str | None = None
) -> Iterator[Difference]:
    # To Python, true is 1.
    if ours != theirs or isinstance(ours, bool) is not isinstance(theirs, bool):
        yield Difference(what, _said(ours), _said(theirs), gravity, row)


def _machines_apart(a: Record, b: Record) -> tuple[str, str]:
    """Two machines, by their descriptions where these differ, and by their ids."""
    lines, ids = (
        [say(one) for one in (a, b)]
        for say in (machine_line, lambda one: machine_id(one) or "no id")
    )
    if lines[0] == lines[1]:
        return ids[0], ids[1]
    return f"{lines[0]} ({ids[0]})", f"{lines[1]} ({ids[1]})"


def _cpu(record: Record) -> str:
    return str(part(record.receipt, "machine").get("cpu"))


def _said(value: object) -> str:
    return "not said" if value is None else str(value)


def _short(value: object) -> str:
    return _said(value)[:SHORT]
