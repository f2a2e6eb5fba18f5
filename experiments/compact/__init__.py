# SPDX-License-Identifier: GPL-2.0-only
"""The experiment compact: ARCHITECTURE.md says what lies where in its folder."""
