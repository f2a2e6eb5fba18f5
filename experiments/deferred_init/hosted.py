# SPDX-License-Identifier: GPL-2.0-only
"""What the native stage asks of deferred-init."""

from ream.stage.hosted import Hosted

from .cases import cases
from .plan import FOLDER, SIZED, plan_of, suit
from .rows import DeferredInitRow

HOSTED: Hosted[DeferredInitRow] = Hosted(FOLDER, plan_of, SIZED, cases, suit=suit)
