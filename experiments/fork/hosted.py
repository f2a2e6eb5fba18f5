# SPDX-License-Identifier: GPL-2.0-only
"""What the native stage asks of fork, which has three programs.

In one of them the page allocator is hosted, too; freeing.py. In another one all that fork() does
of memory is, as one call; calling.py. In the first what would be freed is counted, and every
descriptor is predicted.
"""

from ream.kernel.arch import ARM64, X86_64
from ream.stage.hosted import Hosted

from .calling import CALLING, is_call
from .cases import cases
from .freeing import FREEING, frees
from .plan import FOLDER, SIZED, plan_of
from .programs import FORK_FOLIOS
from .rows import ForkRow
from .whole import left_out_of


def only_unmaps(row: ForkRow) -> bool:
    """Whether what is freed is counted, or nothing is."""
    return not frees(row) and not is_call(row)


HOSTED: Hosted[ForkRow] = Hosted(
    FOLDER,
    plan_of,
    SIZED,
    cases,
    left_out=left_out_of,
    programs=(FORK_FOLIOS,),
    arches=(X86_64.name, ARM64.name),
    runs=only_unmaps,
    beside=(FREEING, CALLING),
)
