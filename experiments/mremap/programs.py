# SPDX-License-Identifier: GPL-2.0-only
"""Programs that guests and this machine run."""

from pathlib import Path

from experiments.mprotect.programs import MPROTECT_FOLIOS
from ream.stage.workload import Workload

_HERE = Path(__file__).parent

_SHARED = [path for path in MPROTECT_FOLIOS.sources if path.stem in {"pages", "access"}]

_OWN = Workload.of(_HERE, "mremap_folios", "caches", "folios", "program")

MREMAP_FOLIOS = Workload(_OWN.name, (*_OWN.sources, *_SHARED))
"""It looks at pages as the program of mprotect does."""
