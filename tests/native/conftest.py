# SPDX-License-Identifier: GPL-2.0-only
"""Programs that are linked with one of the patches beside this file."""

from collections.abc import Callable
from pathlib import Path

import pytest

from fixtures.hosted import Rig
from ream.variants import Variant

PATCHES = Path(__file__).parent / "patches"


@pytest.fixture(scope="session")
def patched(patched_rig: Callable[..., Rig]) -> Callable[[str], Rig]:
    """A function that links the base of zone-device, and with it one of these patches."""
    base = Variant("before", ())
    return lambda name: patched_rig("zone-device", PATCHES / f"{name}.patch", beside=(base,))
