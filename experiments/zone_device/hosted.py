# SPDX-License-Identifier: GPL-2.0-only
"""What the native stage asks of zone-device, which has two programs.

In one memmap_init_zone_device() is called alone, in the other all of memremap_pages(); remap.py.
"""

from ream.kernel.arch import ARM64, X86_64
from ream.stage.hosted import Hosted

from .cases import cases
from .plan import FOLDER, HEADS_LAST, SIZED, plan_of
from .remap import REMAP, is_whole_call
from .rows import ZoneDeviceRow


def only_initialises(row: ZoneDeviceRow) -> bool:
    """Whether nothing but the memory map is initialised."""
    return not is_whole_call(row)


HOSTED: Hosted[ZoneDeviceRow] = Hosted(
    FOLDER,
    plan_of,
    SIZED,
    cases,
    otherwise=(HEADS_LAST,),
    any_page=True,
    arches=(X86_64.name, ARM64.name),
    runs=only_initialises,
    beside=(REMAP,),
)
