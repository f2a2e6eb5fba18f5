# SPDX-License-Identifier: GPL-2.0-only
"""Programs that guests and this machine run."""

from pathlib import Path

from ream.stage.workload import Workload

_HERE = Path(__file__).parent

FORK_FOLIOS = Workload.of(_HERE, "fork_folios", "caches", "folios", "program")
