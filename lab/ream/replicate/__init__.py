# SPDX-License-Identifier: GPL-2.0-only
"""Replicates a published table: plans the runs it needs, judges each line, and explains why."""
