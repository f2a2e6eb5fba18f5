# SPDX-License-Identifier: GPL-2.0-only
"""Spreads a run over several machines as cells, and merges their records."""
