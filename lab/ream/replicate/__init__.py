# SPDX-License-Identifier: GPL-2.0-only
"""Does a published table hold here: which runs it needs, what they say line by line, and why."""
