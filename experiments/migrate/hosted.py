# SPDX-License-Identifier: GPL-2.0-only
"""What the native stage asks of migrate."""

from ream.stage.hosted import Hosted

from .cases import GIVEN_AWAY, cases
from .plan import FOLDER, SIZED, plan_of, suit
from .rows import MigrateRow

HOSTED: Hosted[MigrateRow] = Hosted(FOLDER, plan_of, SIZED, cases, suit=suit, elsewhere=GIVEN_AWAY)
