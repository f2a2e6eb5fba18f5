# SPDX-License-Identifier: GPL-2.0-only
"""What a series does to memory management: what it reaches, whether it is right, what it costs."""
