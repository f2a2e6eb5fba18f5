# SPDX-License-Identifier: GPL-2.0-only
"""Reads tables of results from mails into the form of experiments/*/published.toml."""
