# SPDX-License-Identifier: GPL-2.0-only
"""The experiment mm: ARCHITECTURE.md says what lies where in its folder."""
