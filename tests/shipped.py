# SPDX-License-Identifier: GPL-2.0-only
"""The records that documents quote, as `ream pack` left them."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ream.paths import CHECKOUT
from ream.record.archive import files_of, paths_in
from ream.record.record import RUN, is_record
from ream.record.sums import SUMS

RECORDS = CHECKOUT / "docs" / "records"
SHIPPED = [path for path in paths_in(RECORDS) if is_record(path)]


def _kind(record: Path) -> str:
    """What lies between the time and the id: the experiment and its stage."""
    return record.name.partition("-")[2].rpartition("-")[0]


OF_EACH_KIND = frozenset({_kind(path): path for path in SHIPPED}.values())
"""One record of each experiment and stage, the last one that was kept."""

EACH = [
    pytest.param(path, id=path.name, marks=() if path in OF_EACH_KIND else pytest.mark.vm)
    for path in SHIPPED
]
"""Cases of a test that takes a while for each record: `make test-vm` runs most of them."""


def copied(record: Path, to: Path) -> Path:
    """A copy of a record as a directory."""
    for name, content in files_of(record).items():
        (to / name).parent.mkdir(parents=True, exist_ok=True)
        (to / name).write_bytes(content)
    return to


def unpacked(record: Path, to: Path, change: Callable[[Any], None] = lambda _: None) -> Path:
    """A copy of a record without checksums, its run.json changed in place."""
    copied(record, to)
    (to / SUMS).unlink(missing_ok=True)  # it is another record now
    value = json.loads((to / RUN).read_text())
    change(value)
    (to / RUN).write_text(json.dumps(value))
    return to
