# SPDX-License-Identifier: GPL-2.0-only
"""The records by which published tables are judged in docs/results.md, by type of CPU."""

from collections.abc import Mapping, Sequence

from ream.experiment import named
from ream.folders import names
from ream.published import Table
from ream.record.record import Record
from ream.replicate.outcome import JudgedRecord, Replication, replicate_all
from shipped import RECORDS

JUDGED: Mapping[str, tuple[str, ...]] = {
    "Zen 3": (
        "20261128T075224Z-fork-native-6e45",
        "20261128T080903Z-migrate-native-3e93",
        "20261122T181226Z-zone-device-native-007a",
    ),
    "Zen 4": (
        "20261123T124413Z-deferred-init-native-eda0",
        "20261127T125932Z-fork-native-65a6",
        "20261128T024545Z-migrate-native-8a7b",
        "20261127T165921Z-compact-native-be1f",
        "20261127T130356Z-mprotect-native-a05f",
        "20261127T130442Z-mremap-native-f113",
        "20261127T163322Z-zone-device-native-a408",
        "20261126T055340Z-mprotect-native-149a",
        "20261126T055124Z-mremap-native-5f83",
    ),
    "Intel Xeon": (
        "20261128T232136Z-fork-native-011d",
        "20261128T232346Z-zone-device-native-5845",
        "20261128T232524Z-mprotect-native-fc79",
        "20261128T232540Z-mremap-native-3e9e",
        "20261128T232607Z-deferred-init-native-7e5c",
    ),
    "Intel 207": (
        "20261128T171926Z-fork-native-c3d4",
        "20261128T171208Z-mprotect-native-71ab",
        "20261128T171241Z-mremap-native-cd6d",
        "20261128T171253Z-compact-native-5c66",
    ),
}
"""The last two of Zen 4 are counts of arm64, which no verdict rests on."""


def replications(cpu: str, tables: Sequence[Table]) -> list[Replication]:
    """The tables judged by the records of a type of CPU."""
    records = [JudgedRecord.of(Record.load(str(RECORDS / name), RECORDS)) for name in JUDGED[cpu]]
    return replicate_all(
        tables,
        records,
        [named(name) for name in names()],
        max((one for one in records if not one.counted), key=lambda one: one.name).machine,
        absent={},
        failed={},
    )
