# SPDX-License-Identifier: GPL-2.0-only
"""What the native stage asks of mprotect."""

from ream.kernel.arch import ARM64, X86_64
from ream.stage.hosted import Hosted

from .cases import cases
from .plan import FOLDER, SIZED, plan_of
from .rows import MprotectRow

HOSTED: Hosted[MprotectRow] = Hosted(
    FOLDER, plan_of, SIZED, cases, arches=(X86_64.name, ARM64.name)
)
