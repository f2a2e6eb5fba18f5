# SPDX-License-Identifier: GPL-2.0-only
"""Writes records as static pages: experiments, upgrades, published tables and single runs."""
