# SPDX-License-Identifier: GPL-2.0-only
"""What the native stage asks of zone-device."""

from ream.stage.hosted import Hosted

from .cases import cases
from .plan import FOLDER, extent_bytes, halved, needed_bytes, plan_of
from .rows import ZoneDeviceRow

HOSTED: Hosted[ZoneDeviceRow] = Hosted(
    folder=FOLDER,
    plan_of=plan_of,
    needed_bytes=needed_bytes,
    extent_bytes=extent_bytes,
    halved=halved,
    cases=cases,
)
