# SPDX-License-Identifier: GPL-2.0-only
"""What the native stage asks of mprotect."""

from ream.stage.hosted import Hosted

from .cases import cases
from .plan import FOLDER, SIZED, plan_of
from .rows import MprotectRow

HOSTED: Hosted[MprotectRow] = Hosted(FOLDER, plan_of, SIZED, cases)
