# SPDX-License-Identifier: GPL-2.0-only
"""Programs that guests and this machine run."""

from pathlib import Path

from ream.stage.workload import Workload

_HERE = Path(__file__).parent

MPROTECT_FOLIOS = Workload.of(
    _HERE, "mprotect_folios", "pages", "access", "shared", "caches", "folios", "program"
)
