# SPDX-License-Identifier: GPL-2.0-only
"""Judges a series for memory management: what it reaches, whether it is correct, what it costs."""
