# SPDX-License-Identifier: GPL-2.0-only
"""What the native stage asks of migrate."""

from ream.stage.hosted import Hosted

from .cases import cases, is_copied_by_cpu
from .plan import FOLDER, SIZED, plan_of, suit
from .rows import MigrateRow

HOSTED: Hosted[MigrateRow] = Hosted(
    FOLDER, plan_of, SIZED, cases, suit=suit, same_work=is_copied_by_cpu
)
