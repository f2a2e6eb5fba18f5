# SPDX-License-Identifier: GPL-2.0-only
"""Programs of zone-device."""

from collections.abc import Callable

import pytest

from fixtures.hosted import Rig


@pytest.fixture(scope="session")
def shipped_rig(rig_of: Callable[[str], Rig]) -> Rig:
    """All variants: before, before-again, published and ream."""
    return rig_of("zone-device")
