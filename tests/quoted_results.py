# SPDX-License-Identifier: GPL-2.0-only
"""The results of `ream replicate` that docs/results.md quotes, and the records they come from."""

import re
from collections.abc import Sequence

from ream.experiment import named
from ream.folders import names
from ream.paths import CHECKOUT
from ream.published import Table
from ream.record.record import Record
from ream.replicate.outcome import JudgedRecord, Replication, replicate_all
from shipped import RECORDS

RECORD = re.compile(r"`(?:docs/records/)?(\d{8}T\d{6}Z-[a-z0-9-]+)`")

_, _PART = (CHECKOUT / "docs/results.md").read_text().split("## Every published table\n")
_, COMMAND, _, *_RESULTS = _PART.split("```\n")
RESULTS = dict(
    zip(
        ("Zen 4", "Zen 3", "Intel 207", "Intel Xeon"),
        zip(_RESULTS[::2], _RESULTS[1::2], strict=True),
        strict=True,
    )
)
"""By type of CPU each result, and the text below it, which names its records."""


def replications(below: str, tables: Sequence[Table]) -> list[Replication]:
    """The tables judged by the records that a text names."""
    records = [
        JudgedRecord.of(Record.load(str(RECORDS / name), RECORDS)) for name in RECORD.findall(below)
    ]
    return replicate_all(
        tables,
        records,
        [named(name) for name in names()],
        max((one for one in records if not one.counted), key=lambda one: one.name).machine,
        absent={},
        failed={},
    )
