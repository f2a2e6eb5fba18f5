# SPDX-License-Identifier: GPL-2.0-only
"""No order of events makes mprotect() lose a bit, and each mutation is found."""

from pathlib import Path

import pytest

from promela import SAFETY, assert_error, assert_no_error, pan
from ream.paths import CHECKOUT

MODEL = CHECKOUT / "kernel/model/mprotect-pte.pml"

DIRTY = "must_be_dirty"
ACCESSED = "must_be_accessed"
SHADOW_STACK = r"pte&\(2\|8\)\)!=8"
WRITTEN = "may_write"


def test_no_order_of_events_loses_what_hardware_sets(tmp_path: Path) -> None:
    assert_no_error(pan(MODEL, tmp_path, flags=SAFETY), endless=("walker",))


@pytest.mark.parametrize(
    ("mutation", "error"),
    [
        pytest.param("TEST_ACCESSED", DIRTY, id="a clean entry is stored"),
        pytest.param("TEST_DIRTY", ACCESSED, id="an old entry is stored"),
        pytest.param("TEST_NOTHING", f"{DIRTY}|{ACCESSED}", id="any entry is stored"),
        pytest.param("NO_FLUSH", WRITTEN, id="translations outlive the change"),
        pytest.param("NO_SAVED_DIRTY", DIRTY, id="Dirty is cleared and not saved"),
        pytest.param("KEEP_DIRTY", SHADOW_STACK, id="Dirty outlives Write"),
        pytest.param("STALE_READ", f"{DIRTY}|{ACCESSED}", id="what was read before is written"),
    ],
)
def test_the_model_tells_when(mutation: str, error: str, tmp_path: Path) -> None:
    assert_error(pan(MODEL, tmp_path, defines=(mutation,), flags=SAFETY), error)
