# SPDX-License-Identifier: GPL-2.0-only
"""Programs that guests and this machine run."""

from pathlib import Path

from ream.stage.workload import Workload

_HERE = Path(__file__).parent

MOVE_FOLIOS = Workload.of(
    _HERE, "move_folios", "folios", "nodes", "counters", "cpu_time", "program"
)
MIGRATE_SOAK = Workload.of(_HERE, "migrate_soak", "soak_worker", "soak_kernel", "nodes", "program")
