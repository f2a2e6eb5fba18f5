# SPDX-License-Identifier: GPL-2.0-only
"""What the native stage asks of zone-device."""

from ream.stage.hosted import Hosted

from .cases import cases
from .plan import FOLDER, SIZED, plan_of
from .rows import ZoneDeviceRow

HOSTED: Hosted[ZoneDeviceRow] = Hosted(FOLDER, plan_of, SIZED, cases)
