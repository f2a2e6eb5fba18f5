# SPDX-License-Identifier: GPL-2.0-only
"""Made-up runs, as the engine's own tests have them, and their profile of hypothesis."""

from tests.unit.conftest import receipt, simulated

__all__ = ["receipt", "simulated"]
