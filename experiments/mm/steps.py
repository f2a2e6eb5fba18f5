# SPDX-License-Identifier: GPL-2.0-only
"""What the native stage asks of mm: the text of each row's program."""

from ream.stage.steps import Steps

from .rows import PROGRAMS, MmRow

STEPS: Steps[MmRow] = Steps(
    text_of=lambda row: row.text,
    files=(PROGRAMS,),
)
