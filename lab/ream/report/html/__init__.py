# SPDX-License-Identifier: GPL-2.0-only
"""Renders a record as one page for a browser, which needs no network."""
