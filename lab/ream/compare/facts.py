# SPDX-License-Identifier: GPL-2.0-only
"""Extracts the properties of records, plans and checkouts that the rules compare."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ream.compare.alike import SHORT, Facts, Named, SeriesIds, Thing
from ream.kernel.series import Series
from ream.record.parts import machine_id, machine_key, machine_line, part, rows_of, variants_of
from ream.record.record import Record

_OF_A_ROW = ("unit", "better", "bytes_of")

_OF_A_MACHINE = {
    "cpu": "CPU",
    "microcode": "microcode",
    "nr_usable_cpus": "usable CPUs",
    "memory_bytes": "bytes of memory",
    "governor": "governor",
    "boost": "boost",
    "kernel": "running kernel",
}
_OF_A_BASIS = {
    "benchmark": "benchmark",
    "machine": "machine",
    "nr_usable_cpus": "usable CPUs",
    "tree_key": "tree",
    "other_trees": "other trees",
    "compiler": "compiler",
    "qemu": "QEMU",
}


def of_record(
    record: Record, *, row: str | None = None, variants: Iterable[str] | None = None
) -> Facts:
    """The properties of a record; row, variants: restrict them to this row and these variants."""
    kernel, guest = (part(record.receipt, name) for name in ("kernel", "guest"))
    machine = part(record.receipt, "machine")
    line, own_id = machine_line(record), machine_id(record)
    counting = part(record.receipt, "count")
    config = kernel.get("config_sha256")
    found: dict[Thing, object] = {
        **{Thing(name): record.run.get(name) for name in ("experiment", "stage")},
        Thing("accelerator"): _counting(counting) if counting else guest.get("accel"),
        Thing("machine"): Named(machine_key(record), f"{line} ({own_id or 'no id'})"),
        **{Thing(name): machine.get(key) for key, name in _OF_A_MACHINE.items()},
        Thing("tree"): tree(kernel.get("tree"), kernel.get("tree_key")),
        Thing("compiler"): kernel.get("compiler"),
        Thing("configuration"): None if config is None else str(config)[:SHORT],
        Thing("QEMU"): guest.get("qemu") or counting.get("emulator"),
        Thing("CPUs of a guest"): guest.get("cpus"),
    }
    if (benchmark := record.receipt.get("benchmark")) is not None:
        found[Thing("benchmark")] = benchmark
    if machine.get("id") is not None:
        found[Thing("machine's id")] = machine["id"]
    for name, one in part(kernel, "trees").items():
        found[Thing("tree", name)] = tree(one.get("tree"), one.get("tree_key"))
        if (config := one.get("config")) is not None:
            found[Thing("configuration", name)] = Named(config, _digest(config))
    for name, its in rows_of(record).items():
        if row in (None, name):
            found.update({Thing(one, name): its[one] for one in _OF_A_ROW if one in its})
            found.update(params(name, part(its, "params")))
    for name, entries in variants_of(record).items():
        if variants is None or name in variants:
            found[Thing("series", name)] = series_ids(entries)
    return found


def _counting(fields: Mapping[str, Any]) -> str:
    """The emulated CPU that counted instructions, since another CPU has other counts."""
    return f"counting, {fields.get('cpu')}, {fields.get('cpus')} CPUs"


def of_basis(fields: Mapping[str, Any]) -> Facts:
    """The properties of a plan.json, or of the Basis that a plan would have here."""
    return {Thing(name): fields.get(key) for key, name in _OF_A_BASIS.items()}


def params(row: str, values: Mapping[str, Any]) -> Facts:
    """The parameters of a row as properties."""
    return {Thing("parameter", row, key): value for key, value in values.items()}


def series(variant: str, given: Iterable[Series]) -> Facts:
    """The series of a variant as properties, from its patches."""
    return {Thing("series", variant): SeriesIds(tuple((one.id, one.diff_id) for one in given))}


def series_ids(entries: object) -> SeriesIds:
    """The series of a variant in a receipt, in order."""
    found = tuple(_objects(entries))
    patches = (patch for one in found for patch in _objects(one.get("patches")))
    return SeriesIds(
        tuple(_digests(one, "id", "diff_id") for one in found),
        tuple(_digests(one, "sha256", "diff_sha256") for one in patches),
    )


def tree(name: object, key: object) -> Named:
    """A kernel source, which is compared by its content and printed with its name."""
    return Named(key, f"{name} ({_text(key)[:SHORT]})")


def _digests(one: Mapping[str, Any], whole: str, diff: str) -> tuple[str, str | None]:
    return _text(one.get(whole)), None if one.get(diff) is None else str(one[diff])


def _objects(entries: object) -> Iterator[Mapping[str, Any]]:
    found = entries if isinstance(entries, list | tuple) else ()
    return (entry for entry in found if isinstance(entry, Mapping))


def _digest(text: object) -> str:
    return hashlib.sha256(str(text).encode()).hexdigest()[:SHORT]


def _text(value: object) -> str:
    return "not said" if value is None else str(value)
