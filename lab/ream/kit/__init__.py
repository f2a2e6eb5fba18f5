# SPDX-License-Identifier: GPL-2.0-only
"""Kits: programs that measure published rows on other people's machines, and their results."""
