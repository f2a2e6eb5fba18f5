# SPDX-License-Identifier: GPL-2.0-only
"""More machines: a run in cells that any of them can do, and what their records say together."""
