# SPDX-License-Identifier: GPL-2.0-only
"""Kits: programs that measure published rows on other machines, and their results."""
