# SPDX-License-Identifier: GPL-2.0-only
"""mremap in the live stage: whole system calls that move memory in folios of each size."""

from experiments.mprotect.job_live import JobRows
from ream.session.live import Live

from .moves import job_of, operation_of
from .programs import MREMAP_FOLIOS
from .rows import MremapRow

ROWS = JobRows(MREMAP_FOLIOS, job_of, operation_of)

LIVE: Live[MremapRow] = ROWS.live()
