# SPDX-License-Identifier: GPL-2.0-only
"""Which benchmark a number is of, and which machine: what tells like from unlike."""

import hashlib
from collections.abc import Iterator
from pathlib import Path

from ream.paths import GUEST, KERNEL_CONFIG, KERNEL_MODULES, NATIVE, WORKLOADS

DIGITS = 12
"""Of a digest: enough to tell two apart, short enough to read."""


def benchmark_id(experiment: str, stage: str) -> str:
    """A digest of the sources that measure this experiment at this stage.

    Two numbers with another digest are of two benchmarks: what is timed may not be the same.
    The kernel code that is measured is not in it; the receipt names that by tree and series.
    """
    own = NATIVE / experiment.replace("-", "_")
    if not own.is_dir():
        own = NATIVE / "migrate"  # compact runs on migrate's
    places = {
        "native": (NATIVE / "host", own, KERNEL_CONFIG / "native.config"),
        "vm": (GUEST, WORKLOADS, KERNEL_MODULES, KERNEL_CONFIG / "vm.config"),
        "live": (WORKLOADS,),
    }[stage]
    digest = hashlib.sha256()
    for path in _files(places):
        content = hashlib.sha256(path.read_bytes()).hexdigest()
        digest.update(f"{path.relative_to(NATIVE.parent)}\0{content}\n".encode())
    return digest.hexdigest()[:DIGITS]


def machine_id(root: Path = Path("/")) -> str | None:
    """A number of this installation that says nothing about it; None if it has none.

    Made as systemd's machine-id(5) asks for: the id itself is confidential and is never shown.
    """
    try:
        text = (root / "etc/machine-id").read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return None
    return hashlib.sha256(f"ream\0{text}".encode()).hexdigest()[:DIGITS] if text else None


def _files(places: tuple[Path, ...]) -> Iterator[Path]:
    """Sources alone: a tool may have left its own files beside them."""
    for place in places:
        if place.is_file():
            yield place
        for path in sorted(place.rglob("*")):
            if path.is_file() and not path.name.startswith("."):
                yield path
