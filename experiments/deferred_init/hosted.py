# SPDX-License-Identifier: GPL-2.0-only
"""What the native stage asks of deferred-init."""

from ream.kernel.arch import ARM64, X86_64
from ream.stage.hosted import Hosted, Otherwise

from .cases import cases
from .plan import FOLDER, SIZED, plan_of, suit
from .rows import DeferredInitRow

BY_RANGE = Otherwise(
    "FREES_BY_RANGE",
    1,
    "frees a range before the next is initialised, and grows by sections, as kernels since 6.18"
    " do (where memblock has two ranges that touch, a free page then meets one that is not"
    " initialised: that is not tried)",
)
"""Until then all of a block of MAX_PAGE_ORDER was initialised before any of it was freed."""

HOSTED: Hosted[DeferredInitRow] = Hosted(
    FOLDER,
    plan_of,
    SIZED,
    cases,
    suit=suit,
    otherwise=(BY_RANGE,),
    arches=(X86_64.name, ARM64.name),
)
