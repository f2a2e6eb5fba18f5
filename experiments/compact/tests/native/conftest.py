# SPDX-License-Identifier: GPL-2.0-only
"""Programs of migrate, whose objects compact calls with a plan of its own."""

from experiments.migrate.tests.native.conftest import migrate_rig, wrong_migrate

__all__ = ["migrate_rig", "wrong_migrate"]
