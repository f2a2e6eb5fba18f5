# SPDX-License-Identifier: GPL-2.0-only
"""Exports records as KCIDB reports: checkouts, builds and tests, schema 5.3.

Each variant is a checkout of the tree with its patches, and a build of it; each of its rows is a
test. The schema has no null, so unknown fields are left out. Source: kcidb_io.schema of the package
kcidb-io.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ream.counted import counted
from ream.errors import BadUsage
from ream.history.entry import started
from ream.record.parts import machine_key, part, variants_of
from ream.record.record import RUN, Record
from ream.report.contract import Result, RowResult, Summary

MAJOR, MINOR = 5, 3
NS_PER_S = 1e9
SHORT = 12
DIGITS = 12
"""Significant digits of a number of seconds, enough for any whole number of nanoseconds here."""

_ORIGIN = re.compile(r"[a-z0-9_]+")
_NOT_IN_A_PATH = re.compile(r"[^a-zA-Z0-9_-]")
_ARCHITECTURE = "x86_64"
LIVE = "live"

Object = dict[str, Any]


def to_kcidb(records: Iterable[Record], origin: str) -> bytes:
    """One report of all records; origin: the CI system's name.

    Raises BadUsage if the name is invalid, or if a run.json is.
    """
    if not _ORIGIN.fullmatch(origin):
        raise BadUsage(f"--origin {origin!r}: small letters, digits and _ alone")
    checkouts: dict[str, Object] = {}
    builds: list[Object] = []
    tests: list[Object] = []
    for record in records:
        summary = Summary.from_object(record.run, source=str(record.path / RUN))
        for name in _variants(record, summary):
            checkout = _checkout(record, name, origin)
            checkouts.setdefault(checkout["id"], checkout)
            builds.append(_build(record, summary, name, checkout))
        tests += _tests(record, summary, origin)
    report = {
        "version": {"major": MAJOR, "minor": MINOR},
        "checkouts": list(checkouts.values()),
        "builds": builds,
        "tests": tests,
    }
    return (json.dumps(report, indent=1, allow_nan=False) + "\n").encode()


def _variants(record: Record, summary: Summary) -> dict[str, None]:
    """Every variant that was built or measured."""
    built = variants_of(record)
    measured = (name for row in summary.rows for name in row.variants)
    return dict.fromkeys((*built, *measured))


def _checkout(record: Record, variant: str, origin: str) -> Object:
    kernel = part(record.receipt, "kernel")
    patches = _patches(record, variant)
    patchset = patchset_hash([str(patch.get("sha256")) for patch in patches])
    tree = str(kernel.get("tree_key") or kernel.get("tree"))
    # Two variants without patches are the same checkout; so are those of two runs.
    return {
        "id": f"{origin}:{tree[:SHORT]}-{patchset[:SHORT] or 'unpatched'}",
        "origin": origin,
        "tree_name": _plain(kernel.get("tree")),
        "git_commit_name": _plain(f"v{kernel.get('version')}"),
        # Nobody knows what is in a kernel that was there before us.
        **({} if record.run.get("stage") == LIVE else {"patchset_hash": patchset}),
        "comment": _plain(f"{kernel.get('tree')}, {counted(len(patches), 'patch', 'patches')}"),
        "valid": True,
        "misc": {
            "tree_key": str(kernel.get("tree_key")),
            "patches": [str(patch.get("subject")) for patch in patches],
        },
    }


def _patches(record: Record, variant: str) -> list[Mapping[str, Any]]:
    """All patches of a variant's series, in the order in which they were applied."""
    series = variants_of(record).get(variant)
    return [patch for one in _objects(series) for patch in _objects(one.get("patches"))]


def _objects(value: object) -> list[Mapping[str, Any]]:
    """The objects of a list; other values are left out."""
    entries = value if isinstance(value, list | tuple) else ()
    return [one for one in entries if isinstance(one, Mapping)]


