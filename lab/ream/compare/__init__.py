# SPDX-License-Identifier: GPL-2.0-only
"""Decides whether two runs, plans or checkouts are alike, and what follows for their numbers."""
