# SPDX-License-Identifier: GPL-2.0-only
"""What a hosted kernel must not do ends its run, and is told."""

from collections.abc import Callable

import pytest

from named_rows import row_of
from ream.errors import ReamError
from ream.experiment.section import SECTION_BYTES

ROW = row_of(
    "zone-device", name="row", rounds=1, device_bytes=SECTION_BYTES, order=0, type="FS_DAX"
)


@pytest.mark.parametrize(
    ("patch", "said"),
    [
        ("missing-function", "missing-function: the kernel reached `mem_init`"),
        ("missing-variable", "missing-variable: the kernel reached `totalcma_pages`"),
        ("warns", r"(?s)raised warnings.*WARNING at .*mm_init.c:\d+"),
        ("stops", r"(?s)BUG at .*mm_init.c:\d+"),
    ],
)
def test_what_a_kernel_must_not_do_is_said_by_name(
    patched: Callable, patch: str, said: str
) -> None:
    with pytest.raises(ReamError, match=said):
        patched(patch).run([ROW])
