# SPDX-License-Identifier: GPL-2.0-only
"""What the native stage asks of zone-device."""

from ream.kernel.arch import ARM64, X86_64
from ream.stage.hosted import Hosted, Otherwise

from .cases import cases
from .plan import FOLDER, SIZED, plan_of
from .rows import ZoneDeviceRow

HEADS_LAST = Otherwise(
    "HEADS_COME_LAST",
    1,
    "prepares the head of a compound page when all its tails are, as kernels since 6.18 do",
)
"""Until then the list head in the second tail page was initialised and then overwritten."""

HOSTED: Hosted[ZoneDeviceRow] = Hosted(
    FOLDER,
    plan_of,
    SIZED,
    cases,
    otherwise=(HEADS_LAST,),
    any_page=True,
    arches=(X86_64.name, ARM64.name),
)
