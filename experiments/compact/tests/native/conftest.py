# SPDX-License-Identifier: GPL-2.0-only
"""Programs of migrate, whose objects compact calls with a plan of its own."""

from collections.abc import Callable, Sequence

import pytest

from fixtures.hosted import Rig
from ream.experiment import named

PATCHES = named("migrate").folder / "tests/native/patches"


@pytest.fixture(scope="session")
def migrate_rig(rig_of: Callable[[str], Rig]) -> Rig:
    """All variants of migrate: before, before-again, published and ream."""
    return rig_of("migrate")


@pytest.fixture(scope="session")
def wrong_migrate(patched_rig: Callable[..., Rig]) -> Callable[..., Rig]:
    """A function that links one variant: series of ours, and a patch of migrate's tests."""

    def make(name: str, series: Sequence[str] = ()) -> Rig:
        return patched_rig("migrate", PATCHES / f"{name}.patch", series)

    return make
