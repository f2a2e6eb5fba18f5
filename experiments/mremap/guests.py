# SPDX-License-Identifier: GPL-2.0-only
"""mremap in the vm stage: the program of the live stage, in a guest of each variant."""

from experiments.mprotect.job_guests import JobGuests

from .live import ROWS
from .programs import MREMAP_FOLIOS
from .rows import MremapRow


class MremapGuests(JobGuests[MremapRow]):
    """Guests that do all rows, one after another."""

    experiment = "mremap"
    its = ROWS
    programs = (MREMAP_FOLIOS,)


GUESTS = MremapGuests
