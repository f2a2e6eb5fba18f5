# SPDX-License-Identifier: GPL-2.0-only
"""What the native stage asks of fork."""

from ream.stage.hosted import Hosted

from .cases import cases
from .plan import FOLDER, extent_bytes, halved, needed_bytes, plan_of
from .programs import FORK_FOLIOS
from .rows import ForkRow
from .whole import left_out_of

HOSTED: Hosted[ForkRow] = Hosted(
    folder=FOLDER,
    plan_of=plan_of,
    needed_bytes=needed_bytes,
    extent_bytes=extent_bytes,
    halved=halved,
    cases=cases,
    left_out=left_out_of,
    programs=(FORK_FOLIOS,),
)
