# SPDX-License-Identifier: GPL-2.0-only
"""What the native stage asks of migrate."""

from ream.stage.hosted import Hosted

from .cases import cases
from .plan import FOLDER, extent_bytes, halved, needed_bytes, plan_of, suit
from .rows import MigrateRow

HOSTED: Hosted[MigrateRow] = Hosted(
    folder=FOLDER,
    plan_of=plan_of,
    needed_bytes=needed_bytes,
    extent_bytes=extent_bytes,
    halved=halved,
    cases=cases,
    suit=suit,
)
