# SPDX-License-Identifier: GPL-2.0-only
"""mprotect in the vm stage: the program of the live stage, in a guest of each variant."""

from .job_guests import JobGuests
from .live import ROWS
from .programs import MPROTECT_FOLIOS
from .rows import MprotectRow


class MprotectGuests(JobGuests[MprotectRow]):
    """Guests that do all rows, one after another."""

    experiment = "mprotect"
    its = ROWS
    programs = (MPROTECT_FOLIOS,)


GUESTS = MprotectGuests
