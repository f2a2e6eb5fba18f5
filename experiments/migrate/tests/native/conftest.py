# SPDX-License-Identifier: GPL-2.0-only
"""Programs of migrate."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from fixtures.hosted import Rig

PATCHES = Path(__file__).parent / "patches"


@pytest.fixture(scope="session")
def migrate_rig(rig_of: Callable[[str], Rig]) -> Rig:
    """All variants: before, before-again, published and ream."""
    return rig_of("migrate")


@pytest.fixture(scope="session")
def wrong_migrate(patched_rig: Callable[..., Rig]) -> Callable[..., Rig]:
    """A function that links one variant: series of ours, and a patch beside this file."""

    def make(name: str, series: Sequence[str] = ()) -> Rig:
        return patched_rig("migrate", PATCHES / f"{name}.patch", series)

    return make
