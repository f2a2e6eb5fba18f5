# SPDX-License-Identifier: GPL-2.0-only
"""Finds, compares and exports earlier runs."""
