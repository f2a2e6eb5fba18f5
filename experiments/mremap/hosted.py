# SPDX-License-Identifier: GPL-2.0-only
"""What the native stage asks of mremap."""

from ream.stage.hosted import Hosted

from .cases import cases
from .plan import FOLDER, SIZED, plan_of
from .rows import MremapRow

HOSTED: Hosted[MremapRow] = Hosted(FOLDER, plan_of, SIZED, cases)
