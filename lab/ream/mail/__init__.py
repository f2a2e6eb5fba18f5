# SPDX-License-Identifier: GPL-2.0-only
"""Tables of results as mails print them, read into the form of experiments/*/published.toml."""
