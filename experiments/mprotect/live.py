# SPDX-License-Identifier: GPL-2.0-only
"""mprotect in the live stage: whole system calls over memory in folios of each size."""

from ream.session.live import Live

from .job_live import JobRows
from .programs import MPROTECT_FOLIOS
from .rows import MprotectRow
from .toggles import job_of, operation_of

ROWS = JobRows(MPROTECT_FOLIOS, job_of, operation_of)

LIVE: Live[MprotectRow] = ROWS.live()
