# SPDX-License-Identifier: GPL-2.0-only
"""Programs that are linked with the patches beside this file."""

from collections.abc import Callable, Sequence
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


@pytest.fixture(scope="session")
def migrate_rig(rig_of: Callable[[str], Rig]) -> Rig:
    """The migrate experiment's before, before-again, published and ream."""
    return rig_of("migrate")


@pytest.fixture(scope="session")
def wrong_migrate(patched_rig: Callable[..., Rig]) -> Callable[..., Rig]:
    """A function that links one variant of migrate: series of ours, and a patch beside this."""

    def make(name: str, series: Sequence[str] = ()) -> Rig:
        return patched_rig("migrate", PATCHES / f"{name}.patch", series)

    return make
