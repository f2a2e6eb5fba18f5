# SPDX-License-Identifier: GPL-2.0-only
"""No order of events makes mprotect() or mremap() lose a bit, and each mutation is found."""

from pathlib import Path

import pytest

from promela import SAFETY, assert_error, assert_no_error, pan
from ream.paths import CHECKOUT

MODEL = CHECKOUT / "kernel/model/mprotect-pte.pml"

DIRTY = "must_be_dirty"
ACCESSED = "must_be_accessed"
SHADOW_STACK = r"pte&\(2\|8\)\)!=8"
WRITTEN = "may_write"


@pytest.mark.parametrize("part", ["CHANGE", "MOVE"])
def test_no_order_of_events_loses_what_hardware_sets(part: str, tmp_path: Path) -> None:
    assert_no_error(pan(MODEL, tmp_path, defines=(part,), flags=SAFETY), endless=("walker",))


@pytest.mark.parametrize(
    ("part", "mutation", "error"),
    [
        pytest.param("CHANGE", "TEST_ACCESSED", DIRTY, id="a clean entry is stored"),
        pytest.param("CHANGE", "TEST_DIRTY", ACCESSED, id="an old entry is stored"),
        pytest.param("CHANGE", "TEST_NOTHING", f"{DIRTY}|{ACCESSED}", id="any entry is stored"),
        pytest.param("CHANGE", "NO_FLUSH", WRITTEN, id="translations outlive the change"),
        pytest.param("CHANGE", "NO_SAVED_DIRTY", DIRTY, id="Dirty is cleared and not saved"),
        pytest.param("CHANGE", "KEEP_DIRTY", SHADOW_STACK, id="Dirty outlives Write"),
        pytest.param("CHANGE", "STALE_RULE", f"{DIRTY}|{ACCESSED}", id="a rule of other flags"),
        pytest.param("MOVE", "TEST_ACCESSED", DIRTY, id="a clean entry is moved plainly"),
        pytest.param("MOVE", "TEST_DIRTY", ACCESSED, id="an old entry is moved plainly"),
        pytest.param("MOVE", "TEST_NOTHING", f"{DIRTY}|{ACCESSED}", id="any is moved plainly"),
        pytest.param("MOVE", "NO_FLUSH", WRITTEN, id="translations outlive the move"),
        pytest.param("MOVE", "SET_FIRST", f"{DIRTY}|{ACCESSED}", id="what was read is set"),
    ],
)
def test_the_model_tells_when(part: str, mutation: str, error: str, tmp_path: Path) -> None:
    assert_error(pan(MODEL, tmp_path, defines=(part, mutation), flags=SAFETY), error)
