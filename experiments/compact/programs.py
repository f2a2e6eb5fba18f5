# SPDX-License-Identifier: GPL-2.0-only
"""Programs that guests and this machine run."""

from pathlib import Path

from ream.stage.workload import Workload

_HERE = Path(__file__).parent

FRAGMENT = Workload.of(_HERE, "fragment", "counters", "holes", "nodes", "program")
HOG = Workload.of(_HERE, "hog", "program")
HOLD_FOLIOS = Workload.of(_HERE, "hold_folios", "nodes", "program")
COMPACT_THP = Workload.of(
    _HERE, "compact_thp", "faults", "busy", "holes", "pressure", "counters", "cpu_times", "program"
)
