# SPDX-License-Identifier: GPL-2.0-only
"""Manual pages, made from what `--help` says."""
