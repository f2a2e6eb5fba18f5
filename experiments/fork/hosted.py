# SPDX-License-Identifier: GPL-2.0-only
"""What the native stage asks of fork."""

from ream.kernel.arch import ARM64, X86_64
from ream.stage.hosted import Hosted

from .cases import cases
from .plan import FOLDER, SIZED, plan_of
from .programs import FORK_FOLIOS
from .rows import ForkRow
from .whole import left_out_of

HOSTED: Hosted[ForkRow] = Hosted(
    FOLDER,
    plan_of,
    SIZED,
    cases,
    left_out=left_out_of,
    programs=(FORK_FOLIOS,),
    arches=(X86_64.name, ARM64.name),
)
