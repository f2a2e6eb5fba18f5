# SPDX-License-Identifier: GPL-2.0-only
"""ream: bulk page operations of Linux memory management, measured with the real kernel code."""

__version__ = "0.1.0"
__released__ = "2026-11-21"