def patchset_hash(digests: Iterable[str]) -> str:
    """SHA-256 over the newline-terminated SHA-256s of the patches; empty without patches.

    For a single series, it equals the id in the receipt.
    """
    text = "".join(f"{digest}\n" for digest in digests)
    return hashlib.sha256(text.encode()).hexdigest() if text else ""


def _build(record: Record, summary: Summary, variant: str, checkout: Mapping[str, Any]) -> Object:
    kernel = part(record.receipt, "kernel")
    return {
        "id": _build_id(summary, variant, str(checkout["origin"])),
        "checkout_id": checkout["id"],
        "origin": checkout["origin"],
        "architecture": _ARCHITECTURE,
        "compiler": _plain(kernel.get("compiler")),
        "config_name": _plain(f"ream {summary.stage}"),
        "comment": _plain(f"{summary.experiment}, {summary.stage} stage, variant {variant}"),
        "status": "PASS",
        **_start(summary),
        "misc": {
            "config_sha256": str(kernel.get("config_sha256") or "unknown"),
            "variant": variant,
        },
    }


def _build_id(summary: Summary, variant: str, origin: str) -> str:
    return f"{origin}:{summary.run}-{variant}"


def _tests(record: Record, summary: Summary, origin: str) -> Iterator[Object]:
    environment = {
        "comment": _plain(summary.receipt.machine),
        "misc": {
            "machine": machine_key(record),
            "guest": summary.receipt.guest or "none",
            "benchmark": str(record.receipt.get("benchmark") or "unknown"),
        },
    }
    any_variant = next(iter(_variants(record, summary)), None)
    for row in summary.rows:
        for name, result in row.variants.items():
            yield {
                **_test(summary, row, name, origin),
                "environment": environment,
                "status": "PASS" if result.verified else "FAIL",
                "number": _number(row, result),
                "misc": _misc(row, result),
            }
        if row.skipped and not row.variants and any_variant is not None:
            yield {
                **_test(summary, row, any_variant, origin),
                "path": _path(summary, row.row),
                "id": f"{origin}:{summary.run}-{row.row}",
                "environment": environment,
                "status": "SKIP",
                "comment": _plain(row.skipped),
            }


def _test(summary: Summary, row: RowResult, variant: str, origin: str) -> Object:
    return {
        "id": f"{origin}:{summary.run}-{row.row}-{variant}",
        "build_id": _build_id(summary, variant, origin),
        "origin": origin,
        "path": _path(summary, row.row, variant),
        "comment": _plain(row.title or row.row),
        **_start(summary),
    }


def _path(summary: Summary, *names: str) -> str:
    return ".".join(
        _NOT_IN_A_PATH.sub("_", name) or "_" for name in ("ream", summary.experiment, *names)
    )


def _number(row: RowResult, result: Result) -> Object:
    if row.unit == "ns":
        seconds = float(f"{result.median / NS_PER_S:.{DIGITS}g}")
        return {"value": seconds, "unit": "s", "prefix": "metric"}
    return {"value": result.median, "unit": row.unit, "prefix": "metric"}


def _misc(row: RowResult, result: Result) -> Object:
    published = row.published_table
    said = {
        "ratio_to_before": result.ratio,
        "ci95_low": result.low,
        "ci95_high": result.high,
        "effect": result.effect,
        "launches": result.launches,
        "samples": result.rounds,
        "of_limit": result.of_limit,
        "nr_bytes": result.nr_bytes,
        "published_table": published.id if published else None,
        "verdict": published.verdict if published else None,
    }
    params = {name: value for name, value in row.params.items() if value is not None}
    known = {name: value for name, value in said.items() if value is not None}
    return {**known, "params": params, "better": row.better}


def _start(summary: Summary) -> Object:
    began = started(summary.run)
    return {} if began is None else {"start_time": began.isoformat()}


def _plain(value: object) -> str:
    return str(value).replace("\0", "")
