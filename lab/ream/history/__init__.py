# SPDX-License-Identifier: GPL-2.0-only
"""Earlier runs: finding them, comparing them, and passing them on."""
