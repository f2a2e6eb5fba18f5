# SPDX-License-Identifier: GPL-2.0-only
"""Checks whether a run is slower than a baseline allows, for the use in CI jobs."""
