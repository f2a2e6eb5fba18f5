# SPDX-License-Identifier: GPL-2.0-only
"""Counts of what a hosted kernel executes, made by a plugin for QEMU's user mode emulation."""
